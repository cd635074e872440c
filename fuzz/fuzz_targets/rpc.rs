//! Bodies of JSON-RPC, of both versions. What must hold is said in `tests/fuzz/rpc.rs`.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| checks::rpc::check(bytes));
