//! What the benches measure with: yardsticks in the same run, and the rows that come of them.
//!
//! A bench makes one [`report::Report`], gives it rows and curves, and keeps it; the table of
//! `docs/performance.md` is made of all that were kept. What is measured and its yardstick take turns,
//! in rounds, so that noise meets both; see [`round::Rounds`].
#![expect(clippy::expect_used, reason = "a bench that cannot measure must not print numbers")]
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

pub mod ask;
pub mod bare;
pub mod client;
pub mod limit;
pub mod load;
pub mod machine;
pub mod page;
pub mod part;
pub mod process;
pub mod report;
pub mod round;
pub mod run;
pub mod service;
pub mod spawn;
