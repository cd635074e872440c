//! Cost of 100,000 schedules: while none is due, when some are, in memory, and their lateness.
//!
//! `benches/README.md` explains the output.
#![expect(clippy::expect_used, reason = "a bench that cannot measure must not print numbers")]

mod firing;
mod tree;

use std::time::Duration;

use algonius_gauge::part::is_quick;
use algonius_gauge::process::{awake, resident};
use algonius_gauge::report::{Curve, Goal, Report, Row};
use tokio::runtime::Builder;
use tokio::time::sleep;

use tree::{Standing, quiet};

/// Number of schedules.
const MANY: usize = 100_000;

/// Interval between evaluations at which their cost is measurable; a service uses twenty seconds.
const NAP: Duration = Duration::from_millis(4);

/// Time beyond the duration of this bench.
const FOREVER: Duration = Duration::from_secs(86_400);

fn main() {
    // The processor time of an ended thread would be missing from the sum.
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .thread_keep_alive(FOREVER)
        .enable_all()
        .build()
        .expect("a runtime");
    let mut report = Report::of("schedules");
    runtime.block_on(async {
        standing(&mut report).await;
        firing::measure(&mut report).await;
    });
    report.keep();
}

/// Cost of schedules while none is due.
struct Cost {
    /// Microseconds of processor time per evaluation.
    tick: f64,
    /// Resident bytes of the process.
    resident: f64,
    /// Seconds until the tree was started.
    took: f64,
}

async fn standing(report: &mut Report) {
    let counts = [0, MANY / 100, MANY / 10, MANY];
    let mut costs = Vec::new();
    for count in counts {
        costs.push(cost(count).await);
    }
    let bare = bare().await;
    let (Some(none), Some(all)) = (costs.first(), costs.last()) else { return };
    let each = (all.resident - none.resident) / MANY as f64;
    report.row(row(
        &format!("{MANY} schedules: idle tick"),
        all.tick,
        "µs",
        Goal::AtMost(10.0, 5.0),
        format!(
            "processor time of all threads for each nap; without schedules {:.2} µs; a bare sleep \
             of the same length {bare:.2} µs",
            none.tick
        ),
    ));
    report.row(row(
        &format!("{MANY} schedules: idle tick, beyond a bare sleep"),
        all.tick - bare,
        "µs",
        Goal::Told,
        "a bare sleep is a task that does nothing else; it costs what the system takes to wake a thread"
            .to_owned(),
    ));
    let behind = format!("taking them up at the first start: {:.2} s", all.took);
    report.row(row("memory of each", each, "B", Goal::AtMost(500.0, 250.0), behind));
    report.curve(Curve {
        name: "schedules".to_owned(),
        across: "schedules".to_owned(),
        up: "µs of an idle tick".to_owned(),
        points: counts.iter().zip(&costs).map(|(count, cost)| (*count as f64, cost.tick)).collect(),
    });
}

async fn cost(count: usize) -> Cost {
    let tree = Standing::with(quiet(count), NAP).await;
    let took = tree.took.as_secs_f64();
    settled().await;
    let tick = tick().await;
    let resident = resident(std::process::id());
    tree.end().await;
    Cost { tick, resident, took }
}

/// Returns the microseconds of processor time per evaluation in an idle process.
async fn tick() -> f64 {
    let own = std::process::id();
    let lasting = if is_quick() { 2 } else { 10 };
    let before = awake(own);
    sleep(Duration::from_secs(lasting)).await; // The measured interval.
    let spent = awake(own) - before;
    // The timer adds a millisecond to each interval, and the wakeup up to another one.
    let ticks = lasting as f64 * 1e3 / (NAP.as_secs_f64() * 1e3 + 2.0);
    spent * 1e3 / ticks
}

/// Returns the same for a task that only sleeps for this interval: the unavoidable cost.
async fn bare() -> f64 {
    let sleeper = tokio::spawn(async {
        loop {
            sleep(NAP + Duration::from_millis(1)).await; // The measured operation.
        }
    });
    let tick = tick().await;
    sleeper.abort();
    tick
}

/// Waits until the process is idle: each schedule was evaluated once by then.
async fn settled() {
    let own = std::process::id();
    loop {
        let before = awake(own);
        sleep(Duration::from_millis(500)).await;
        if awake(own) - before < 25.0 {
            return;
        }
    }
}

pub(crate) fn row(what: &str, value: f64, unit: &str, goal: Goal, behind: String) -> Row {
    Row { number: 17, what: what.to_owned(), value, unit: unit.to_owned(), goal, behind }
}
