//! Ten agents at once, against one of them alone.

use std::fmt::Write as _;

use algonius_gauge::load::{StopCondition, run_load};
use algonius_gauge::report::{BenchReport, Goal, ResultRow};
use algonius_gauge::role::is_quick;
use algonius_gauge::round::Rounds;
use algonius_gauge::run::OperationTimes;
use algonius_gauge::service::Service;
use tokio::task::{LocalSet, spawn_local};

use super::{PROGRAM, SERVER_CONFIG};

/// Number of agents.
const AGENT_COUNT: usize = 10;

/// Measures row 10.
pub(crate) async fn measure(report: &mut BenchReport) {
    let mut agents_config = String::new();
    for number in 0..AGENT_COUNT {
        _ = writeln!(agents_config, "[agents.a{number}]\ncommand = \"sleep\"\nargs = [\"0.2\"]");
    }
    let service = Service::start(PROGRAM, SERVER_CONFIG, &agents_config).await;
    let (mut rounds, requests_per_agent) = (Rounds::default(), if is_quick() { 2 } else { 5 });
    for _ in 0..Rounds::count() {
        rounds.add("alone", run_agents(&service, 1, requests_per_agent).await);
        rounds.add("together", run_agents(&service, AGENT_COUNT, requests_per_agent).await);
    }
    let median_ms = |run: &OperationTimes| run.quantile_ms(500);
    let [alone, together] = ["alone", "together"].map(|kind| rounds.merged_run(kind).summary());
    report.add_row(ResultRow {
        number: 10,
        description: format!("{AGENT_COUNT} agents of 200 ms at once: slow-down"),
        value: (rounds.median_ratio("together", "alone", median_ms) - 1.0) * 100.0,
        unit: "%".to_owned(),
        goal: Goal::AtMost(5.0, 2.0),
        details: format!("{together}; alone: {alone}"),
    });
}

/// Returns the times of the first agents, each with sequential requests.
async fn run_agents(
    service: &Service,
    agent_count: usize,
    requests_per_agent: usize,
) -> OperationTimes {
    let local_set = LocalSet::new();
    let runs = local_set.run_until(async {
        let start_run = |number| {
            let (address, load_request) =
                (service.address, service.json_rpc_load_request(&format!("a{number}"), 0));
            spawn_local(async move {
                run_load(address, &load_request, 1, StopCondition::Completed(requests_per_agent))
                    .await
            })
        };
        let tasks: Vec<_> = (0..agent_count).map(start_run).collect();
        let mut runs = Vec::new();
        for task in tasks {
            runs.push(task.await.expect("a run"));
        }
        runs
    });
    let runs = runs.await;
    let longest = runs.iter().map(|run| run.lasted).max().unwrap_or_default();
    OperationTimes::merge(&runs, longest)
}
