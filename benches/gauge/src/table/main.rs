//! Writes the table.
fn main() {}
