//! Measuring tools of the benches: baselines in the same run, and the resulting rows.
//!
//! A bench creates one [`report::Report`], adds rows and curves, and stores it; the table of `docs/performance.md` is
//! generated from all stored reports. The subject and its baseline alternate in rounds, so that noise affects both; see
//! [`round::Rounds`].
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
