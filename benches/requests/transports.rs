//! `cat` over each transport, at several numbers of requests in flight.

use std::rc::Rc;

use algonius_gauge::load::{LoadRequest, StopCondition, run_load};
use algonius_gauge::process::cpu_time_ms;
use algonius_gauge::report::{BenchReport, Curve, Goal, ResultRow};
use algonius_gauge::round::Rounds;
use algonius_gauge::run::OperationTimes;
use algonius_gauge::service::Service;
use algonius_gauge::spawn_limit::{SpawnRateBaseline, core_count};

use super::{MESSAGE_BYTES, grpc};

/// Numbers of requests in flight along the curve.
const IN_FLIGHT_STEPS: [usize; 7] = [1, 2, 5, 10, 20, 50, 100];

/// Measures rows 1 to 4 and 19.
pub(crate) async fn measure(service: &Service, report: &mut BenchReport) {
    let (rounds, cost) = measure_rounds(service).await;
    for (transport, in_flight) in
        [("JSON-RPC", 10), ("JSON-RPC", 100), ("HTTP+JSON", 10), ("HTTP+JSON", 100)]
    {
        add_throughput_row(&rounds, transport, in_flight, report);
    }
    let rpc_kind = |in_flight| format!("JSON-RPC {in_flight}");
    report.add_row(ResultRow {
        number: 2,
        description: "median, 1 in flight".to_owned(),
        value: rounds.median_ratio(&rpc_kind(1), "L 1", median_ms),
        unit: "× bare".to_owned(),
        goal: Goal::AtMost(1.8, 1.4),
        details: comparison_text(&rounds, &rpc_kind(1), "bare", "L 1"),
    });
    let tail_ratio = |run: &OperationTimes| run.quantile_ms(990) / run.quantile_ms(500);
    report.add_row(ResultRow {
        number: 3,
        description: "p99, 100 in flight".to_owned(),
        value: rounds.median_of(&rpc_kind(100), tail_ratio),
        unit: "× p50".to_owned(),
        goal: Goal::AtMost(3.0, 2.0),
        details: rounds.merged_run(&rpc_kind(100)).summary(),
    });
    report.add_row(ResultRow {
        number: 4,
        description: "own processor time of a request, 10 in flight".to_owned(),
        value: cost.per_request_ms(),
        unit: "ms".to_owned(),
        goal: Goal::AtMost(0.25, 0.12),
        details: cost.summary(),
    });
    report.add_row(ResultRow {
        number: 19,
        description: "gRPC against JSON-RPC, 10 in flight".to_owned(),
        value: rounds.median_ratio("gRPC 10", &rpc_kind(10), OperationTimes::rate),
        unit: "× JSON".to_owned(),
        goal: Goal::AtLeast(0.9, 1.0),
        details: rounds.merged_run("gRPC 10").summary(),
    });
    let point = |in_flight| {
        (in_flight as f64, rounds.median_ratio(&rpc_kind(in_flight), "L", OperationTimes::rate))
    };
    report.add_curve(Curve {
        name: "in-flight".to_owned(),
        x_label: "requests in flight".to_owned(),
        y_label: "throughput, × L".to_owned(),
        points: IN_FLIGHT_STEPS.map(point).to_vec(),
    });
}

fn median_ms(run: &OperationTimes) -> f64 {
    run.quantile_ms(500)
}

fn comparison_text(rounds: &Rounds, kind: &str, other_name: &str, other_kind: &str) -> String {
    format!(
        "{}; {other_name}: {}",
        rounds.merged_run(kind).summary(),
        rounds.merged_run(other_kind).summary()
    )
}

fn add_throughput_row(
    rounds: &Rounds,
    transport: &str,
    in_flight: usize,
    report: &mut BenchReport,
) {
    let round_kind = format!("{transport} {in_flight}");
    let (rate, limit_rate) = (
        rounds.median_of(&round_kind, OperationTimes::rate),
        rounds.median_of("L", OperationTimes::rate),
    );
    report.add_row(ResultRow {
        number: 1,
        description: format!("throughput, {transport}, {in_flight} in flight"),
        value: rounds.median_ratio(&round_kind, "L", OperationTimes::rate),
        unit: "× L".to_owned(),
        goal: Goal::AtLeast(0.7, 0.85),
        details: format!(
            "{rate:.0}/s; L {limit_rate:.0}/s; {}",
            rounds.merged_run(&round_kind).summary()
        ),
    });
}

/// Processor time of the service and its process holder, in milliseconds.
#[derive(Default)]
struct CpuCost {
    service_ms: f64,
    holder_ms: f64,
    request_count: f64,
}

impl CpuCost {
    fn per_request_ms(&self) -> f64 {
        (self.service_ms + self.holder_ms) / self.request_count
    }

    fn summary(&self) -> String {
        let (service, warden) =
            (self.service_ms / self.request_count, self.holder_ms / self.request_count);
        format!("service {service:.3} ms, warden {warden:.3} ms, {} requests", self.request_count)
    }
}

async fn measure_rounds(service: &Service) -> (Rounds, CpuCost) {
    let (mut rounds, mut cost) = (Rounds::default(), CpuCost::default());
    let (rpc_load_request, rest_load_request) = (
        service.json_rpc_load_request("cat", MESSAGE_BYTES),
        service.rest_load_request("cat", MESSAGE_BYTES),
    );
    let (baseline, run_duration) =
        (SpawnRateBaseline::for_cat(MESSAGE_BYTES), Rounds::run_duration());
    let mut caller = grpc::GrpcCaller::new(service);
    run_timed_load(service, &rpc_load_request, 10).await; // One-time initialization happens before the measurement.
    for _ in 0..Rounds::count() {
        rounds.add("L", baseline.run(core_count(), run_duration));
        rounds.add("L 1", baseline.run(1, run_duration));
        for in_flight in IN_FLIGHT_STEPS {
            let cpu_ms_before = service.pids().map(cpu_time_ms);
            let run = run_timed_load(service, &rpc_load_request, in_flight).await;
            if in_flight == 10 {
                let [service_ms, holder_ms] = service.pids().map(cpu_time_ms);
                cost.service_ms += service_ms - cpu_ms_before[0];
                cost.holder_ms += holder_ms - cpu_ms_before[1];
                cost.request_count += run.count();
            }
            rounds.add(&format!("JSON-RPC {in_flight}"), run);
        }
        for in_flight in [10, 100] {
            rounds.add(
                &format!("HTTP+JSON {in_flight}"),
                run_timed_load(service, &rest_load_request, in_flight).await,
            );
        }
        rounds.add("gRPC 10", caller.run(10, run_duration).await);
    }
    (rounds, cost)
}

async fn run_timed_load(
    service: &Service,
    load_request: &Rc<LoadRequest>,
    in_flight: usize,
) -> OperationTimes {
    run_load(
        service.address,
        load_request,
        in_flight,
        StopCondition::Elapsed(Rounds::run_duration()),
    )
    .await
}
