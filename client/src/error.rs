//! Why there is no answer.

use std::{io, path::PathBuf, time::Duration};

use crate::{Exit, address::Address, refusal};

/// Why a call of `berth` has no answer to show.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file with another host's XML cannot be read.
    #[error("--host-xml: cannot read {}: {source}", .path.display())]
    HostFile {
        /// The file, `-` for standard input.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The file is longer than any server reads.
    #[error("--host-xml: {} is longer than {limit} bytes, the most that is read as the XML of one host", .path.display())]
    HostFileTooLong {
        /// The file, `-` for standard input.
        path: PathBuf,
        /// The most that is read.
        limit: u64,
    },
    /// The file is no text.
    #[error("--host-xml: {} is not text in UTF-8; `lstopo --of xml FILE` writes what is read here", .path.display())]
    HostFileNotText {
        /// The file, `-` for standard input.
        path: PathBuf,
    },
    /// Nobody answers at the address.
    #[error("no berthd answers at {address}: {cause}")]
    Unreachable {
        /// The address.
        address: Address,
        /// What the system or the transport says.
        cause: String,
        /// Of what kind that is.
        kind: io::ErrorKind,
    },
    /// The time that `--timeout` allows was over.
    #[error("no answer from {address} within {limit:?}")]
    Timeout {
        /// The address.
        address: Address,
        /// The time allowed.
        limit: Duration,
    },
    /// The server answered with an error.
    #[error("{}", refusal::headline(.status))]
    Refused {
        /// The error.
        status: Box<tonic::Status>,
        /// The flag that its field `allowed` was filled with.
        mask: &'static str,
    },
    /// The server answers and has nothing to answer from yet.
    #[error("berthd at {address} is still starting: it has not read this host's topology yet")]
    Starting {
        /// The address.
        address: Address,
    },
    /// The server ended a stream that was to be followed.
    #[error("berthd at {address} has ended the stream: it stops, or starts anew")]
    Ended {
        /// The address.
        address: Address,
    },
    /// The flags for TLS do not fit the address, or each other.
    #[error("{0}")]
    Tls(String),
    /// A file for TLS cannot be read.
    #[error("{flag}: cannot read {}: {source}", .path.display())]
    TlsFile {
        /// The flag that names it.
        flag: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The server answered without the hold that was asked for.
    #[error("berthd at {address} has advised and held nothing: it is too old to hold CPUs")]
    NothingHeld {
        /// The address.
        address: Address,
    },
    /// A command was to run on CPUs that could not be held.
    #[error("the command was not run, since its CPUs cannot be held: {0}")]
    NotHeld(#[source] Box<Error>),
    /// A command was to run only with advice.
    #[error("the command was not run: {0}")]
    NotRun(#[source] Box<Error>),
    /// A command was to run only on CPUs that are safe.
    #[error("no form is proven to be safe for its tasks")]
    NotSafe,
    /// A command cannot be bound to the CPUs that were held for it.
    #[error("--bind: the command cannot be bound to CPUs {cpus}: {cause}")]
    NotBound {
        /// The CPUs held.
        cpus: String,
        /// Why not.
        cause: String,
    },
    /// A command could not be started.
    #[error("cannot run {}: {source}", .program.display())]
    NotStarted {
        /// What was to be run.
        program: std::ffi::OsString,
        /// What the system says.
        source: io::Error,
    },
    /// Steps that mend something failed.
    #[error("{} of {of} steps failed", .failed.len())]
    NotMended {
        /// How many steps there were.
        of: usize,
        /// Each that failed, with the cause.
        failed: Vec<String>,
    },
    /// `--fix` has to ask, and there is nobody.
    #[error(
        "--fix asks before it changes something, and standard input is no terminal; --yes does it without"
    )]
    NobodyToAsk,
    /// A path that Slurm could not read.
    #[error("{flag}: {} cannot be written in slurm.conf; expected a path without blanks, quotes, `#`, `%` and backslashes", .path.display())]
    PathUnusable {
        /// The flag that names it.
        flag: &'static str,
        /// The path.
        path: PathBuf,
    },
    /// A file cannot be written.
    #[error("cannot write {}: {source}", .path.display())]
    NotWritten {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// Nobody can listen at an address.
    #[error("{flag}: cannot listen at {address}: {source}")]
    NotListening {
        /// The flag that names it.
        flag: &'static str,
        /// The address.
        address: String,
        /// What the system says.
        source: io::Error,
    },
    /// A form of output that the command has no answer in.
    #[error("--output list: only `advise`, `hold`, `holds` and `topology` have CPUs to list")]
    NoList,
    /// A live view needs a terminal.
    #[error("a live view needs a terminal; `berth watch load` and `berth watch holds` write lines")]
    NoTerminal,
    /// A form of output in which there is no picture.
    #[error(
        "--output: a picture is for people; `berth topology`, `berth load` and `berth advise` tell the same as JSON"
    )]
    NoPicture,
    /// The advice has no words in the format asked for.
    #[error("--format: the advice cannot be written so: {0}")]
    NoSuchWords(String),
    /// The answer does not fit the contract that this command was built with.
    #[error("the answer cannot be written as JSON: {0}")]
    Json(String),
    /// The asynchronous runtime cannot be started.
    #[error("cannot start: {0}")]
    Runtime(io::Error),
    /// The answer cannot be written.
    #[error("cannot write the answer: {0}")]
    Output(io::Error),
}

