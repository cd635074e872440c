//! Long queue of short jobs.

use std::time::Duration;

use algonius_gauge::limit::Limit;
use algonius_gauge::load::{Until, run};
use algonius_gauge::part::is_quick;
use algonius_gauge::report::{Goal, Report, Row};
use algonius_gauge::round::Rounds;
use algonius_gauge::run::Run;
use algonius_gauge::service::Service;

use super::{PROGRAM, SERVER};

/// Number of concurrent jobs.
const AT_ONCE: usize = 10;

/// Duration of each job.
const JOB: Duration = Duration::from_millis(20);

/// Measures row 7.
pub(crate) async fn measure(report: &mut Report) {
    let count = if is_quick() { 200 } else { 1000 };
    let agent = format!(
        "[agents.job]\ncommand = \"sleep\"\nargs = [\"{}\"]\nmax_concurrent = {AT_ONCE}\n\
         queue_depth = 1000\n",
        JOB.as_secs_f64()
    );
    let service = Service::start(PROGRAM, SERVER, &agent).await;
    let (asked, mut rounds) = (service.rpc("job", 0), Rounds::default());
    for _ in 0..Rounds::count().min(3) {
        rounds.take("bare", Limit::of_sleep(JOB).run(AT_ONCE, Rounds::lasting()));
        rounds.take("jobs", run(service.address, &asked, count, Until::Done(count)).await);
    }
    let ideal = AT_ONCE as f64 / JOB.as_secs_f64();
    let bare = ideal / rounds.of("bare", Run::rate);
    let told = rounds.of("jobs", |run| run.lasted as f64 / 1e9);
    report.row(Row {
        number: 7,
        what: format!("queue of {count} jobs of {} ms, {AT_ONCE} at once", JOB.as_millis()),
        value: ideal / rounds.of("jobs", Run::rate),
        unit: "× ideal".to_owned(),
        goal: Goal::AtMost(1.15, 1.08),
        behind: format!("{told:.2} s; {AT_ONCE} bare spawners come to {bare:.3} × ideal"),
    });
}
