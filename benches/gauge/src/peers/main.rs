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

use algonius_gauge::limit::{Limit, cores};
use algonius_gauge::load::{Until, run};
use algonius_gauge::round::Rounds;
use algonius_gauge::run::Run;
use algonius_gauge::{machine, page, part};
use contender::Contender;
use table::Measured;
use tokio::runtime::Builder;
use tokio::time::sleep;

/// Bytes of each message, and of its answer.
const BYTES: usize = 1024;

/// Number of requests in flight in the wide runs.
const WIDE: usize = 10;

/// Time for the processes to settle after their start.
const SETTLED: Duration = Duration::from_secs(2);

fn main() {
    if part::is_played() {
        return;
    }
    let words: Vec<_> = std::env::args().skip(1).collect();
    let mut commands = words.split(|word| word == "--");
    let own = commands.next().unwrap_or_default();
    let program = own.iter().find(|word| !word.starts_with("--")).expect("the program to measure");
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let text = runtime.block_on(async {
        let mut contenders = vec![Contender::service(program).await];
        contenders.extend(commands.map(Contender::peer));
        for Contender { address, name, .. } in &contenders {
            println!("{address} is {name}");
        }
        measured(&contenders).await
    });
    println!("{text}");
    if own.iter().any(|word| word == "--keep") {
        page::write(&[("peers", text)]);
    }
}

/// Returns the measured text for the page.
async fn measured(contenders: &[Contender]) -> String {
    sleep(SETTLED).await;
    let idle: Vec<_> = contenders.iter().map(Contender::memory).collect();
    let mut asked = Vec::new();
    for contender in contenders {
        contender.is_tried(BYTES).await;
        asked.push(ran(contender, WIDE).await.count()); // The first requests are slow in some languages.
    }
    let rounds = rounds(contenders).await;
    let before: Vec<_> = idle.into_iter().zip(asked).collect();
    let table = table::markdown(&Measured::all(contenders, &rounds, &before));
    let (limit, bare) = (rounds.of("L", Run::rate), rounds.of("bare", table::half));
    format!("{table}\nL: {limit:.0}/s; bare: p50 {bare:.2} ms. {}", machine::told())
}

/// Measures all contenders and both baselines, in turns.
async fn rounds(contenders: &[Contender]) -> Rounds {
    let (limit, mut rounds) = (Limit::of_cat(BYTES), Rounds::default());
    for _ in 0..Rounds::count() {
        rounds.take("L", limit.run(cores(), Rounds::lasting()));
        rounds.take("bare", limit.run(1, Rounds::lasting()));
        for contender in contenders {
            for in_flight in [WIDE, 1] {
                rounds.take(&contender.key(in_flight), ran(contender, in_flight).await);
            }
        }
    }
    rounds
}

async fn ran(contender: &Contender, in_flight: usize) -> Run {
    run(contender.address, &contender.asked, in_flight, Until::Over(Rounds::lasting())).await
}
