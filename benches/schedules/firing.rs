//! Cost of an occurrence of a schedule, and its lateness.

use std::time::Duration;

use algonius_actors::model::schedule::occurrence::{Occurrence, OccurrenceQuery, OccurrenceStatus};
use algonius_actors::ports::clock::Clock as _;
use algonius_actors::ports::schedule_store::ScheduleStore as _;
use algonius_gauge::process::thread_cpu_time_ms;
use algonius_gauge::report::{BenchReport, Goal};
use algonius_gauge::role::is_quick;
use algonius_gauge::run::OperationTimes;
use algonius_supervisor::platform::clock::WallClock;
use tokio::time::{Instant, sleep};

use super::tree::{OWNER, ScheduleTree, frequent_schedules, idle_schedules};
use super::{SCHEDULE_COUNT, row};

/// Owner without a token: its occurrences are decided, refused, and recorded.
const UNKNOWN_OWNER: &str = "nobody";

/// Period of each schedule in seconds.
const PERIOD_SECONDS: usize = 10;

/// Occurrences per second in the measurement of their cost.
const REFUSALS_PER_SECOND: usize = 1000;

/// Occurrences per second in the measurement with executions.
const EXECUTIONS_PER_SECOND: usize = 50;

/// Measures the part of row 17 about due occurrences, beside as many schedules that are not due.
pub(crate) async fn measure(report: &mut BenchReport) {
    let duration = Duration::from_secs(if is_quick() { 4 } else { 12 });
    let max_sleep = algonius_actors::scheduler::DEFAULT_MAX_SLEEP;
    let tree = ScheduleTree::start(idle_schedules(SCHEDULE_COUNT), max_sleep).await;
    super::wait_until_idle().await;
    let idle_cpu_ms = measure_cpu_time_ms(duration).await;
    let mut schedules = idle_schedules(SCHEDULE_COUNT);
    schedules.extend(frequent_schedules(
        REFUSALS_PER_SECOND * PERIOD_SECONDS,
        PERIOD_SECONDS,
        UNKNOWN_OWNER,
    ));
    tree.api().schedules.configure_schedules(schedules).await.expect("schedules");
    wait_until_occurrences_spread().await;
    let (refused_count_before, started_at) = (refused_count(&tree).await, Instant::now());
    let busy_cpu_ms = measure_cpu_time_ms(duration).await;
    let elapsed = started_at.elapsed().as_secs_f64();
    let new_refused_count = refused_count(&tree).await - refused_count_before;
    report.add_row(row(
        "an occurrence that is refused",
        (busy_cpu_ms - idle_cpu_ms) * 1e3 / new_refused_count,
        "µs",
        // No goal: the cost of refused work does not indicate the cost of work that runs.
        Goal::Unrated,
        format!(
            "processor time of each of {:.0} a second: looked at, refused because its owner has no token, \
             written down",
            new_refused_count / elapsed
        ),
    ));
    measure_cost_and_lateness(&tree, (duration, idle_cpu_ms), report).await;
    tree.end().await;
}

async fn measure_cost_and_lateness(
    tree: &ScheduleTree,
    (duration, idle_cpu_ms): (Duration, f64),
    report: &mut BenchReport,
) {
    let mut schedules = idle_schedules(SCHEDULE_COUNT);
    schedules.extend(frequent_schedules(
        EXECUTIONS_PER_SECOND * PERIOD_SECONDS,
        PERIOD_SECONDS,
        OWNER,
    ));
    tree.api().schedules.configure_schedules(schedules).await.expect("schedules");
    wait_until_occurrences_spread().await;
    let since = WallClock.now();
    let busy_cpu_ms = measure_cpu_time_ms(duration).await;
    let due_occurrences: Vec<_> =
        latest_occurrences(tree).await.into_iter().filter(|it| it.due_at >= since).collect();
    // A refused occurrence costs next to nothing and would distort the average.
    let refused_count =
        due_occurrences.iter().filter(|it| it.status == OccurrenceStatus::Refused).count();
    assert_eq!(refused_count, 0, "occurrences of an owner with a token were refused");
    let delays = due_occurrences
        .iter()
        .filter_map(|it| it.delay())
        .map(|lateness| lateness.num_nanoseconds());
    let delays_ns = delays.flatten().filter_map(|lateness| u64::try_from(lateness).ok()).collect();
    let lateness_times = OperationTimes::new(delays_ns, duration);
    report.add_row(row(
        "fire and arm again",
        (busy_cpu_ms - idle_cpu_ms) * 1e3 / lateness_times.count(),
        "µs",
        Goal::AtMost(50.0, 25.0),
        "processor time of each that is accepted: looked at, written down, an execution without a program, with \
         all of its commits"
            .to_owned(),
    ));
    report.add_row(row(
        "lateness, p99",
        lateness_times.quantile_ms(990),
        "ms",
        Goal::AtMost(50.0, 25.0),
        format!(
            "{}, of {} times, from due to taken",
            lateness_times.summary(),
            lateness_times.count()
        ),
    ));
}

/// Waits until all schedules were evaluated, and their occurrences are evenly spread: a new schedule waits for its next
/// period.
async fn wait_until_occurrences_spread() {
    let period = PERIOD_SECONDS as i64;
    let remaining = period - WallClock.now().timestamp().rem_euclid(period) + 1;
    sleep(Duration::from_secs(remaining.max(3).unsigned_abs())).await; // The new configuration takes effect meanwhile.
}

/// Returns the milliseconds of processor time that this process uses in a time.
async fn measure_cpu_time_ms(duration: Duration) -> f64 {
    let pid = std::process::id();
    let before = thread_cpu_time_ms(pid);
    sleep(duration).await; // The measured interval.
    thread_cpu_time_ms(pid) - before
}

/// Returns the number of refused occurrences so far, among those that one query returns.
async fn refused_count(tree: &ScheduleTree) -> f64 {
    latest_occurrences(tree)
        .await
        .iter()
        .filter(|it| it.status == OccurrenceStatus::Refused)
        .count() as f64
}

async fn latest_occurrences(tree: &ScheduleTree) -> Vec<Occurrence> {
    let query = OccurrenceQuery { limit: 200_000, ..OccurrenceQuery::default() };
    tree.store.occurrences(query).await.expect("occurrences")
}
