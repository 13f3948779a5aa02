#![no_main]

#[path = "../parsers.rs"]
#[allow(dead_code, reason = "each program uses one target")]
mod parsers;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| parsers::tasks(bytes));
