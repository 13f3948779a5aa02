#![no_main]

#[path = "../targets.rs"]
#[allow(dead_code, reason = "each program uses one target")]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::cpulists(bytes));
