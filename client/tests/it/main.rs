//! The command line as it is used: the real `berth`, and the real `berthd` on a unix socket or a TCP port.

#![allow(clippy::expect_used, reason = "helpers of tests fail as tests do")]

mod away;
mod berth;
mod berthd;
mod chart;
mod completions;
mod front;
mod grpcurl;
mod health;
mod help;
mod here;
mod holds;
mod keep;
mod kube;
mod man;
mod map;
mod nri;
mod readme;
mod refusals;
mod run;
mod shown;
mod slurm;
mod tls;
mod tools;
mod top;
mod turin;
mod verify;
mod watch;
