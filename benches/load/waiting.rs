//! Ten thousand waiting requests, against ten; two thousand in a quick run.

use std::collections::BTreeMap;
use std::time::Duration;

use algonius_gauge::load::measure_steady_load;
use algonius_gauge::process::resident_bytes;
use algonius_gauge::report::{BenchReport, Curve, Goal, ResultRow};
use algonius_gauge::role::is_quick;
use algonius_gauge::round::Rounds;
use algonius_gauge::run::{OperationTimes, median};
use algonius_gauge::service::Service;
use tokio::time::{Instant, sleep};

use super::{MESSAGE_BYTES, PROGRAM, SERVER_CONFIG, cat_agent_config};

/// Number of waiting requests in the baseline.
const BASELINE_WAITING: usize = 10;

/// Number of concurrent executions.
const MAX_CONCURRENT_EXECUTIONS: usize = 10;

/// Descriptors that are not for connections.
const SPARE_DESCRIPTORS: usize = 500;

/// Time limit for the next requests to be accepted.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(30);

/// Time after which no further round starts.
const MAX_ROUND_START_TIME: Duration = Duration::from_secs(60);

/// Results for each number of waiting requests.
#[derive(Default)]
struct WaitingResults {
    rounds: Rounds,
    /// Resident bytes of service and process holder.
    resident_bytes: BTreeMap<usize, Vec<f64>>,
    /// First bad answer, if there was one.
    failure: Option<String>,
}

impl WaitingResults {
    /// Returns the throughput relative to that with ten waiting requests.
    fn rate_ratio(&self, waiting_count: usize) -> f64 {
        self.rounds.median_ratio(
            &series_name(waiting_count),
            &series_name(BASELINE_WAITING),
            OperationTimes::rate,
        )
    }

    fn median_resident_bytes(&self, waiting_count: usize) -> f64 {
        median(self.resident_bytes.get(&waiting_count).into_iter().flatten().copied())
    }
}

/// Measures row 8.
pub(crate) async fn measure(descriptor_limit: usize, report: &mut BenchReport) {
    let target_count = if is_quick() { 2000 } else { 10_000 };
    let max_waiting = descriptor_limit.saturating_sub(SPARE_DESCRIPTORS).min(target_count);
    let (waiting_counts, mut results) =
        ([BASELINE_WAITING, 100, 1000, max_waiting], WaitingResults::default());
    let started_at = Instant::now();
    for _ in 0..3 {
        measure_round(&waiting_counts, &mut results).await;
        if started_at.elapsed() > MAX_ROUND_START_TIME {
            break;
        }
    }
    if results.resident_bytes.contains_key(&max_waiting) {
        add_rows(max_waiting, &results, report);
    } else {
        report.add_row(throughput_row(max_waiting, "throughput against 10 waiting", 0.0, &results));
    }
    let waiting_counts =
        waiting_counts.into_iter().filter(|waiting| results.resident_bytes.contains_key(waiting));
    let curve = |name: &str, y_label: &str, value: &dyn Fn(usize) -> f64| Curve {
        name: name.to_owned(),
        x_label: "waiting requests".to_owned(),
        y_label: y_label.to_owned(),
        points: waiting_counts.clone().map(|waiting| (waiting as f64, value(waiting))).collect(),
    };
    let rate = |waiting| results.rate_ratio(waiting);
    report.add_curve(curve("waiting", "throughput, × that of 10 waiting", &rate));
    let resident_mb = |waiting| results.median_resident_bytes(waiting) / 1e6;
    report.add_curve(curve("waiting-memory", "resident memory, MB", &resident_mb));
}

fn add_rows(max_waiting: usize, results: &WaitingResults, report: &mut BenchReport) {
    let description = "throughput against 10 waiting";
    report.add_row(throughput_row(
        max_waiting,
        description,
        results.rate_ratio(max_waiting),
        results,
    ));
    let growth = results.median_resident_bytes(max_waiting)
        - results.median_resident_bytes(BASELINE_WAITING);
    report.add_row(ResultRow {
        number: 8,
        description: format!("{max_waiting} waiting: memory of each, with its connection"),
        value: growth / (max_waiting - BASELINE_WAITING) as f64 / 1e3,
        unit: "KB".to_owned(),
        goal: Goal::AtMost(40.0, 25.0),
        details: format!("{:.1} MB resident more than with 10; 1 KiB of text each", growth / 1e6),
    });
}

fn throughput_row(
    max_waiting: usize,
    description: &str,
    value: f64,
    results: &WaitingResults,
) -> ResultRow {
    let rate = |waiting| results.rounds.median_of(&series_name(waiting), OperationTimes::rate);
    let details = match &results.failure {
        Some(failure) => failure.clone(),
        None => format!("{:.0}/s against {:.0}/s", rate(max_waiting), rate(BASELINE_WAITING)),
    };
    let (description, unit) = (format!("{max_waiting} waiting: {description}"), "× few".to_owned());
    ResultRow { number: 8, description, value, unit, goal: Goal::AtLeast(0.9, 0.98), details }
}

fn series_name(waiting_count: usize) -> String {
    format!("{waiting_count} waiting")
}

/// Measures growing numbers of waiting requests at one service.
async fn measure_round(waiting_counts: &[usize], results: &mut WaitingResults) {
    let service = Service::start(PROGRAM, SERVER_CONFIG, &cat_agent_config(20_000)).await;
    let load_request = service.json_rpc_load_request("cat", MESSAGE_BYTES);
    for &waiting_count in waiting_counts {
        while service.queue_length_after_wait("cat", 10).await > 0 {} // Abandoned requests leave the queue first.
        let (target, wait_until_arrived) =
            ((service.address, &load_request), |in_flight| wait_until_queued(&service, in_flight));
        match measure_steady_load(
            target,
            waiting_count + MAX_CONCURRENT_EXECUTIONS,
            wait_until_arrived,
            Rounds::run_duration(),
        )
        .await
        {
            Ok(run) => results.rounds.add(&series_name(waiting_count), run),
            Err(failure) => {
                results.failure = Some(failure);
                return;
            }
        }
        results
            .resident_bytes
            .entry(waiting_count)
            .or_default()
            .push(service.sum_over_processes(resident_bytes));
    }
}

/// Waits until nearly all of the requests are in the queue; the others run, or are on their way.
async fn wait_until_queued(service: &Service, in_flight: usize) -> Result<(), String> {
    let (started_at, expected_queue_length) =
        (Instant::now(), in_flight.saturating_sub(MAX_CONCURRENT_EXECUTIONS + 5) * 95 / 100);
    while service.queue_length_after_wait("cat", 0).await < expected_queue_length as u64 {
        if started_at.elapsed() >= ACCEPT_TIMEOUT {
            return Err(format!(
                "{in_flight} requests are not accepted in {} s",
                ACCEPT_TIMEOUT.as_secs()
            ));
        }
        sleep(Duration::from_millis(50)).await;
    }
    Ok(())
}
