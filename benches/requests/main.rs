//! End-to-end requests, against L: the maximum of programs that this machine starts, feeds and reads.
//!
//! `benches/README.md` explains the output.
#![expect(clippy::expect_used, reason = "a bench that cannot measure must not print numbers")]
#![expect(clippy::print_stdout, reason = "a bench says what it leaves out")]

mod cognitive;
mod durable;
mod grpc;
mod kinds;
mod process_holder;
mod team;
mod transports;
mod without_program;

use algonius_gauge::report::{BenchReport, Goal, ResultRow};
use algonius_gauge::round::Rounds;
use algonius_gauge::spawn_limit::{SpawnRateBaseline, core_count};
use algonius_gauge::{role, service::Service};
use tokio::runtime::Builder;

/// Program under measurement.
const PROGRAM: &str = env!("CARGO_BIN_EXE_algonius");

/// Bytes of each message, and of its answer.
const MESSAGE_BYTES: usize = 1024;

/// Read-only agent, like that of the shipped configuration, with a longer queue, and a team of it.
const AGENTS_CONFIG: &str = "[agents.cat]\ncommand = \"cat\"\nmax_concurrent = 10\nqueue_depth = 1000\n\
                   [agents.crew]\nkind = \"team\"\nteam.steps = [\"cat\", \"cat\", \"cat\"]\n";

fn main() {
    if role::run_requested_role() {
        return;
    }
    // One thread: the client leaves the processors to the service.
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let mut report = BenchReport::new("requests");
    runtime.block_on(async {
        let service = Service::start(PROGRAM, "", AGENTS_CONFIG).await;
        if role::is_selected("limit") {
            compare_with_c(&mut report);
        }
        if role::is_selected("transports") {
            transports::measure(&service, &mut report).await;
        }
        if role::is_selected("without_program") {
            without_program::measure(&service, &mut report).await;
        }
        if role::is_selected("team") {
            team::measure(&service, &mut report).await;
        }
        if role::is_selected("cognitive") {
            cognitive::measure(&mut report).await;
        }
        if role::is_selected("kinds") {
            kinds::measure(&mut report).await;
        }
        if role::is_selected("durable") {
            durable::measure(&mut report).await;
        }
        if role::is_selected("process_holder") {
            process_holder::measure(&mut report).await;
        }
    });
    if role::is_complete_run() {
        report.store();
    }
}

/// Compares L with the same spawner in C.
fn compare_with_c(report: &mut BenchReport) {
    let (baseline, mut rounds) = (SpawnRateBaseline::for_cat(MESSAGE_BYTES), Rounds::default());
    for _ in 0..Rounds::count() {
        rounds.add("L", baseline.run(core_count(), Rounds::run_duration()));
        let Some(run) = baseline.run_in_c(core_count(), Rounds::run_duration()) else {
            println!("no C compiler: the yardstick is not compared with the same in C");
            return;
        };
        rounds.add("C", run);
    }
    let (rust_rate, c_rate) =
        (rounds.median_of("L", |run| run.rate()), rounds.median_of("C", |run| run.rate()));
    report.add_row(ResultRow {
        number: 1,
        description: "the yardstick L, against the same in C".to_owned(),
        value: rounds.median_ratio("L", "C", |run| run.rate()),
        unit: "× C".to_owned(),
        goal: Goal::AtLeast(0.9, 0.9),
        details: format!("L {rust_rate:.0}/s by {} spawners, C {c_rate:.0}/s", core_count()),
    });
}
