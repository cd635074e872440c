//! Cost of 100,000 schedules: while none is due, when some are, in memory, and their lateness.
//!
//! `benches/README.md` explains the output.
#![expect(clippy::expect_used, reason = "a bench that cannot measure must not print numbers")]

mod firing;
mod tree;

use std::time::Duration;

use algonius_gauge::process::{resident, thread_cpu_time_ms};
use algonius_gauge::report::{BenchReport, Curve, Goal, ResultRow};
use algonius_gauge::role::is_quick;
use tokio::runtime::Builder;
use tokio::time::sleep;

use tree::{ScheduleTree, idle_schedules};

/// Number of schedules.
const SCHEDULE_COUNT: usize = 100_000;

/// Interval between evaluations at which their cost is measurable; a service uses twenty seconds.
const EVALUATION_INTERVAL: Duration = Duration::from_millis(4);

/// Time beyond the duration of this bench.
const BEYOND_BENCH: Duration = Duration::from_secs(86_400);

fn main() {
    // The processor time of an ended thread would be missing from the sum.
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .thread_keep_alive(BEYOND_BENCH)
        .enable_all()
        .build()
        .expect("a runtime");
    let mut report = BenchReport::of("schedules");
    runtime.block_on(async {
        measure_idle(&mut report).await;
        firing::measure(&mut report).await;
    });
    report.store();
}

/// Cost of schedules while none is due.
struct IdleCost {
    /// Microseconds of processor time per evaluation.
    tick: f64,
    /// Resident bytes of the process.
    resident: f64,
    /// Seconds until the tree was started.
    start_seconds: f64,
}

async fn measure_idle(report: &mut BenchReport) {
    let counts = [0, SCHEDULE_COUNT / 100, SCHEDULE_COUNT / 10, SCHEDULE_COUNT];
    let mut costs = Vec::new();
    for count in counts {
        costs.push(cost(count).await);
    }
    let bare = sleep_time().await;
    let (Some(none), Some(all)) = (costs.first(), costs.last()) else { return };
    let each = (all.resident - none.resident) / SCHEDULE_COUNT as f64;
    report.row(row(
        &format!("{SCHEDULE_COUNT} schedules: idle tick"),
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
        &format!("{SCHEDULE_COUNT} schedules: idle tick, beyond a bare sleep"),
        all.tick - bare,
        "µs",
        Goal::Unrated,
        "a bare sleep is a task that does nothing else; it costs what the system takes to wake a thread"
            .to_owned(),
    ));
    let behind = format!("taking them up at the first start: {:.2} s", all.start_seconds);
    report.row(row("memory of each", each, "B", Goal::AtMost(500.0, 250.0), behind));
    report.curve(Curve {
        name: "schedules".to_owned(),
        across: "schedules".to_owned(),
        up: "µs of an idle tick".to_owned(),
        points: counts.iter().zip(&costs).map(|(count, cost)| (*count as f64, cost.tick)).collect(),
    });
}

async fn cost(count: usize) -> IdleCost {
    let tree = ScheduleTree::with(idle_schedules(count), EVALUATION_INTERVAL).await;
    let start_seconds = tree.start_duration.as_secs_f64();
    wait_until_idle().await;
    let tick = evaluation_time().await;
    let resident = resident(std::process::id());
    tree.end().await;
    IdleCost { tick, resident, start_seconds }
}

/// Returns the microseconds of processor time per evaluation in an idle process.
async fn evaluation_time() -> f64 {
    let own = std::process::id();
    let seconds = if is_quick() { 2 } else { 10 };
    let before = thread_cpu_time_ms(own);
    sleep(Duration::from_secs(seconds)).await; // The measured interval.
    let spent = thread_cpu_time_ms(own) - before;
    // The timer adds a millisecond to each interval, and the wakeup up to another one.
    let ticks = seconds as f64 * 1e3 / (EVALUATION_INTERVAL.as_secs_f64() * 1e3 + 2.0);
    spent * 1e3 / ticks
}

/// Returns the same for a task that only sleeps for this interval: the unavoidable cost.
async fn sleep_time() -> f64 {
    let sleeper = tokio::spawn(async {
        loop {
            sleep(EVALUATION_INTERVAL + Duration::from_millis(1)).await; // The measured operation.
        }
    });
    let tick = evaluation_time().await;
    sleeper.abort();
    tick
}

/// Waits until the process is idle: each schedule was evaluated once by then.
async fn wait_until_idle() {
    let own = std::process::id();
    loop {
        let before = thread_cpu_time_ms(own);
        sleep(Duration::from_millis(500)).await;
        if thread_cpu_time_ms(own) - before < 25.0 {
            return;
        }
    }
}

pub(crate) fn row(
    description: &str,
    value: f64,
    unit: &str,
    goal: Goal,
    behind: String,
) -> ResultRow {
    ResultRow {
        number: 17,
        description: description.to_owned(),
        value,
        unit: unit.to_owned(),
        goal,
        behind,
    }
}
