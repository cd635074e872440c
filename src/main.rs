//! The `algonius` program.

fn main() {}
