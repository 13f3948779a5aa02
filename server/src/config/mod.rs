//! The whole configuration: flags, then `BERTH_*` of the environment, then defaults. It is read and checked before
//! anything is opened, and everything that is wrong with it is told at once.

mod args;
mod read;

pub use read::Invalid;

use args::Args;
use clap::{CommandFactory, Parser};
use std::{ffi::OsString, net::SocketAddr, path::PathBuf, time::Duration};

/// What the daemon is to do.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where to listen on TCP.
    pub tcp: Option<SocketAddr>,
    /// Where to listen on a unix socket.
    pub uds: Option<PathBuf>,
    /// The host to answer about.
    pub topology: Topology,
    /// The kernel that the operator stated: a release or a profile's name.
    pub kernel: Option<String>,
    /// The CPU vendor that the operator stated.
    pub cpu_vendor: Option<String>,
    /// The CPU family that the operator stated.
    pub cpu_family: Option<u32>,
    /// What is logged, and how.
    pub log: Log,
    /// Written once the daemon serves.
    pub ready_file: Option<PathBuf>,
    /// Whether the load is measured: not if the host is a description.
    pub measure_load: bool,
    /// Time between two readings of the load.
    pub sample_interval: Duration,
    /// The longest that a request may take.
    pub deadline: Duration,
    /// Requests that are answered at a time.
    pub max_requests: usize,
    /// The longest that requests may still take when the daemon is told to stop.
    pub shutdown_timeout: Duration,
    /// This program, which is started anew for each reading through hwloc.
    pub program: PathBuf,
    /// Where `proc` and `sys` lie; `/` but in tests.
    pub root: PathBuf,
}

/// The host to answer about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Topology {
    /// The one that the daemon runs on.
    Live,
    /// The one that an hwloc XML describes.
    Xml {
        /// The file's name, for messages.
        path: PathBuf,
        /// What it holds.
        text: String,
    },
    /// The one that an hwloc synthetic description describes.
    Synthetic(String),
}

/// What is logged, and how.
#[derive(Debug, Clone)]
pub struct Log {
    /// The filter, in the form of `RUST_LOG`.
    pub filter: String,
    /// As JSON, one object a line.
    pub json: bool,
}

/// Why there is no configuration.
#[derive(Debug)]
pub enum Stop {
    /// The help or the version was asked for, or an argument is none. Prints itself.
    Said(clap::Error),
    /// Something is wrong.
    Invalid(Invalid),
}

impl Config {
    /// Reads it from the arguments, the program's name first, and the environment.
    ///
    /// # Errors
    ///
    /// If help was asked for, or something is wrong.
    pub fn try_from_args<A: Into<OsString> + Clone>(args: impl IntoIterator<Item = A>) -> Result<Self, Stop> {
        let args = Args::try_parse_from(args).map_err(Stop::Said)?;
        read::config(args).map_err(Stop::Invalid)
    }

    /// The help text.
    pub fn help() -> String {
        Args::command().render_long_help().to_string()
    }
}
