//! `berth completions`.

use clap::CommandFactory as _;
use clap_complete::Shell;

use super::Answer;
use crate::{Exit, cli::Cli};

/// The script. No server is asked.
pub(super) fn answer(shell: Shell) -> Answer {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "berth", &mut script);
    Answer {
        document: String::from_utf8_lossy(&script).into_owned(),
        warnings: Vec::new(),
        exit: Exit::Answered,
        asked: false,
    }
}
