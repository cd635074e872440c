//! Time of a request for the newest fifty executions, with a short history and with a long one.
//!
//! `benches/README.md` explains the output.
#![expect(clippy::expect_used, reason = "a bench that cannot measure must not print numbers")]

mod fill;

use std::rc::Rc;

use algonius_gauge::a2a_requests::request_builder;
use algonius_gauge::client::KeepAliveClient;
use algonius_gauge::load::{LoadRequest, StopCondition, run_load};
use algonius_gauge::report::{BenchReport, Curve, Goal, ResultRow};
use algonius_gauge::role::{self, is_quick};
use algonius_gauge::round::Rounds;
use algonius_gauge::run::OperationTimes;
use algonius_gauge::service::Service;
use tokio::runtime::Builder;

const PROGRAM: &str = env!("CARGO_BIN_EXE_algonius");

/// Queries: the newest fifty; those of one agent, of one outcome, and of one context.
const QUERIES: [(&str, &str); 4] = [
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
        services.push((count, start_service_with_history(count).await));
    }
    let mut rounds = Rounds::default();
    for _ in 0..=Rounds::count() {
        for (count, service) in &services {
            for (query_name, query) in QUERIES {
                rounds.add(&series_name(query_name, *count), run_query(service, query).await);
            }
        }
    }
    let mut report = BenchReport::new("history");
    for (query_name, _) in QUERIES {
        report_query(&mut report, &rounds, query_name, counts);
    }
    let point =
        |count: i64| (count as f64, rounds.median_of(&series_name("newest 50", count), median_ms));
    report.add_curve(Curve {
        name: "history".to_owned(),
        x_label: "executions in the ledger".to_owned(),
        y_label: "ms for the newest 50".to_owned(),
        points: counts.map(point).to_vec(),
    });
    report.store();
}

fn report_query(
    report: &mut BenchReport,
    rounds: &Rounds,
    query_name: &str,
    [short, _, long]: [i64; 3],
) {
    let (short_series, long_series) =
        (series_name(query_name, short), series_name(query_name, long));
    let has_goal = query_name == "newest 50";
    let goal = |goal| if has_goal { goal } else { Goal::Unrated };
    let row = |description, value, unit: &str, goal, details| ResultRow {
        number: 16,
        description,
        value,
        unit: unit.to_owned(),
        goal,
        details,
    };
    report.add_row(row(
        format!("{query_name}, of {long} executions"),
        rounds.median_of(&long_series, median_ms),
        "ms",
        goal(Goal::AtMost(2.0, 1.0)),
        rounds.merged_run(&long_series).summary(),
    ));
    report.add_row(row(
        format!("{query_name}: growth from {short} to {long}"),
        rounds.median_ratio(&long_series, &short_series, median_ms),
        "×",
        goal(Goal::AtMost(1.5, 1.2)),
        format!("of {short}: {}", rounds.merged_run(&short_series).summary()),
    ));
}

/// Starts a service with this many executions in its ledger.
async fn start_service_with_history(count: i64) -> Service {
    let agents = "[retention]\nenabled = false\n[agents.cat]\ncommand = \"cat\"\n";
    let service = Service::start(PROGRAM, "drain_timeout = 0\n", agents).await;
    run_load(
        service.address,
        &service.json_rpc_load_request("cat", 64),
        1,
        StopCondition::Completed(1),
    )
    .await;
    fill::insert_executions(&service.home().join("state/algonius/ledger.db"), count);
    let mut client = KeepAliveClient::connect(service.address).await;
    let request = service.build_request("GET /api/v1/executions?limit=50", "", "");
    let answer = client.send_request(request.as_bytes()).await;
    let body: serde_json::Value = serde_json::from_slice(answer.body).expect("JSON");
    let listed_count = body.get("executions").and_then(|list| list.as_array()).map(Vec::len);
    assert_eq!(listed_count, Some(50), "{body:.500}");
    service
}

async fn run_query(service: &Service, query: &str) -> OperationTimes {
    let request_line = format!("GET /api/v1/executions?{query}");
    let build = request_builder(&service.build_request(&request_line, "", ""));
    let load_request =
        Rc::new(LoadRequest { build, is_good: Box::new(|answer| answer.status == 200) });
    run_load(service.address, &load_request, 1, StopCondition::Completed(REQUESTS_PER_ROUND)).await
}

fn series_name(query_name: &str, count: i64) -> String {
    format!("{query_name} of {count}")
}

fn median_ms(run: &OperationTimes) -> f64 {
    run.quantile_ms(500)
}
