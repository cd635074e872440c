//! Ten thousand waiting requests, against ten; two thousand in a quick run.

use std::collections::BTreeMap;
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

/// Number of waiting requests in the baseline.
const FEW: usize = 10;

/// Number of concurrent executions.
const AT_ONCE: usize = 10;

/// Descriptors that are not for connections.
const SPARE: usize = 500;

/// Time limit for the next requests to be accepted.
const PATIENCE: Duration = Duration::from_secs(30);

/// Time after which no further round starts.
const ENOUGH: Duration = Duration::from_secs(60);

/// Results for each number of waiting requests.
#[derive(Default)]
struct Measured {
    rounds: Rounds,
    /// Resident bytes of service and process holder.
    memory: BTreeMap<usize, Vec<f64>>,
    /// First bad answer, if there was one.
    bad: Option<String>,
}

impl Measured {
    /// Returns the throughput relative to that with ten waiting requests.
    fn rate(&self, waiting: usize) -> f64 {
        self.rounds.ratio(&kind(waiting), &kind(FEW), Run::rate)
    }

    fn resident(&self, waiting: usize) -> f64 {
        median(self.memory.get(&waiting).into_iter().flatten().copied())
    }
}

/// Measures row 8.
pub(crate) async fn measure(descriptors: usize, report: &mut Report) {
    let wanted = if is_quick() { 2000 } else { 10_000 };
    let most = descriptors.saturating_sub(SPARE).min(wanted);
    let (along, mut measured) = ([FEW, 100, 1000, most], Measured::default());
    let begin = Instant::now();
    for _ in 0..3 {
        round(&along, &mut measured).await;
        if begin.elapsed() > ENOUGH {
            break;
        }
    }
    if measured.memory.contains_key(&most) {
        rows(most, &measured, report);
    } else {
        report.row(row(most, "throughput against 10 waiting", 0.0, &measured));
    }
    let along = along.into_iter().filter(|waiting| measured.memory.contains_key(waiting));
    let curve = |name: &str, up: &str, value: &dyn Fn(usize) -> f64| Curve {
        name: name.to_owned(),
        across: "waiting requests".to_owned(),
        up: up.to_owned(),
        points: along.clone().map(|waiting| (waiting as f64, value(waiting))).collect(),
    };
    let rate = |waiting| measured.rate(waiting);
    report.curve(curve("waiting", "throughput, × that of 10 waiting", &rate));
    let resident = |waiting| measured.resident(waiting) / 1e6;
    report.curve(curve("waiting-memory", "resident memory, MB", &resident));
}

fn rows(most: usize, measured: &Measured, report: &mut Report) {
    let what = "throughput against 10 waiting";
    report.row(row(most, what, measured.rate(most), measured));
    let growth = measured.resident(most) - measured.resident(FEW);
    report.row(Row {
        number: 8,
        what: format!("{most} waiting: memory of each, with its connection"),
        value: growth / (most - FEW) as f64 / 1e3,
        unit: "KB".to_owned(),
        goal: Goal::AtMost(40.0, 25.0),
        behind: format!("{:.1} MB resident more than with 10; 1 KiB of text each", growth / 1e6),
    });
}

fn row(most: usize, what: &str, value: f64, measured: &Measured) -> Row {
    let rate = |waiting| measured.rounds.of(&kind(waiting), Run::rate);
    let behind = match &measured.bad {
        Some(bad) => bad.clone(),
        None => format!("{:.0}/s against {:.0}/s", rate(most), rate(FEW)),
    };
    let (what, unit) = (format!("{most} waiting: {what}"), "× few".to_owned());
    Row { number: 8, what, value, unit, goal: Goal::AtLeast(0.9, 0.98), behind }
}

fn kind(waiting: usize) -> String {
    format!("{waiting} waiting")
}

/// Measures growing numbers of waiting requests at one service.
async fn round(along: &[usize], measured: &mut Measured) {
    let service = Service::start(PROGRAM, SERVER, &cat(20_000)).await;
    let asked = service.rpc("cat", BYTES);
    for &waiting in along {
        while service.queued("cat", 10).await > 0 {} // Abandoned requests leave the queue first.
        let (target, settled) = ((service.address, &asked), |there| until_there(&service, there));
        match window(target, waiting + AT_ONCE, settled, Rounds::lasting()).await {
            Ok(run) => measured.rounds.take(&kind(waiting), run),
            Err(bad) => {
                measured.bad = Some(bad);
                return;
            }
        }
        measured.memory.entry(waiting).or_default().push(service.sum(resident));
    }
}

/// Waits until nearly all of the requests are in the queue; the others run, or are on their way.
async fn until_there(service: &Service, there: usize) -> Result<(), String> {
    let (begin, wanted) = (Instant::now(), there.saturating_sub(AT_ONCE + 5) * 95 / 100);
    while service.queued("cat", 0).await < wanted as u64 {
        if begin.elapsed() >= PATIENCE {
            return Err(format!("{there} requests are not accepted in {} s", PATIENCE.as_secs()));
        }
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
