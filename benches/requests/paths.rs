//! `cat` over each transport, at several numbers of requests in flight.

use std::rc::Rc;

use algonius_gauge::load::{LoadRequest, StopCondition, run};
use algonius_gauge::process::cpu_time_ms;
use algonius_gauge::report::{BenchReport, Curve, Goal, ResultRow};
use algonius_gauge::round::Rounds;
use algonius_gauge::run::RunTimes;
use algonius_gauge::service::Service;
use algonius_gauge::spawn_limit::{SpawnLimit, cores};

use super::{MESSAGE_BYTES, grpc};

/// Numbers of requests in flight along the curve.
const IN_FLIGHT_STEPS: [usize; 7] = [1, 2, 5, 10, 20, 50, 100];

/// Measures rows 1 to 4 and 19.
pub(crate) async fn measure(service: &Service, report: &mut BenchReport) {
    let (rounds, cost) = measure_rounds(service).await;
    for (kind, in_flight) in
        [("JSON-RPC", 10), ("JSON-RPC", 100), ("HTTP+JSON", 10), ("HTTP+JSON", 100)]
    {
        throughput(&rounds, kind, in_flight, report);
    }
    let rpc = |in_flight| format!("JSON-RPC {in_flight}");
    report.row(ResultRow {
        number: 2,
        description: "median, 1 in flight".to_owned(),
        value: rounds.ratio(&rpc(1), "L 1", median),
        unit: "× bare".to_owned(),
        goal: Goal::AtMost(1.8, 1.4),
        behind: comparison_text(&rounds, &rpc(1), "bare", "L 1"),
    });
    let tail = |run: &RunTimes| run.at(990) / run.at(500);
    report.row(ResultRow {
        number: 3,
        description: "p99, 100 in flight".to_owned(),
        value: rounds.of(&rpc(100), tail),
        unit: "× p50".to_owned(),
        goal: Goal::AtMost(3.0, 2.0),
        behind: rounds.merged(&rpc(100)).summary(),
    });
    report.row(ResultRow {
        number: 4,
        description: "own processor time of a request, 10 in flight".to_owned(),
        value: cost.each(),
        unit: "ms".to_owned(),
        goal: Goal::AtMost(0.25, 0.12),
        behind: cost.summary(),
    });
    report.row(ResultRow {
        number: 19,
        description: "gRPC against JSON-RPC, 10 in flight".to_owned(),
        value: rounds.ratio("gRPC 10", &rpc(10), RunTimes::rate),
        unit: "× JSON".to_owned(),
        goal: Goal::AtLeast(0.9, 1.0),
        behind: rounds.merged("gRPC 10").summary(),
    });
    let point = |in_flight| (in_flight as f64, rounds.ratio(&rpc(in_flight), "L", RunTimes::rate));
    report.curve(Curve {
        name: "in-flight".to_owned(),
        across: "requests in flight".to_owned(),
        up: "throughput, × L".to_owned(),
        points: IN_FLIGHT_STEPS.map(point).to_vec(),
    });
}

fn median(run: &RunTimes) -> f64 {
    run.at(500)
}

fn comparison_text(rounds: &Rounds, kind: &str, name: &str, other: &str) -> String {
    format!("{}; {name}: {}", rounds.merged(kind).summary(), rounds.merged(other).summary())
}

fn throughput(rounds: &Rounds, kind: &str, in_flight: usize, report: &mut BenchReport) {
    let key = format!("{kind} {in_flight}");
    let (rate, limit) = (rounds.of(&key, RunTimes::rate), rounds.of("L", RunTimes::rate));
    report.row(ResultRow {
        number: 1,
        description: format!("throughput, {kind}, {in_flight} in flight"),
        value: rounds.ratio(&key, "L", RunTimes::rate),
        unit: "× L".to_owned(),
        goal: Goal::AtLeast(0.7, 0.85),
        behind: format!("{rate:.0}/s; L {limit:.0}/s; {}", rounds.merged(&key).summary()),
    });
}

/// Processor time of the service and its process holder, in milliseconds.
#[derive(Default)]
struct CpuCost {
    service: f64,
    warden: f64,
    requests: f64,
}

impl CpuCost {
    fn each(&self) -> f64 {
        (self.service + self.warden) / self.requests
    }

    fn summary(&self) -> String {
        let (service, warden) = (self.service / self.requests, self.warden / self.requests);
        format!("service {service:.3} ms, warden {warden:.3} ms, {} requests", self.requests)
    }
}

async fn measure_rounds(service: &Service) -> (Rounds, CpuCost) {
    let (mut rounds, mut cost) = (Rounds::default(), CpuCost::default());
    let (rpc, rest) = (service.rpc("cat", MESSAGE_BYTES), service.rest("cat", MESSAGE_BYTES));
    let (limit, run_duration) = (SpawnLimit::of_cat(MESSAGE_BYTES), Rounds::run_duration());
    let mut caller = grpc::GrpcCaller::to(service);
    run_load(service, &rpc, 10).await; // One-time initialization happens before the measurement.
    for _ in 0..Rounds::count() {
        rounds.take("L", limit.run(cores(), run_duration));
        rounds.take("L 1", limit.run(1, run_duration));
        for in_flight in IN_FLIGHT_STEPS {
            let before = service.processes().map(cpu_time_ms);
            let run = run_load(service, &rpc, in_flight).await;
            if in_flight == 10 {
                let [own, warden] = service.processes().map(cpu_time_ms);
                cost.service += own - before[0];
                cost.warden += warden - before[1];
                cost.requests += run.count();
            }
            rounds.take(&format!("JSON-RPC {in_flight}"), run);
        }
        for in_flight in [10, 100] {
            rounds
                .take(&format!("HTTP+JSON {in_flight}"), run_load(service, &rest, in_flight).await);
        }
        rounds.take("gRPC 10", caller.run(10, run_duration).await);
    }
    (rounds, cost)
}

async fn run_load(service: &Service, load_request: &Rc<LoadRequest>, in_flight: usize) -> RunTimes {
    run(service.address, load_request, in_flight, StopCondition::Elapsed(Rounds::run_duration()))
        .await
}
