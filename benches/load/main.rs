//! Overload: bursts, queues, and many concurrent agents.
//!
//! `benches/README.md` explains the output.
#![expect(clippy::expect_used, reason = "a bench that cannot measure must not print numbers")]

mod agents;
mod burst;
mod jobs;
mod waiting;

use algonius_gauge::report::Report;
use algonius_gauge::{part, process};
use tokio::runtime::Builder;

/// Program under measurement.
const PROGRAM: &str = env!("CARGO_BIN_EXE_algonius");

/// Bytes of each message, and of its answer.
const BYTES: usize = 1024;

/// Settings with enough connections, and a long enough queue.
const SERVER: &str = "max_connections = 20000\ndrain_timeout = 0\n";

fn main() {
    if part::is_played() {
        return;
    }
    let descriptors = process::descriptors();
    // One thread: the client leaves the processors to the service.
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut report = Report::of("load");
    runtime.block_on(async {
        if part::is_wanted("burst") {
            burst::measure(&mut report).await;
        }
        if part::is_wanted("jobs") {
            jobs::measure(&mut report).await;
        }
        if part::is_wanted("agents") {
            agents::measure(&mut report).await;
        }
        if part::is_wanted("waiting") {
            waiting::measure(descriptors, &mut report).await;
        }
    });
    if part::is_whole() {
        report.keep();
    }
}

/// Returns an agent `cat` with a queue of this length.
fn cat(waiting: usize) -> String {
    format!(
        "[limits]\nqueue_depth_max = 20000\n\
         [agents.cat]\ncommand = \"cat\"\nmax_concurrent = 10\nqueue_depth = {waiting}\n"
    )
}
