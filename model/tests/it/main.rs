//! Tests of `berth-model` against real kernels' records and published vectors, linked as one binary.

mod bursts;
mod domains;
mod imb_numa;
mod lopsided;
mod machines;
mod records;
mod small;
mod stream;
