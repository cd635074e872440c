//! Output of agents: large outputs, streams, and the delay until a result is readable.
//!
//! `benches/README.md` explains the output.
#![expect(clippy::expect_used, reason = "a bench that cannot measure must not print numbers")]
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

mod followers;
mod printed_times;
mod result_delay;
mod session;
mod sizes;
mod streamed;

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
    let mut report = BenchReport::new("output");
    runtime.block_on(async {
        if role::is_selected("sizes") {
            sizes::measure(&mut report).await;
        }
        if role::is_selected("streamed") {
            streamed::measure(&mut report).await;
        }
        if role::is_selected("session") {
            session::measure(&mut report).await;
        }
        if role::is_selected("result_delay") {
            result_delay::measure(&mut report).await;
        }
        if role::is_selected("followers") {
            followers::measure(descriptor_limit, &mut report).await;
        }
    });
    if role::is_complete_run() {
        report.store();
    }
}
