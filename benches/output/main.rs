//! Output of agents: large outputs, streams, and the delay until a result is readable.
//!
//! `benches/README.md` explains the output.
#![expect(clippy::expect_used, reason = "a bench that cannot measure must not print numbers")]
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

mod followed;
mod readable;
mod sizes;
mod streamed;

use algonius_gauge::report::Report;
use algonius_gauge::{part, process};
use tokio::runtime::Builder;

/// Program under measurement.
const PROGRAM: &str = env!("CARGO_BIN_EXE_algonius");

fn main() {
    if part::is_played() {
        return;
    }
    let descriptors = process::descriptors();
    // One thread: the client leaves the processors to the service.
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut report = Report::of("output");
    runtime.block_on(async {
        if part::is_wanted("sizes") {
            sizes::measure(&mut report).await;
        }
        if part::is_wanted("streamed") {
            streamed::measure(&mut report).await;
        }
        if part::is_wanted("readable") {
            readable::measure(&mut report).await;
        }
        if part::is_wanted("followed") {
            followed::measure(descriptors, &mut report).await;
        }
    });
    if part::is_whole() {
        report.keep();
    }
}
