//! Measuring tools of the benches: baselines in the same run, and the resulting rows.
//!
//! A bench creates one [`report::BenchReport`], adds rows and curves, and stores it; the table of `docs/performance.md`
//! is generated from all stored reports. The subject and its baseline alternate in rounds, so that noise affects both;
//! see [`round::Rounds`].
#![expect(clippy::expect_used, reason = "a bench that cannot measure must not print numbers")]
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

pub mod a2a_requests;
pub mod baseline_server;
pub mod client;
pub mod load;
pub mod machine;
pub mod page;
pub mod process;
pub mod report;
pub mod role;
pub mod round;
pub mod run;
pub mod service;
pub mod spawn;
pub mod spawn_limit;
