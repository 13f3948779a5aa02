//! `berth`: see `berth --help`.

use std::{env, ffi::OsString, process::ExitCode};

use berth_client::{cli::Cli, slurm};

fn main() -> ExitCode {
    let args: Vec<OsString> = env::args_os().collect();
    if slurm::is_hook(&args) {
        slurm::run(args);
        return ExitCode::SUCCESS;
    }
    berth_client::run(&Cli::of_this_process()).into()
}
