//! The Berth daemon as a library: reads the host, keeps one immutable snapshot of it, and answers over gRPC where
//! tasks would go and where they should.
//!
//! [`ingest`] reads → `snapshot` is published by one task → `service` answers from it, through `convert` → tonic.

mod admin;
mod audit;
pub mod auth;
pub mod config;
mod convert;
mod daemon;
mod ending;
mod follow;
pub mod ingest;
mod layers;
pub mod ledger;
mod listen;
mod metrics;
mod serve;
mod service;
mod shares;
mod snapshot;
mod systemd;
pub mod telemetry;

pub use daemon::{Daemon, Error, check};
pub use listen::Error as ListenError;
