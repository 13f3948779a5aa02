//! `berth`: see `berth --help`.

use std::process::ExitCode;

use clap::Parser as _;

fn main() -> ExitCode {
    berth_client::run(&berth_client::cli::Cli::parse()).into()
}
