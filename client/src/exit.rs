//! What the exit status of `berth` says.

use std::process::ExitCode;

/// How a call of `berth` ended, as its exit status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// The question was answered, whatever the answer.
    Answered,
    /// The server refused the question: a value it does not accept, or nothing that could be placed.
    Refused,
    /// The command line cannot be used: an unknown flag, a file that cannot be read.
    Usage,
    /// No answer: nobody listens there, time ran out, or the server is overloaded or still starting.
    NoAnswer,
    /// A fault of the command itself, such as an answer that could not be written.
    Fault,
    /// With `--check`: the tasks pile up.
    PileUp,
    /// With `--check`: whether the tasks pile up is not known.
    NotKnown,
    /// `hold -- COMMAND`: the CPUs could not be held, so the command was not run.
    NotRun,
    /// `hold -- COMMAND`: the command cannot be started.
    NotStarted,
    /// `hold -- COMMAND`: there is no such command.
    NotFound,
    /// `hold -- COMMAND`: as the command ended.
    OfCommand(u8),
}

impl Exit {
    /// Every way to end of its own, ascending by status.
    pub const ALL: [Self; 10] = [
        Self::Answered,
        Self::Refused,
        Self::Usage,
        Self::NoAnswer,
        Self::Fault,
        Self::PileUp,
        Self::NotKnown,
        Self::NotRun,
        Self::NotStarted,
        Self::NotFound,
    ];

    /// The exit status.
    pub fn status(self) -> u8 {
        match self {
            Self::Answered => 0,
            Self::Refused => 1,
            Self::Usage => 2,
            Self::NoAnswer => 3,
            Self::Fault => 4,
            Self::PileUp => 10,
            Self::NotKnown => 11,
            Self::NotRun => 125,
            Self::NotStarted => 126,
            Self::NotFound => 127,
            Self::OfCommand(status) => status,
        }
    }

    /// What it means, for the help text.
    fn meaning(self) -> &'static str {
        match self {
            Self::Answered => "answered, whatever the answer",
            Self::Refused => {
                "refused by the server, such as CPUs that the host does not have; stderr says why"
            }
            Self::Usage => "the command line cannot be used, or a file that it names cannot be read",
            Self::NoAnswer => "no answer: nobody listens there, time ran out, the server is busy or starting",
            Self::Fault => "a fault of this command, such as an answer that could not be written",
            Self::PileUp => {
                "--check: the tasks pile up, what is advised is not safe, or something is wrong with what runs"
            }
            Self::NotKnown => "--check: that is not known",
            Self::NotRun => {
                "hold -- COMMAND, run --require: not run, since its CPUs could not be held, or are not safe"
            }
            Self::NotStarted => "hold, run -- COMMAND: it cannot be started",
            Self::NotFound => {
                "hold, run -- COMMAND: there is no such command; else it ends as the command does"
            }
            Self::OfCommand(_) => "hold, run -- COMMAND: as the command",
        }
    }

    /// All of them as the block of text that `berth --help` ends with.
    pub(crate) fn help() -> String {
        let line = |exit: &Self| format!("  {:>3}  {}\n", exit.status(), exit.meaning());
        Self::ALL.iter().map(line).collect()
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit.status())
    }
}