impl Error {
    /// A refusal in words for people who filled the field `allowed` with this flag, and not with --cpus.
    pub(crate) fn with_mask_flag(self, mask: &'static str) -> Self {
        match self {
            Self::Refused { status, .. } => Self::Refused { status, mask },
            other => other,
        }
    }

    /// The exit status that it leads to.
    pub fn exit(&self) -> Exit {
        match self {
            Self::HostFile { .. }
            | Self::HostFileTooLong { .. }
            | Self::HostFileNotText { .. }
            | Self::Tls(_)
            | Self::TlsFile { .. }
            | Self::PathUnusable { .. }
            | Self::NotWritten { .. }
            | Self::NotListening { .. }
            | Self::NobodyToAsk
            | Self::NoPicture
            | Self::NoTerminal
            | Self::NoList => Exit::Usage,
            Self::Unreachable { .. } | Self::Timeout { .. } | Self::Starting { .. } | Self::Ended { .. } => {
                Exit::NoAnswer
            }
            Self::NothingHeld { .. } | Self::NotSafe | Self::NotMended { .. } | Self::NoSuchWords(_) => {
                Exit::Refused
            }
            Self::NotHeld(_) | Self::NotRun(_) | Self::NotBound { .. } => Exit::NotRun,
            Self::NotStarted { source, .. } if source.kind() == io::ErrorKind::NotFound => Exit::NotFound,
            Self::NotStarted { .. } => Exit::NotStarted,
            Self::Refused { status, .. } => refusal::exit(status),
            Self::Json(_) | Self::Runtime(_) | Self::Output(_) => Exit::Fault,
        }
    }

    /// What else there is to say, one line each: every fault of the question, and what to do.
    pub fn advice(&self) -> Vec<String> {
        match self {
            Self::Unreachable { address, .. } => vec![how_to_start(address)],
            Self::Timeout { .. } => vec!["--timeout allows more.".to_owned()],
            Self::Starting { .. } => vec!["Try again in a moment.".to_owned()],
            Self::Refused { status, mask } => refusal::details(status, mask),
            Self::NotHeld(cause) => {
                let mut lines = cause.advice();
                lines.push("--or-run runs it all the same.".to_owned());
                lines
            }
            Self::NotRun(cause) => cause.advice(),
            Self::NotMended { failed, .. } => failed.clone(),
            _ => Vec::new(),
        }
    }
}

fn how_to_start(address: &Address) -> String {
    let listen = match address {
        Address::Unix(path) => format!("berthd --uds {}", path.display()),
        Address::Tcp(host) => format!("berthd --tcp {host}"),
        Address::Tls(_) => {
            return "Is berthd started there, with TLS? --server or BERTH_SERVER names another address."
                .to_owned();
        }
    };
    format!("Start one with `{listen}`, or name another address with --server or BERTH_SERVER.")
}
