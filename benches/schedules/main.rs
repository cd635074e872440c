//! Cost of 100,000 schedules: while none is due, when some are, in memory, and their lateness.
//!
//! `benches/README.md` explains the output.
#![expect(clippy::expect_used, reason = "a bench that cannot measure must not print numbers")]

mod firing;
mod tree;

use std::time::Duration;

use algonius_gauge::process::{resident_bytes, thread_cpu_time_ms};
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
const THREAD_KEEP_ALIVE: Duration = Duration::from_secs(86_400);

fn main() {
    // The processor time of an ended thread would be missing from the sum.
    let runtime = Builder::new_multi_thread()
        .worker_threads(2)
        .thread_keep_alive(THREAD_KEEP_ALIVE)
        .enable_all()
        .build()
        .expect("a runtime");
    let mut report = BenchReport::new("schedules");
    runtime.block_on(async {
        measure_idle(&mut report).await;
        firing::measure(&mut report).await;
    });
    report.store();
}

/// Cost of schedules while none is due.
struct IdleCost {
    /// Microseconds of processor time per evaluation.
    evaluation_us: f64,
    /// Resident bytes of the process.
    resident_bytes: f64,
    /// Seconds until the tree was started.
    start_seconds: f64,
}

async fn measure_idle(report: &mut BenchReport) {
    let counts = [0, SCHEDULE_COUNT / 100, SCHEDULE_COUNT / 10, SCHEDULE_COUNT];
    let mut costs = Vec::new();
    for count in counts {
        costs.push(measure_idle_cost(count).await);
    }
    let sleep_us = measure_sleep_us().await;
    let (Some(cost_without_schedules), Some(cost_with_all_schedules)) =
        (costs.first(), costs.last())
    else {
        return;
    };
    let bytes_each = (cost_with_all_schedules.resident_bytes
        - cost_without_schedules.resident_bytes)
        / SCHEDULE_COUNT as f64;
    report.add_row(row(
        &format!("{SCHEDULE_COUNT} schedules: idle tick"),
        cost_with_all_schedules.evaluation_us,
        "µs",
        Goal::AtMost(10.0, 5.0),
        format!(
            "processor time of all threads for each nap; without schedules {:.2} µs; a bare sleep \
             of the same length {sleep_us:.2} µs",
            cost_without_schedules.evaluation_us
        ),
    ));
    report.add_row(row(
        &format!("{SCHEDULE_COUNT} schedules: idle tick, beyond a bare sleep"),
        cost_with_all_schedules.evaluation_us - sleep_us,
        "µs",
        Goal::Unrated,
        "a bare sleep is a task that does nothing else; it costs what the system takes to wake a thread"
            .to_owned(),
    ));
    let details = format!(
        "taking them up at the first start: {:.2} s",
        cost_with_all_schedules.start_seconds
    );
    report.add_row(row("memory of each", bytes_each, "B", Goal::AtMost(500.0, 250.0), details));
    report.add_curve(Curve {
        name: "schedules".to_owned(),
        x_label: "schedules".to_owned(),
        y_label: "µs of an idle tick".to_owned(),
        points: counts
            .iter()
            .zip(&costs)
            .map(|(count, cost)| (*count as f64, cost.evaluation_us))
            .collect(),
    });
}

async fn measure_idle_cost(count: usize) -> IdleCost {
    let tree = ScheduleTree::start(idle_schedules(count), EVALUATION_INTERVAL).await;
    let start_seconds = tree.start_duration.as_secs_f64();
    wait_until_idle().await;
    let evaluation_us = measure_evaluation_us().await;
    let resident_bytes = resident_bytes(std::process::id());
    tree.end().await;
    IdleCost { evaluation_us, resident_bytes, start_seconds }
}

/// Returns the microseconds of processor time per evaluation in an idle process.
async fn measure_evaluation_us() -> f64 {
    let pid = std::process::id();
    let seconds = if is_quick() { 2 } else { 10 };
    let before = thread_cpu_time_ms(pid);
    sleep(Duration::from_secs(seconds)).await; // The measured interval.
    let cpu_ms = thread_cpu_time_ms(pid) - before;
    // The timer adds a millisecond to each interval, and the wakeup up to another one.
    let evaluation_count = seconds as f64 * 1e3 / (EVALUATION_INTERVAL.as_secs_f64() * 1e3 + 2.0);
    cpu_ms * 1e3 / evaluation_count
}

/// Returns the same for a task that only sleeps for this interval: the unavoidable cost.
async fn measure_sleep_us() -> f64 {
    let sleeper = tokio::spawn(async {
        loop {
            sleep(EVALUATION_INTERVAL + Duration::from_millis(1)).await; // The measured operation.
        }
    });
    let sleep_us = measure_evaluation_us().await;
    sleeper.abort();
    sleep_us
}

/// Waits until the process is idle: each schedule was evaluated once by then.
async fn wait_until_idle() {
    let pid = std::process::id();
    loop {
        let before = thread_cpu_time_ms(pid);
        sleep(Duration::from_millis(500)).await;
        if thread_cpu_time_ms(pid) - before < 25.0 {
            return;
        }
    }
}

pub(crate) fn row(
    description: &str,
    value: f64,
    unit: &str,
    goal: Goal,
    details: String,
) -> ResultRow {
    ResultRow {
        number: 17,
        description: description.to_owned(),
        value,
        unit: unit.to_owned(),
        goal,
        details,
    }
}
