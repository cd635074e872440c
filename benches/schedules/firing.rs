//! What a time of a schedule costs when it comes, and by how much it is late.

use std::time::Duration;

use algonius_actors::model::occurrence::{Occurrence, OccurrenceQuery, Verdict};
use algonius_actors::ports::clock::Clock as _;
use algonius_actors::ports::timebook::Timebook as _;
use algonius_gauge::part::is_quick;
use algonius_gauge::process::awake;
use algonius_gauge::report::{Goal, Report};
use algonius_gauge::run::Run;
use algonius_supervisor::clock::WallClock;
use tokio::time::{Instant, sleep};

use super::tree::{OWNER, Standing, busy, quiet};
use super::{MANY, row};

/// Those who may ask nothing: their times are decided, refused, and written down.
const NOBODY: &str = "nobody";

/// Each is due once in so many seconds.
const PACE: usize = 10;

/// How often something is due in a second, where the cost is measured.
const FAST: usize = 1000;

/// The same where programs are asked for, each with an execution of its own.
const SLOW: usize = 50;

/// Measures what of row 17 is about times that come, with as many beside them of which none is due.
pub(crate) async fn measure(report: &mut Report) {
    let lasting = Duration::from_secs(if is_quick() { 4 } else { 12 });
    let nap = algonius_actors::scheduler::NAP;
    let tree = Standing::with(quiet(MANY), nap).await;
    super::settled().await;
    let idle = spent(lasting).await;
    let mut configured = quiet(MANY);
    configured.extend(busy(FAST * PACE, PACE, NOBODY));
    tree.door().configure_schedules(configured).await.expect("schedules");
    under_way().await;
    let (before, begin) = (decided(&tree).await, Instant::now());
    let busy_ms = spent(lasting).await;
    let lasted = begin.elapsed().as_secs_f64();
    let fired = decided(&tree).await - before;
    report.row(row(
        "fire and arm again",
        (busy_ms - idle) * 1e3 / fired,
        "µs",
        Goal::AtMost(50.0, 25.0),
        format!(
            "processor time of each of {:.0} times a second: looked at, refused because its owner has no \
             token, written down",
            fired / lasted
        ),
    ));
    lateness(&tree, (lasting, idle), report).await;
    tree.end().await;
}

async fn lateness(tree: &Standing, (lasting, idle): (Duration, f64), report: &mut Report) {
    let mut configured = quiet(MANY);
    configured.extend(busy(SLOW * PACE, PACE, OWNER));
    tree.door().configure_schedules(configured).await.expect("schedules");
    under_way().await;
    let since = WallClock.now();
    let busy_ms = spent(lasting).await;
    let fired = latest(tree).await.into_iter().filter(|it| it.due >= since);
    let late = fired.filter_map(|it| it.deviation()).map(|late| late.num_nanoseconds());
    let late = late.flatten().filter_map(|late| u64::try_from(late).ok()).collect();
    let late = Run::of(late, lasting);
    report.row(row(
        "fire and arm again, where it is taken",
        (busy_ms - idle) * 1e3 / late.count(),
        "µs",
        Goal::Told,
        "the same where each is an execution, without a program: all of its commits are in it"
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

/// Waits until all were looked at, and their times come as steadily as they will: what was not there at
/// the last step of the pace waits for the next.
async fn under_way() {
    let pace = PACE as i64;
    let left = pace - WallClock.now().timestamp().rem_euclid(pace) + 1;
    sleep(Duration::from_secs(left.max(3).unsigned_abs())).await; // What was configured comes into force.
}

/// Milliseconds of processor time that this process takes in a while.
async fn spent(lasting: Duration) -> f64 {
    let own = std::process::id();
    let before = awake(own);
    sleep(lasting).await; // What is measured.
    awake(own) - before
}

/// How many times were refused so far, without those that are longer ago than is read at once.
async fn decided(tree: &Standing) -> f64 {
    latest(tree).await.iter().filter(|it| it.verdict == Verdict::Refused).count() as f64
}

async fn latest(tree: &Standing) -> Vec<Occurrence> {
    let query = OccurrenceQuery { limit: 200_000, ..OccurrenceQuery::default() };
    tree.store.occurrences(query).await.expect("occurrences")
}
