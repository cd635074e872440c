//! Throughput of a service whose commits survive a power failure.

use algonius_gauge::load::{StopCondition, run_load};
use algonius_gauge::report::{BenchReport, Goal, ResultRow};
use algonius_gauge::round::Rounds;
use algonius_gauge::run::OperationTimes;
use algonius_gauge::service::Service;
use algonius_gauge::spawn_limit::{SpawnRateBaseline, core_count};

use super::{AGENTS_CONFIG, MESSAGE_BYTES, PROGRAM};

/// Measures row 21.
pub(crate) async fn measure(report: &mut BenchReport) {
    let service = Service::start(PROGRAM, "durability = \"power\"", AGENTS_CONFIG).await;
    let (baseline, mut rounds) = (SpawnRateBaseline::for_cat(MESSAGE_BYTES), Rounds::default());
    let (load_request, stop_condition) = (
        service.json_rpc_load_request("cat", MESSAGE_BYTES),
        StopCondition::Elapsed(Rounds::run_duration()),
    );
    for _ in 0..Rounds::count() {
        rounds.add("L", baseline.run(core_count(), Rounds::run_duration()));
        rounds.add("power", run_load(service.address, &load_request, 100, stop_condition).await);
    }
    let [rate, limit_rate] =
        ["power", "L"].map(|kind| rounds.median_of(kind, OperationTimes::rate));
    report.add_row(ResultRow {
        number: 21,
        description: "throughput that a power failure does not undo, 100 in flight".to_owned(),
        value: rounds.median_ratio("power", "L", OperationTimes::rate),
        unit: "× L".to_owned(),
        goal: Goal::AtLeast(0.6, 0.75),
        details: format!(
            "{rate:.0}/s; L {limit_rate:.0}/s; {}",
            rounds.merged_run("power").summary()
        ),
    });
}
