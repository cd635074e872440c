//! What the service takes while it does nothing, and what much that stands around costs who does
//! something: agents, connections, memory.
//!
//! `benches/README.md` says how to read what it prints.
#![expect(clippy::expect_used, reason = "a bench that cannot measure must not print numbers")]

mod agents;
mod crowd;
mod rest;

use algonius_gauge::report::Report;
use algonius_gauge::{part, process};
use tokio::runtime::Builder;

/// The program under measurement.
const PROGRAM: &str = env!("CARGO_BIN_EXE_algonius");

fn main() {
    if part::is_played() {
        return;
    }
    let descriptors = process::descriptors();
    // One thread: the client leaves the processors to what it measures.
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut report = Report::of("standing");
    runtime.block_on(async {
        rest::measure(&mut report).await;
        agents::measure(&mut report).await;
        crowd::measure(descriptors, &mut report).await;
    });
    report.keep();
}
