//! `berth completions`.

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::Answer;
use crate::cli::Cli;

/// The script. No server is asked.
pub(super) fn answer(shell: Shell) -> Answer {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "berth", &mut script);
    Answer::of_this_command(String::from_utf8_lossy(&script).into_owned())
}
