//! Behaviour of the daemon, one module each. Each asks a real server, over TCP and over a unix socket.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod access;
mod admin;
mod advise;
mod audit;
mod authorisation;
mod bad_input;
mod config;
mod corpora;
mod docs;
mod drain;
mod explain;
mod health;
mod here;
mod holds;
mod holds_of_owners;
mod holds_on_host;
mod hostile;
mod hotplug;
mod imports;
mod kills;
mod limits;
mod load;
mod marks;
mod predict;
mod profiles;
mod program;
mod reflection;
mod relay;
mod rules;
mod sandbox;
mod skew;
mod store;
mod support;
mod sysfs;
mod tls;
mod topologies;
mod trace;
mod uds;
mod unit;
mod unserved;
mod users;
mod verify;
