//! Idle cost of the service, and the effect of many idle agents, connections and bytes on active requests.
//!
//! `benches/README.md` explains the output.
#![expect(clippy::expect_used, reason = "a bench that cannot measure must not print numbers")]

mod agents;
mod background_load;
mod idle_cost;

use algonius_gauge::report::BenchReport;
use algonius_gauge::{process, role};
use tokio::runtime::Builder;

/// Program under measurement.
const PROGRAM: &str = env!("CARGO_BIN_EXE_algonius");

fn main() {
    if role::run_requested_role() {
        return;
    }
    let descriptor_limit = process::raise_descriptor_limit();
    // One thread: the client leaves the processors to the service.
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut report = BenchReport::new("idle");
    runtime.block_on(async {
        idle_cost::measure(&mut report).await;
        agents::measure(&mut report).await;
        background_load::measure(descriptor_limit, &mut report).await;
    });
    report.store();
}
