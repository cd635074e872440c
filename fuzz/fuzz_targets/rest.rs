//! Bodies over HTTP, of both versions. What must hold is said in `tests/fuzz/rest.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::rest::check(bytes));
