//! Outputs of several sizes, against a bare server that neither redacts nor stores them.

use std::fmt::Write as _;
use std::rc::Rc;

use algonius_gauge::a2a_requests::{
    post_request, repeated_request, request_builder, sized_message_params_0_3,
};
use algonius_gauge::client::{BenchResponse, KeepAliveClient};
use algonius_gauge::load::{LoadRequest, StopCondition, run_load};
use algonius_gauge::process::{peak_resident_bytes, reset_peak_resident_bytes};
use algonius_gauge::report::{BenchReport, Curve, Goal, ResultRow};
use algonius_gauge::role::{ServerProcess, is_quick};
use algonius_gauge::round::Rounds;
use algonius_gauge::run::{OperationTimes, median};
use algonius_gauge::service::Service;
use algonius_gauge::spawn::plain_text;

use super::PROGRAM;

/// Sizes of the outputs in bytes.
const SIZES: [usize; 5] = [1000, 10_000, 100_000, 1_000_000, 10_000_000];

/// Largest size in bytes.
const LARGEST_OUTPUT: usize = 10_000_000;

/// Measures rows 11 and 12.
pub(crate) async fn measure(report: &mut BenchReport) {
    let (service, baseline_server) = (start_service().await, ServerProcess::start("outputs"));
    let mut rounds = Rounds::default();
    for _ in 0..Rounds::count() {
        for bytes in SIZES {
            let (service_request, baseline_request) = request_pair(&service, bytes);
            let stop_condition = StopCondition::Completed(requests_per_round(bytes));
            rounds.add(
                &service_kind(bytes),
                run_load(service.address, &service_request, 1, stop_condition).await,
            );
            rounds.add(
                &baseline_kind(bytes),
                run_load(baseline_server.address, &baseline_request, 1, stop_condition).await,
            );
        }
        let (service_request, baseline_request) = request_pair(&service, 100_000);
        let stop_condition = StopCondition::Elapsed(Rounds::run_duration());
        rounds.add("wide", run_load(service.address, &service_request, 10, stop_condition).await);
        rounds.add(
            "bare wide",
            run_load(baseline_server.address, &baseline_request, 10, stop_condition).await,
        );
    }
    add_rows(&rounds, median_peak_bytes().await, report);
    let ratio = |bytes| {
        (bytes as f64, rounds.median_ratio(&service_kind(bytes), &baseline_kind(bytes), median_ms))
    };
    report.add_curve(Curve {
        name: "output".to_owned(),
        x_label: "bytes of output".to_owned(),
        y_label: "median, × the bare server's".to_owned(),
        points: SIZES.map(ratio).to_vec(),
    });
}

fn add_rows(rounds: &Rounds, peak_bytes: f64, report: &mut BenchReport) {
    let baseline_summary = rounds.merged_run(&baseline_kind(LARGEST_OUTPUT)).summary();
    report.add_row(ResultRow {
        number: 11,
        description: "10 MB of output: median, against a bare server".to_owned(),
        value: rounds.median_ratio(
            &service_kind(LARGEST_OUTPUT),
            &baseline_kind(LARGEST_OUTPUT),
            median_ms,
        ),
        unit: "× bare".to_owned(),
        goal: Goal::AtMost(1.6, 1.2),
        details: format!(
            "{}; bare: {baseline_summary}",
            rounds.merged_run(&service_kind(LARGEST_OUTPUT)).summary()
        ),
    });
    report.add_row(ResultRow {
        number: 11,
        description: "10 MB of output: peak memory of service and warden".to_owned(),
        value: peak_bytes / LARGEST_OUTPUT as f64,
        unit: "× output".to_owned(),
        goal: Goal::AtMost(6.0, 4.0),
        details: format!("{:.1} MB resident", peak_bytes / 1e6),
    });
    let [rate, baseline_rate] =
        ["wide", "bare wide"].map(|kind| rounds.median_of(kind, OperationTimes::rate));
    report.add_row(ResultRow {
        number: 12,
        description: "100 KB of output, 10 in flight: throughput".to_owned(),
        value: rounds.median_ratio("wide", "bare wide", OperationTimes::rate),
        unit: "× bare".to_owned(),
        goal: Goal::AtLeast(0.8, 0.9),
        details: format!(
            "{rate:.0}/s; bare {baseline_rate:.0}/s; {}",
            rounds.merged_run("wide").summary()
        ),
    });
}

fn median_ms(run: &OperationTimes) -> f64 {
    run.quantile_ms(500)
}

fn service_kind(bytes: usize) -> String {
    format!("{bytes}")
}

fn baseline_kind(bytes: usize) -> String {
    format!("bare {bytes}")
}

/// Returns the number of requests for an output of this size per round.
fn requests_per_round(bytes: usize) -> usize {
    let count = if bytes < LARGEST_OUTPUT { 100 } else { 10 };
    if is_quick() { count / 5 } else { count }
}

/// Starts a service with an agent and a file for each size.
async fn start_service() -> Service {
    let mut agents = String::new();
    for bytes in SIZES {
        _ = write!(agents, "[agents.o{bytes}]\ncommand = \"cat\"\nargs = [\"HERE/{bytes}\"]\n");
        _ = writeln!(agents, "max_concurrent = 10\nqueue_depth = 100");
    }
    let service = Service::start(PROGRAM, "", &agents).await;
    for bytes in SIZES {
        std::fs::write(service.home().join(bytes.to_string()), plain_text(bytes)).expect("a file");
    }
    service
}

/// Returns the requests for the same output, to the service and to the bare server.
fn request_pair(service: &Service, bytes: usize) -> (Rc<LoadRequest>, Rc<LoadRequest>) {
    let call = service.json_rpc_request(
        &format!("o{bytes}"),
        "message/send",
        &sized_message_params_0_3(1),
    );
    let file = service.home().join(bytes.to_string());
    let is_good =
        move |answer: &BenchResponse<'_>| answer.status == 200 && answer.body.len() > bytes;
    let service_request = LoadRequest { build: request_builder(&call), is_good: Box::new(is_good) };
    (
        Rc::new(service_request),
        repeated_request(&post_request(&format!("/?{}", file.display()), "", "{}"), bytes),
    )
}

/// Returns the median peak memory of one output of the largest size, each in a new service.
async fn median_peak_bytes() -> f64 {
    let mut peaks = Vec::new();
    for _ in 0..3 {
        let service = start_service().await;
        let mut client = KeepAliveClient::connect(service.address).await;
        service.pids().into_iter().for_each(reset_peak_resident_bytes);
        let load_request = request_pair(&service, LARGEST_OUTPUT).0;
        client.send_request(&(load_request.build)(1)).await;
        peaks.push(service.sum_over_processes(peak_resident_bytes));
    }
    median(peaks)
}
