//! `cat` over each transport, at several numbers of requests in flight.

use std::rc::Rc;

use algonius_gauge::limit::{Limit, cores};
use algonius_gauge::load::{Asked, Until, run};
use algonius_gauge::process::spent;
use algonius_gauge::report::{Curve, Goal, Report, Row};
use algonius_gauge::round::Rounds;
use algonius_gauge::run::Run;
use algonius_gauge::service::Service;

use super::{BYTES, grpc};

/// Numbers of requests in flight along the curve.
const ALONG: [usize; 7] = [1, 2, 5, 10, 20, 50, 100];

/// Measures rows 1 to 4 and 19.
pub(crate) async fn measure(service: &Service, report: &mut Report) {
    let (rounds, cost) = rounds(service).await;
    for (kind, in_flight) in
        [("JSON-RPC", 10), ("JSON-RPC", 100), ("HTTP+JSON", 10), ("HTTP+JSON", 100)]
    {
        throughput(&rounds, kind, in_flight, report);
    }
    let rpc = |in_flight| format!("JSON-RPC {in_flight}");
    report.row(Row {
        number: 2,
        what: "median, 1 in flight".to_owned(),
        value: rounds.ratio(&rpc(1), "L 1", median),
        unit: "× bare".to_owned(),
        goal: Goal::AtMost(1.8, 1.4),
        behind: told_both(&rounds, &rpc(1), "bare", "L 1"),
    });
    let tail = |run: &Run| run.at(990) / run.at(500);
    report.row(Row {
        number: 3,
        what: "p99, 100 in flight".to_owned(),
        value: rounds.of(&rpc(100), tail),
        unit: "× p50".to_owned(),
        goal: Goal::AtMost(3.0, 2.0),
        behind: rounds.whole(&rpc(100)).told(),
    });
    report.row(Row {
        number: 4,
        what: "own processor time of a request, 10 in flight".to_owned(),
        value: cost.each(),
        unit: "ms".to_owned(),
        goal: Goal::AtMost(0.25, 0.12),
        behind: cost.told(),
    });
    report.row(Row {
        number: 19,
        what: "gRPC against JSON-RPC, 10 in flight".to_owned(),
        value: rounds.ratio("gRPC 10", &rpc(10), Run::rate),
        unit: "× JSON".to_owned(),
        goal: Goal::AtLeast(0.9, 1.0),
        behind: rounds.whole("gRPC 10").told(),
    });
    let point = |in_flight| (in_flight as f64, rounds.ratio(&rpc(in_flight), "L", Run::rate));
    report.curve(Curve {
        name: "in-flight".to_owned(),
        across: "requests in flight".to_owned(),
        up: "throughput, × L".to_owned(),
        points: ALONG.map(point).to_vec(),
    });
}

fn median(run: &Run) -> f64 {
    run.at(500)
}

fn told_both(rounds: &Rounds, kind: &str, name: &str, other: &str) -> String {
    format!("{}; {name}: {}", rounds.whole(kind).told(), rounds.whole(other).told())
}

fn throughput(rounds: &Rounds, kind: &str, in_flight: usize, report: &mut Report) {
    let key = format!("{kind} {in_flight}");
    let (rate, limit) = (rounds.of(&key, Run::rate), rounds.of("L", Run::rate));
    report.row(Row {
        number: 1,
        what: format!("throughput, {kind}, {in_flight} in flight"),
        value: rounds.ratio(&key, "L", Run::rate),
        unit: "× L".to_owned(),
        goal: Goal::AtLeast(0.7, 0.85),
        behind: format!("{rate:.0}/s; L {limit:.0}/s; {}", rounds.whole(&key).told()),
    });
}

/// Processor time of the service and its process holder, in milliseconds.
#[derive(Default)]
struct Cost {
    service: f64,
    warden: f64,
    requests: f64,
}

impl Cost {
    fn each(&self) -> f64 {
        (self.service + self.warden) / self.requests
    }

    fn told(&self) -> String {
        let (service, warden) = (self.service / self.requests, self.warden / self.requests);
        format!("service {service:.3} ms, warden {warden:.3} ms, {} requests", self.requests)
    }
}

async fn rounds(service: &Service) -> (Rounds, Cost) {
    let (mut rounds, mut cost) = (Rounds::default(), Cost::default());
    let (rpc, rest) = (service.rpc("cat", BYTES), service.rest("cat", BYTES));
    let (limit, lasting) = (Limit::of_cat(BYTES), Rounds::lasting());
    let mut caller = grpc::Caller::to(service);
    again(service, &rpc, 10).await; // One-time initialization happens before the measurement.
    for _ in 0..Rounds::count() {
        rounds.take("L", limit.run(cores(), lasting));
        rounds.take("L 1", limit.run(1, lasting));
        for in_flight in ALONG {
            let before = service.processes().map(spent);
            let run = again(service, &rpc, in_flight).await;
            if in_flight == 10 {
                let [own, warden] = service.processes().map(spent);
                cost.service += own - before[0];
                cost.warden += warden - before[1];
                cost.requests += run.count();
            }
            rounds.take(&format!("JSON-RPC {in_flight}"), run);
        }
        for in_flight in [10, 100] {
            rounds.take(&format!("HTTP+JSON {in_flight}"), again(service, &rest, in_flight).await);
        }
        rounds.take("gRPC 10", caller.run(10, lasting).await);
    }
    (rounds, cost)
}

async fn again(service: &Service, asked: &Rc<Asked>, in_flight: usize) -> Run {
    run(service.address, asked, in_flight, Until::Over(Rounds::lasting())).await
}
