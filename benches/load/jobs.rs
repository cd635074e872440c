//! Long queue of short jobs.

use std::time::Duration;

use algonius_gauge::load::{StopCondition, run_load};
use algonius_gauge::report::{BenchReport, Goal, ResultRow};
use algonius_gauge::role::is_quick;
use algonius_gauge::round::Rounds;
use algonius_gauge::run::OperationTimes;
use algonius_gauge::service::Service;
use algonius_gauge::spawn_limit::SpawnRateBaseline;

use super::{PROGRAM, SERVER_CONFIG};

/// Number of concurrent jobs.
const MAX_CONCURRENT_JOBS: usize = 10;

/// Duration of each job.
const JOB_DURATION: Duration = Duration::from_millis(20);

/// Measures row 7.
pub(crate) async fn measure(report: &mut BenchReport) {
    let job_count = if is_quick() { 200 } else { 1000 };
    let agent = format!(
        "[agents.job]\ncommand = \"sleep\"\nargs = [\"{}\"]\nmax_concurrent = {MAX_CONCURRENT_JOBS}\n\
         queue_depth = 1000\n",
        JOB_DURATION.as_secs_f64()
    );
    let service = Service::start(PROGRAM, SERVER_CONFIG, &agent).await;
    let (load_request, mut rounds) = (service.json_rpc_load_request("job", 0), Rounds::default());
    for _ in 0..Rounds::count().min(3) {
        rounds.add(
            "bare",
            SpawnRateBaseline::for_sleep(JOB_DURATION)
                .run(MAX_CONCURRENT_JOBS, Rounds::run_duration()),
        );
        rounds.add(
            "jobs",
            run_load(
                service.address,
                &load_request,
                job_count,
                StopCondition::Completed(job_count),
            )
            .await,
        );
    }
    let ideal_rate = MAX_CONCURRENT_JOBS as f64 / JOB_DURATION.as_secs_f64();
    let bare_ratio = ideal_rate / rounds.median_of("bare", OperationTimes::rate);
    let seconds = rounds.median_of("jobs", |run| run.lasted as f64 / 1e9);
    report.add_row(ResultRow {
        number: 7,
        description: format!(
            "queue of {job_count} jobs of {} ms, {MAX_CONCURRENT_JOBS} at once",
            JOB_DURATION.as_millis()
        ),
        value: ideal_rate / rounds.median_of("jobs", OperationTimes::rate),
        unit: "× ideal".to_owned(),
        goal: Goal::AtMost(1.15, 1.08),
        details: format!(
            "{seconds:.2} s; {MAX_CONCURRENT_JOBS} bare spawners come to {bare_ratio:.3} × ideal"
        ),
    });
}
