//! The envelope of older clients. What must hold is said in `tests/fuzz/envelope.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::envelope::check(bytes));
