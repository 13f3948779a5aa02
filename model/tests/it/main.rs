//! Tests of `berth-model` against real kernels' records and published vectors, linked as one binary.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

mod advice;
mod agree;
mod allocations;
mod bursts;
mod cases;
mod corners;
mod corpora;
mod docs;
mod domains;
mod explain;
mod formats;
mod holders;
mod holds;
mod hwloc;
mod imb_numa;
mod lopsided;
mod machines;
mod marked;
mod mg;
mod optimum;
mod oracle;
mod properties;
mod records;
mod settle;
mod small;
mod strategies;
mod stream_ascending;
mod stream_splits;
mod stream_traces;
mod stream_unpinned;
mod trace;
mod wake;
mod worst_cases;
