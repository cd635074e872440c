//! The request path end to end, next to a bare spawn of the same program.

fn main() {}
