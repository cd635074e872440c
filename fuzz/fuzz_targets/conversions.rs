//! From one dialect to another. What must hold is said in `tests/fuzz/conversions.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::conversions::check(bytes));
