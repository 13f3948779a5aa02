//! The pure core of Berth: where a Linux host's own scheduler would put new tasks, and where they should go
//! instead.
//!
//! Plain data in, plain data out: no I/O, no clock, no async, no gRPC, no hwloc. From the ground up:
//! [`cpuset`] (sets of CPUs and their text forms), [`topology`] (PUs, cores, LLCs, NUMA nodes, packages),
//! [`profile`] (one kernel's placement rules as data), [`domains`] (the scheduling domains that kernel builds),
//! [`load`] (what already runs), [`predict`] (the fork and exec slow path), [`advise`] (policies, forms, proof),
//! [`hold`] (CPUs kept for owners) and [`format`](mod@format) (masks in the words of launchers).

pub mod advise;
pub mod cpuset;
pub mod domains;
pub mod format;
pub mod hold;
pub mod load;
pub mod predict;
pub mod profile;
pub mod topology;
pub mod verify;

pub use cpuset::{Cpu, CpuSet};
