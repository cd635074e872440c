//! Burst of a thousand requests.

use algonius_gauge::client::KeepAliveClient;
use algonius_gauge::load::run_burst;
use algonius_gauge::process::peak_resident_bytes;
use algonius_gauge::report::{BenchReport, Goal, ResultRow};
use algonius_gauge::round::Rounds;
use algonius_gauge::run::{OperationTimes, median};
use algonius_gauge::service::Service;
use algonius_gauge::spawn_limit::{SpawnRateBaseline, core_count};

use super::{MESSAGE_BYTES, PROGRAM, SERVER_CONFIG, cat_agent_config};

/// Number of simultaneous requests, each on a connection of its own.
const BURST_SIZE: usize = 1000;

/// Measures row 6.
pub(crate) async fn measure(report: &mut BenchReport) {
    let (baseline, mut rounds, mut peaks, mut total_failure_count) =
        (SpawnRateBaseline::for_cat(MESSAGE_BYTES), Rounds::default(), Vec::new(), 0);
    for _ in 0..Rounds::count().min(3) {
        rounds.add("L", baseline.run(core_count(), Rounds::run_duration()));
        // A new service, so that its peak memory belongs to this burst.
        let service = Service::start(PROGRAM, SERVER_CONFIG, &cat_agent_config(BURST_SIZE)).await;
        let load_request = service.json_rpc_load_request("cat", MESSAGE_BYTES);
        KeepAliveClient::connect(service.address)
            .await
            .send_request(&(load_request.build)(1))
            .await;
        let (run, failure_count) = run_burst(service.address, &load_request, BURST_SIZE).await;
        total_failure_count += failure_count;
        peaks.push(service.sum_over_processes(peak_resident_bytes) / 1e6);
        rounds.add("burst", run);
    }
    let limit_rate = rounds.median_of("L", OperationTimes::rate);
    let summary = rounds.merged_run("burst").summary();
    // The ratio of the makespan to that of L equals the ratio of L's rate to this one.
    report.add_row(ResultRow {
        number: 6,
        description: format!("burst of {BURST_SIZE}: all of it, against {BURST_SIZE} / L"),
        value: rounds.median_ratio("L", "burst", OperationTimes::rate),
        unit: "× ideal".to_owned(),
        goal: Goal::AtMost(1.5, 1.3),
        details: format!(
            "{:.2} s; L {limit_rate:.0}/s; {summary}",
            rounds.median_of("burst", run_seconds)
        ),
    });
    report.add_row(ResultRow {
        number: 6,
        description: format!("burst of {BURST_SIZE}: requests that failed"),
        value: f64::from(u32::try_from(total_failure_count).unwrap_or(u32::MAX)),
        unit: String::new(),
        goal: Goal::AtMost(0.0, 0.0),
        details: String::new(),
    });
    report.add_row(ResultRow {
        number: 6,
        description: format!("burst of {BURST_SIZE}: peak memory of service and warden"),
        value: median(peaks),
        unit: "MB".to_owned(),
        goal: Goal::AtMost(64.0, 48.0),
        details: "resident, connections included".to_owned(),
    });
}

fn run_seconds(run: &OperationTimes) -> f64 {
    run.lasted as f64 / 1e9
}
