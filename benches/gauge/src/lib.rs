//! What the benches measure with: yardsticks in the same run, and the rows that come of them.
//!
//! A bench makes one [`report::Report`], gives it rows and curves, and keeps it; the table of
//! `docs/performance.md` is made of all that were kept.
#![expect(clippy::expect_used, reason = "a bench that cannot measure must not print numbers")]
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

pub mod report;
