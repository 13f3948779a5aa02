//! `berth`: see `berth --help`.

use std::process::ExitCode;

fn main() -> ExitCode {
    berth_client::run(&berth_client::cli::Cli::of_this_process()).into()
}
