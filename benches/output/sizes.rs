//! Outputs of several sizes, against a bare server that neither redacts nor stores them.

use std::fmt::Write as _;
use std::rc::Rc;

use algonius_gauge::a2a_requests::{message, numbered_request, post_request, repeated_request};
use algonius_gauge::client::{BenchResponse, KeepAliveClient};
use algonius_gauge::load::{LoadRequest, StopCondition, run};
use algonius_gauge::process::{peak_resident_bytes, reset_peak};
use algonius_gauge::report::{BenchReport, Curve, Goal, ResultRow};
use algonius_gauge::role::{ServerProcess, is_quick};
use algonius_gauge::round::Rounds;
use algonius_gauge::run::{RunTimes, median};
use algonius_gauge::service::Service;
use algonius_gauge::spawn::text;

use super::PROGRAM;

/// Sizes of the outputs in bytes.
const SIZES: [usize; 5] = [1000, 10_000, 100_000, 1_000_000, 10_000_000];

/// Largest size in bytes.
const LARGEST_OUTPUT: usize = 10_000_000;

/// Measures rows 11 and 12.
pub(crate) async fn measure(report: &mut BenchReport) {
    let (service, bare) = (start().await, ServerProcess::start("outputs"));
    let mut rounds = Rounds::default();
    for _ in 0..Rounds::count() {
        for bytes in SIZES {
            let (above, below) = request_pair(&service, bytes);
            let until = StopCondition::Completed(requests_per_round(bytes));
            rounds.take(&service_kind(bytes), run(service.address, &above, 1, until).await);
            rounds.take(&baseline_kind(bytes), run(bare.address, &below, 1, until).await);
        }
        let (above, below) = request_pair(&service, 100_000);
        let until = StopCondition::Elapsed(Rounds::run_duration());
        rounds.take("wide", run(service.address, &above, 10, until).await);
        rounds.take("bare wide", run(bare.address, &below, 10, until).await);
    }
    rows(&rounds, median_peak_bytes().await, report);
    let ratio = |bytes| {
        (bytes as f64, rounds.ratio(&service_kind(bytes), &baseline_kind(bytes), median_ms))
    };
    report.curve(Curve {
        name: "output".to_owned(),
        across: "bytes of output".to_owned(),
        up: "median, × the bare server's".to_owned(),
        points: SIZES.map(ratio).to_vec(),
    });
}

fn rows(rounds: &Rounds, peak: f64, report: &mut BenchReport) {
    let bare = rounds.merged(&baseline_kind(LARGEST_OUTPUT)).summary();
    report.row(ResultRow {
        number: 11,
        description: "10 MB of output: median, against a bare server".to_owned(),
        value: rounds.ratio(
            &service_kind(LARGEST_OUTPUT),
            &baseline_kind(LARGEST_OUTPUT),
            median_ms,
        ),
        unit: "× bare".to_owned(),
        goal: Goal::AtMost(1.6, 1.2),
        behind: format!("{}; bare: {bare}", rounds.merged(&service_kind(LARGEST_OUTPUT)).summary()),
    });
    report.row(ResultRow {
        number: 11,
        description: "10 MB of output: peak memory of service and warden".to_owned(),
        value: peak / LARGEST_OUTPUT as f64,
        unit: "× output".to_owned(),
        goal: Goal::AtMost(6.0, 4.0),
        behind: format!("{:.1} MB resident", peak / 1e6),
    });
    let [rate, baseline_rate] = ["wide", "bare wide"].map(|kind| rounds.of(kind, RunTimes::rate));
    report.row(ResultRow {
        number: 12,
        description: "100 KB of output, 10 in flight: throughput".to_owned(),
        value: rounds.ratio("wide", "bare wide", RunTimes::rate),
        unit: "× bare".to_owned(),
        goal: Goal::AtLeast(0.8, 0.9),
        behind: format!(
            "{rate:.0}/s; bare {baseline_rate:.0}/s; {}",
            rounds.merged("wide").summary()
        ),
    });
}

fn median_ms(run: &RunTimes) -> f64 {
    run.at(500)
}

fn service_kind(bytes: usize) -> String {
    format!("{bytes}")
}

fn baseline_kind(bytes: usize) -> String {
    format!("bare {bytes}")
}

/// Returns the number of requests for an output of this size per round.
fn requests_per_round(bytes: usize) -> usize {
    let often = if bytes < LARGEST_OUTPUT { 100 } else { 10 };
    if is_quick() { often / 5 } else { often }
}

/// Starts a service with an agent and a file for each size.
async fn start() -> Service {
    let mut agents = String::new();
    for bytes in SIZES {
        _ = write!(agents, "[agents.o{bytes}]\ncommand = \"cat\"\nargs = [\"HERE/{bytes}\"]\n");
        _ = writeln!(agents, "max_concurrent = 10\nqueue_depth = 100");
    }
    let service = Service::start(PROGRAM, "", &agents).await;
    for bytes in SIZES {
        std::fs::write(service.home().join(bytes.to_string()), text(bytes)).expect("a file");
    }
    service
}

/// Returns the requests for the same output, to the service and to the bare server.
fn request_pair(service: &Service, bytes: usize) -> (Rc<LoadRequest>, Rc<LoadRequest>) {
    let call = service.call(&format!("o{bytes}"), "message/send", &message(1));
    let file = service.home().join(bytes.to_string());
    let is_good =
        move |answer: &BenchResponse<'_>| answer.status == 200 && answer.body.len() > bytes;
    let above = LoadRequest { request: numbered_request(&call), is_good: Box::new(is_good) };
    (
        Rc::new(above),
        repeated_request(&post_request(&format!("/?{}", file.display()), "", "{}"), bytes),
    )
}

/// Returns the median peak memory of one output of the largest size, each in a new service.
async fn median_peak_bytes() -> f64 {
    let mut peaks = Vec::new();
    for _ in 0..3 {
        let service = start().await;
        let mut client = KeepAliveClient::to(service.address).await;
        service.processes().into_iter().for_each(reset_peak);
        let load_request = request_pair(&service, LARGEST_OUTPUT).0;
        client.ask(&(load_request.request)(1)).await;
        peaks.push(service.sum(peak_resident_bytes));
    }
    median(peaks)
}
