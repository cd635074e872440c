//! Cost of an occurrence of a schedule, and its lateness.

use std::time::Duration;

use algonius_actors::model::schedule::occurrence::{Occurrence, OccurrenceQuery, OccurrenceStatus};
use algonius_actors::ports::clock::Clock as _;
use algonius_actors::ports::schedule_store::ScheduleStore as _;
use algonius_gauge::process::thread_cpu_time_ms;
use algonius_gauge::report::{BenchReport, Goal};
use algonius_gauge::role::is_quick;
use algonius_gauge::run::RunTimes;
use algonius_supervisor::platform::clock::WallClock;
use tokio::time::{Instant, sleep};

use super::tree::{OWNER, ScheduleTree, frequent_schedules, idle_schedules};
use super::{SCHEDULE_COUNT, row};

/// Owner without a token: its occurrences are decided, refused, and recorded.
const UNKNOWN_OWNER: &str = "nobody";

/// Period of each schedule in seconds.
const PERIOD_SECONDS: usize = 10;

/// Occurrences per second in the measurement of their cost.
const COST_RATE: usize = 1000;

/// Occurrences per second in the measurement with executions.
const EXECUTION_RATE: usize = 50;

/// Measures the part of row 17 about due occurrences, beside as many schedules that are not due.
pub(crate) async fn measure(report: &mut BenchReport) {
    let duration = Duration::from_secs(if is_quick() { 4 } else { 12 });
    let max_sleep = algonius_actors::scheduler::DEFAULT_MAX_SLEEP;
    let tree = ScheduleTree::with(idle_schedules(SCHEDULE_COUNT), max_sleep).await;
    super::wait_until_idle().await;
    let idle = cpu_time_ms(duration).await;
    let mut configured = idle_schedules(SCHEDULE_COUNT);
    configured.extend(frequent_schedules(
        COST_RATE * PERIOD_SECONDS,
        PERIOD_SECONDS,
        UNKNOWN_OWNER,
    ));
    tree.api().schedules.configure_schedules(configured).await.expect("schedules");
    wait_until_spread().await;
    let (before, begin) = (refused_count(&tree).await, Instant::now());
    let busy_ms = cpu_time_ms(duration).await;
    let lasted = begin.elapsed().as_secs_f64();
    let fired = refused_count(&tree).await - before;
    report.row(row(
        "an occurrence that is refused",
        (busy_ms - idle) * 1e3 / fired,
        "µs",
        // No goal: the cost of refused work does not indicate the cost of work that runs.
        Goal::Unrated,
        format!(
            "processor time of each of {:.0} a second: looked at, refused because its owner has no token, \
             written down",
            fired / lasted
        ),
    ));
    lateness(&tree, (duration, idle), report).await;
    tree.end().await;
}

async fn lateness(
    tree: &ScheduleTree,
    (duration, idle): (Duration, f64),
    report: &mut BenchReport,
) {
    let mut configured = idle_schedules(SCHEDULE_COUNT);
    configured.extend(frequent_schedules(EXECUTION_RATE * PERIOD_SECONDS, PERIOD_SECONDS, OWNER));
    tree.api().schedules.configure_schedules(configured).await.expect("schedules");
    wait_until_spread().await;
    let since = WallClock.now();
    let busy_ms = cpu_time_ms(duration).await;
    let fired: Vec<_> = latest(tree).await.into_iter().filter(|it| it.due >= since).collect();
    // A refused occurrence costs next to nothing and would distort the average.
    let refused = fired.iter().filter(|it| it.status == OccurrenceStatus::Refused).count();
    assert_eq!(refused, 0, "occurrences of an owner with a token were refused");
    let late = fired.iter().filter_map(|it| it.deviation()).map(|late| late.num_nanoseconds());
    let late = late.flatten().filter_map(|late| u64::try_from(late).ok()).collect();
    let late = RunTimes::of(late, duration);
    report.row(row(
        "fire and arm again",
        (busy_ms - idle) * 1e3 / late.count(),
        "µs",
        Goal::AtMost(50.0, 25.0),
        "processor time of each that is accepted: looked at, written down, an execution without a program, with \
         all of its commits"
            .to_owned(),
    ));
    report.row(row(
        "lateness, p99",
        late.at(990),
        "ms",
        Goal::AtMost(50.0, 25.0),
        format!("{}, of {} times, from due to taken", late.summary(), late.count()),
    ));
}

/// Waits until all schedules were evaluated, and their occurrences are evenly spread: a new schedule waits for its next
/// period.
async fn wait_until_spread() {
    let pace = PERIOD_SECONDS as i64;
    let left = pace - WallClock.now().timestamp().rem_euclid(pace) + 1;
    sleep(Duration::from_secs(left.max(3).unsigned_abs())).await; // The new configuration takes effect meanwhile.
}

/// Returns the milliseconds of processor time that this process uses in a time.
async fn cpu_time_ms(duration: Duration) -> f64 {
    let own = std::process::id();
    let before = thread_cpu_time_ms(own);
    sleep(duration).await; // The measured interval.
    thread_cpu_time_ms(own) - before
}

/// Returns the number of refused occurrences so far, among those that one query returns.
async fn refused_count(tree: &ScheduleTree) -> f64 {
    latest(tree).await.iter().filter(|it| it.status == OccurrenceStatus::Refused).count() as f64
}

async fn latest(tree: &ScheduleTree) -> Vec<Occurrence> {
    let query = OccurrenceQuery { limit: 200_000, ..OccurrenceQuery::default() };
    tree.store.occurrences(query).await.expect("occurrences")
}
