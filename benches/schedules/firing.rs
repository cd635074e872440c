//! Cost of an occurrence of a schedule, and its lateness.

use std::time::Duration;

use algonius_actors::model::schedule::occurrence::{Occurrence, OccurrenceQuery, OccurrenceStatus};
use algonius_actors::ports::clock::Clock as _;
use algonius_actors::ports::schedule_store::ScheduleStore as _;
use algonius_gauge::part::is_quick;
use algonius_gauge::process::awake;
use algonius_gauge::report::{Goal, Report};
use algonius_gauge::run::Run;
use algonius_supervisor::platform::clock::WallClock;
use tokio::time::{Instant, sleep};

use super::tree::{OWNER, Standing, busy, quiet};
use super::{MANY, row};

/// Owner without a token: its occurrences are decided, refused, and recorded.
const NOBODY: &str = "nobody";

/// Period of each schedule in seconds.
const PACE: usize = 10;

/// Occurrences per second in the measurement of their cost.
const FAST: usize = 1000;

/// Occurrences per second in the measurement with executions.
const SLOW: usize = 50;

/// Measures the part of row 17 about due occurrences, beside as many schedules that are not due.
pub(crate) async fn measure(report: &mut Report) {
    let lasting = Duration::from_secs(if is_quick() { 4 } else { 12 });
    let nap = algonius_actors::scheduler::NAP;
    let tree = Standing::with(quiet(MANY), nap).await;
    super::settled().await;
    let idle = spent(lasting).await;
    let mut configured = quiet(MANY);
    configured.extend(busy(FAST * PACE, PACE, NOBODY));
    tree.door().schedules.configure_schedules(configured).await.expect("schedules");
    under_way().await;
    let (before, begin) = (decided(&tree).await, Instant::now());
    let busy_ms = spent(lasting).await;
    let lasted = begin.elapsed().as_secs_f64();
    let fired = decided(&tree).await - before;
    report.row(row(
        "an occurrence that is refused",
        (busy_ms - idle) * 1e3 / fired,
        "µs",
        // No goal: the cost of refused work does not indicate the cost of work that runs.
        Goal::Told,
        format!(
            "processor time of each of {:.0} a second: looked at, refused because its owner has no token, \
             written down",
            fired / lasted
        ),
    ));
    lateness(&tree, (lasting, idle), report).await;
    tree.end().await;
}

async fn lateness(tree: &Standing, (lasting, idle): (Duration, f64), report: &mut Report) {
    let mut configured = quiet(MANY);
    configured.extend(busy(SLOW * PACE, PACE, OWNER));
    tree.door().schedules.configure_schedules(configured).await.expect("schedules");
    under_way().await;
    let since = WallClock.now();
    let busy_ms = spent(lasting).await;
    let fired: Vec<_> = latest(tree).await.into_iter().filter(|it| it.due >= since).collect();
    // A refused occurrence costs next to nothing and would distort the average.
    let refused = fired.iter().filter(|it| it.verdict == OccurrenceStatus::Refused).count();
    assert_eq!(refused, 0, "occurrences of an owner with a token were refused");
    let late = fired.iter().filter_map(|it| it.deviation()).map(|late| late.num_nanoseconds());
    let late = late.flatten().filter_map(|late| u64::try_from(late).ok()).collect();
    let late = Run::of(late, lasting);
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
        format!("{}, of {} times, from due to taken", late.told(), late.count()),
    ));
}

/// Waits until all schedules were evaluated, and their occurrences are evenly spread: a new schedule waits for its next
/// period.
async fn under_way() {
    let pace = PACE as i64;
    let left = pace - WallClock.now().timestamp().rem_euclid(pace) + 1;
    sleep(Duration::from_secs(left.max(3).unsigned_abs())).await; // The new configuration takes effect meanwhile.
}

/// Returns the milliseconds of processor time that this process uses in a time.
async fn spent(lasting: Duration) -> f64 {
    let own = std::process::id();
    let before = awake(own);
    sleep(lasting).await; // The measured interval.
    awake(own) - before
}

/// Returns the number of refused occurrences so far, among those that one query returns.
async fn decided(tree: &Standing) -> f64 {
    latest(tree).await.iter().filter(|it| it.verdict == OccurrenceStatus::Refused).count() as f64
}

async fn latest(tree: &Standing) -> Vec<Occurrence> {
    let query = OccurrenceQuery { limit: 200_000, ..OccurrenceQuery::default() };
    tree.store.occurrences(query).await.expect("occurrences")
}
