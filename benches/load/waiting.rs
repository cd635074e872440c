//! Ten thousand who wait, against ten.

use std::time::Duration;

use algonius_gauge::load::window;
use algonius_gauge::part::is_quick;
use algonius_gauge::process::resident;
use algonius_gauge::report::{Curve, Goal, Report, Row};
use algonius_gauge::round::Rounds;
use algonius_gauge::run::{Run, median};
use algonius_gauge::service::Service;
use tokio::time::{Instant, sleep};

use super::{BYTES, PROGRAM, SERVER, cat};

/// How many are let in at once.
const AT_ONCE: usize = 10;

/// Descriptors for what is not a connection.
const SPARE: usize = 500;

/// How long so many may take to be accepted.
const PATIENCE: Duration = Duration::from_secs(120);

/// Resident bytes of each round, for each number that waits.
type Memory = Vec<Vec<f64>>;

/// Measures row 8.
pub(crate) async fn measure(descriptors: usize, report: &mut Report) {
    let most = descriptors.saturating_sub(SPARE).min(10_000);
    let along = [10, 100, 1000, most];
    let (mut rounds, mut memory) = (Rounds::default(), Memory::new());
    for _ in 0..if is_quick() { 1 } else { 3 } {
        memory.push(round(&along, &mut rounds).await);
    }
    rows(most, &rounds, &memory, report);
    let curve = |name: &str, up: &str, points| Curve {
        name: name.to_owned(),
        across: "waiting requests".to_owned(),
        up: up.to_owned(),
        points,
    };
    let rate = |waiting: usize| rounds.ratio(&kind(waiting), &kind(10), Run::rate);
    let points = along.map(|waiting| (waiting as f64, rate(waiting)));
    report.curve(curve("waiting", "throughput, × that of 10 waiting", points.to_vec()));
    let resident = |at: usize| median(memory.iter().filter_map(|round| round.get(at).copied()));
    let points =
        along.iter().enumerate().map(|(at, waiting)| (*waiting as f64, resident(at) / 1e6));
    report.curve(curve("waiting-memory", "resident memory, MB", points.collect()));
}

fn rows(most: usize, rounds: &Rounds, memory: &Memory, report: &mut Report) {
    let [many, few] = [most, 10].map(|waiting| rounds.of(&kind(waiting), Run::rate));
    report.row(Row {
        number: 8,
        what: format!("{most} waiting: throughput against 10 waiting"),
        value: rounds.ratio(&kind(most), &kind(10), Run::rate),
        unit: "× few".to_owned(),
        goal: Goal::AtLeast(0.9, 0.98),
        behind: format!("{many:.0}/s against {few:.0}/s"),
    });
    let growth = |round: &Vec<f64>| round.last().zip(round.first()).map(|(most, few)| most - few);
    let growth = median(memory.iter().filter_map(growth));
    report.row(Row {
        number: 8,
        what: format!("{most} waiting: memory of each, with its connection"),
        value: growth / (most - 10) as f64 / 1e3,
        unit: "KB".to_owned(),
        goal: Goal::AtMost(40.0, 25.0),
        behind: format!("resident {:.1} MB more than with 10; a text of 1 KiB each", growth / 1e6),
    });
}

fn kind(waiting: usize) -> String {
    format!("{waiting} waiting")
}

/// Lets ever more wait for one service; its memory with each.
async fn round(along: &[usize], rounds: &mut Rounds) -> Vec<f64> {
    let service = Service::start(PROGRAM, SERVER, &cat(20_000)).await;
    let asked = service.rpc("cat", BYTES);
    let mut memory = Vec::new();
    for &waiting in along {
        while service.queued("cat", 10).await > 0 {} // What nobody waits for any more goes first.
        let target = (service.address, &asked);
        let settled = until_waiting(&service, waiting);
        let run = window(target, waiting + AT_ONCE, settled, Rounds::lasting()).await;
        memory.push(service.sum(resident));
        rounds.take(&kind(waiting), run);
    }
    memory
}

/// Waits until nearly all of so many are in the queue; the others are on their way.
async fn until_waiting(service: &Service, waiting: usize) {
    let (begin, wanted) = (Instant::now(), waiting.saturating_sub(5) * 95 / 100);
    while service.queued("cat", 0).await < wanted as u64 {
        assert!(begin.elapsed() < PATIENCE, "{waiting} requests are not accepted");
        sleep(Duration::from_millis(100)).await;
    }
}
