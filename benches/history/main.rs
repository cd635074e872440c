//! Time of a request for the newest fifty executions, with a short history and with a long one.
//!
//! `benches/README.md` explains the output.
#![expect(clippy::expect_used, reason = "a bench that cannot measure must not print numbers")]

mod fill;

use std::rc::Rc;

use algonius_gauge::a2a_requests::numbered_request;
use algonius_gauge::client::KeepAliveClient;
use algonius_gauge::load::{LoadRequest, StopCondition, run};
use algonius_gauge::report::{BenchReport, Curve, Goal, ResultRow};
use algonius_gauge::role::{self, is_quick};
use algonius_gauge::round::Rounds;
use algonius_gauge::run::RunTimes;
use algonius_gauge::service::Service;
use tokio::runtime::Builder;

const PROGRAM: &str = env!("CARGO_BIN_EXE_algonius");

/// Queries: the newest fifty; those of one agent, of one outcome, and of one context.
const PAGES: [(&str, &str); 4] = [
    ("newest 50", "limit=50"),
    ("newest 50 of an agent", "limit=50&agent=cat"),
    ("newest 50 that completed", "limit=50&outcome=completed"),
    ("those of a conversation", "limit=50&context=context-7"),
];

/// Requests of each kind per round.
const REQUESTS_PER_ROUND: usize = 40;

fn main() {
    if role::run_requested_role() {
        return;
    }
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(measure());
}

async fn measure() {
    let counts: [i64; 3] =
        if is_quick() { [1_000, 10_000, 100_000] } else { [10_000, 100_000, 1_000_000] };
    let mut services = Vec::new();
    for count in counts {
        services.push((count, start_filled(count).await));
    }
    let mut rounds = Rounds::default();
    for _ in 0..=Rounds::count() {
        for (count, service) in &services {
            for (page, query) in PAGES {
                rounds.take(&kind(page, *count), run_query(service, query).await);
            }
        }
    }
    let mut report = BenchReport::of("history");
    for (page, _) in PAGES {
        report_page(&mut report, &rounds, page, counts);
    }
    let point = |count: i64| (count as f64, rounds.of(&kind("newest 50", count), median));
    report.curve(Curve {
        name: "history".to_owned(),
        across: "executions in the ledger".to_owned(),
        up: "ms for the newest 50".to_owned(),
        points: counts.map(point).to_vec(),
    });
    report.store();
}

fn report_page(report: &mut BenchReport, rounds: &Rounds, page: &str, [short, _, long]: [i64; 3]) {
    let (of_short, of_long) = (kind(page, short), kind(page, long));
    let is_first = page == "newest 50";
    let goal = |goal| if is_first { goal } else { Goal::Unrated };
    let row = |description, value, unit: &str, goal, behind| ResultRow {
        number: 16,
        description,
        value,
        unit: unit.to_owned(),
        goal,
        behind,
    };
    report.row(row(
        format!("{page}, of {long} executions"),
        rounds.of(&of_long, median),
        "ms",
        goal(Goal::AtMost(2.0, 1.0)),
        rounds.merged(&of_long).summary(),
    ));
    report.row(row(
        format!("{page}: growth from {short} to {long}"),
        rounds.ratio(&of_long, &of_short, median),
        "×",
        goal(Goal::AtMost(1.5, 1.2)),
        format!("of {short}: {}", rounds.merged(&of_short).summary()),
    ));
}

/// Starts a service with this many executions in its ledger.
async fn start_filled(count: i64) -> Service {
    let rest = "[retention]\nenabled = false\n[agents.cat]\ncommand = \"cat\"\n";
    let service = Service::start(PROGRAM, "drain_timeout = 0\n", rest).await;
    run(service.address, &service.rpc("cat", 64), 1, StopCondition::Completed(1)).await;
    fill::fill(&service.home().join("state/algonius/ledger.db"), count);
    let mut client = KeepAliveClient::to(service.address).await;
    let line = service.request("GET /api/v1/executions?limit=50", "", "");
    let answer = client.ask(line.as_bytes()).await;
    let body: serde_json::Value = serde_json::from_slice(answer.body).expect("JSON");
    let listed = body.get("executions").and_then(|list| list.as_array()).map(Vec::len);
    assert_eq!(listed, Some(50), "{body:.500}");
    service
}

async fn run_query(service: &Service, query: &str) -> RunTimes {
    let line = format!("GET /api/v1/executions?{query}");
    let request = numbered_request(&service.request(&line, "", ""));
    let load_request =
        Rc::new(LoadRequest { request, is_good: Box::new(|answer| answer.status == 200) });
    run(service.address, &load_request, 1, StopCondition::Completed(REQUESTS_PER_ROUND)).await
}

fn kind(page: &str, count: i64) -> String {
    format!("{page} of {count}")
}

fn median(run: &RunTimes) -> f64 {
    run.at(500)
}
