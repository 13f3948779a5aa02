//! Berth's command line: asks berthd and shows its answers.
//!
//! [`cli`] holds what can be typed, with its help; `command` has one file per command, which asks the server and
//! hands the answer to `render` (for people, on top of `text`) or to `json` (for programs). Answers go to stdout,
//! everything else to stderr; [`Exit`] says how it went.
//!
//! Of Berth's other crates it uses the wire contract, and of the model only sets of CPUs.

mod address;
mod affinity;
mod child;
pub mod cli;
mod command;
mod connection;
mod error;
mod exit;
mod flags;
mod follow;
mod json;
mod kube;
mod out;
mod refusal;
mod render;
mod run;
pub mod slurm;
mod text;
mod tls;

pub use address::{Address, Error as AddressError};
pub use error::Error;
pub use exit::Exit;
pub use run::run;
pub use text::{Colour, Page};
