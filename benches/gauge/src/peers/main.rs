//! Measures the service beside servers of others, in one run: `benches/peers/run` starts it.
//!
//! ```text
//! peers [--quick] [--keep] ALGONIUS [-- PEER...]...
//! ```
//!
//! A peer is a command; the absolute path of `cat` is appended as its last argument. It prints its address and its
//! components in one line, and answers JSON-RPC of A2A 1.0 at `/`.
#![expect(clippy::expect_used, reason = "a bench that cannot measure must not print numbers")]
#![expect(clippy::print_stdout, reason = "a bench prints what it measured")]

mod contender;
mod table;

use std::time::Duration;

use algonius_gauge::load::{StopCondition, run_load};
use algonius_gauge::round::Rounds;
use algonius_gauge::run::OperationTimes;
use algonius_gauge::spawn_limit::{SpawnRateBaseline, core_count};
use algonius_gauge::{machine, page, role};
use contender::Contender;
use table::ContenderRow;
use tokio::runtime::Builder;
use tokio::time::sleep;

/// Bytes of each message, and of its answer.
const MESSAGE_BYTES: usize = 1024;

/// Number of requests in flight in the wide runs.
const PARALLEL_REQUESTS: usize = 10;

/// Time for the processes to settle after their start.
const SETTLE_TIME: Duration = Duration::from_secs(2);

fn main() {
    if role::run_requested_role() {
        return;
    }
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let mut commands = arguments.split(|argument| argument == "--");
    let own_arguments = commands.next().unwrap_or_default();
    let program = own_arguments
        .iter()
        .find(|argument| !argument.starts_with("--"))
        .expect("the program to measure");
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let text = runtime.block_on(async {
        let mut contenders = vec![Contender::start_service(program).await];
        contenders.extend(commands.map(Contender::start_peer));
        for Contender { address, name, .. } in &contenders {
            println!("{address} is {name}");
        }
        measure(&contenders).await
    });
    println!("{text}");
    if own_arguments.iter().any(|argument| argument == "--keep") {
        page::write_sections(&[("peers", text)]);
    }
}

/// Returns the measured text for the page.
async fn measure(contenders: &[Contender]) -> String {
    sleep(SETTLE_TIME).await;
    let idle_memory: Vec<_> = contenders.iter().map(Contender::memory_bytes).collect();
    let mut request_counts = Vec::new();
    for contender in contenders {
        contender.verify(MESSAGE_BYTES).await;
        // The first requests are slow in some languages.
        request_counts.push(measure_contender(contender, PARALLEL_REQUESTS).await.count());
    }
    let rounds = measure_rounds(contenders).await;
    let memory_and_request_counts: Vec<_> = idle_memory.into_iter().zip(request_counts).collect();
    let table = table::markdown(&ContenderRow::for_contenders(
        contenders,
        &rounds,
        &memory_and_request_counts,
    ));
    let (limit_rate, bare_ms) =
        (rounds.median_of("L", OperationTimes::rate), rounds.median_of("bare", table::median_ms));
    format!("{table}\nL: {limit_rate:.0}/s; bare: p50 {bare_ms:.2} ms. {}", machine::description())
}

/// Measures all contenders and both baselines, in turns.
async fn measure_rounds(contenders: &[Contender]) -> Rounds {
    let (baseline, mut rounds) = (SpawnRateBaseline::for_cat(MESSAGE_BYTES), Rounds::default());
    for _ in 0..Rounds::count() {
        rounds.add("L", baseline.run(core_count(), Rounds::run_duration()));
        rounds.add("bare", baseline.run(1, Rounds::run_duration()));
        for contender in contenders {
            for in_flight in [PARALLEL_REQUESTS, 1] {
                rounds.add(
                    &contender.series_name(in_flight),
                    measure_contender(contender, in_flight).await,
                );
            }
        }
    }
    rounds
}

async fn measure_contender(contender: &Contender, in_flight: usize) -> OperationTimes {
    run_load(
        contender.address,
        &contender.load_request,
        in_flight,
        StopCondition::Elapsed(Rounds::run_duration()),
    )
    .await
}
