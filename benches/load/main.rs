//! Overload: bursts, queues, and many concurrent agents.
//!
//! `benches/README.md` explains the output.
#![expect(clippy::expect_used, reason = "a bench that cannot measure must not print numbers")]

mod agents;
mod burst;
mod jobs;
mod waiting;

use algonius_gauge::report::BenchReport;
use algonius_gauge::{process, role};
use tokio::runtime::Builder;

/// Program under measurement.
const PROGRAM: &str = env!("CARGO_BIN_EXE_algonius");

/// Bytes of each message, and of its answer.
const MESSAGE_BYTES: usize = 1024;

/// Settings with enough connections, and a long enough queue.
const SERVER_CONFIG: &str = "max_connections = 20000\ndrain_timeout = 0\n";

fn main() {
    if role::run_requested_role() {
        return;
    }
    let descriptor_limit = process::raise_descriptor_limit();
    // One thread: the client leaves the processors to the service.
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut report = BenchReport::new("load");
    runtime.block_on(async {
        if role::is_selected("burst") {
            burst::measure(&mut report).await;
        }
        if role::is_selected("jobs") {
            jobs::measure(&mut report).await;
        }
        if role::is_selected("agents") {
            agents::measure(&mut report).await;
        }
        if role::is_selected("waiting") {
            waiting::measure(descriptor_limit, &mut report).await;
        }
    });
    if role::is_complete_run() {
        report.store();
    }
}

/// Returns an agent `cat` with a queue of this length.
fn cat_agent_config(queue_depth: usize) -> String {
    format!(
        "[limits]\nqueue_depth_max = 20000\n\
         [agents.cat]\ncommand = \"cat\"\nmax_concurrent = 10\nqueue_depth = {queue_depth}\n"
    )
}
