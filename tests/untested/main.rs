//! The end of `cargo test`: how many tests this run has skipped, and why.
//!
//! Cargo runs the tests of packages in the order of their names, and this package last; `tests/tidy` checks that no
//! package comes after this one. It has no harness, so that nothing captures
//! what it prints.
#![expect(clippy::print_stdout, reason = "the list is the purpose of this target")]

fn main() {
    // Other runners query every target for its tests; this target has none.
    if std::env::args().any(|word| word == "--list") {
        return;
    }
    let skips = algonius_skips::recorded_skips();
    println!("\nskipped: {} tests of this run could not run here, or not in full", skips.len());
    for line in &skips {
        println!("  {line}");
    }
    println!();
    algonius_skips::remove_skip_lists();
}
