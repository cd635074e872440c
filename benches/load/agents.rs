//! Ten agents at once, against one of them alone.

use std::fmt::Write as _;

use algonius_gauge::load::{Until, run};
use algonius_gauge::part::is_quick;
use algonius_gauge::report::{Goal, Report, Row};
use algonius_gauge::round::Rounds;
use algonius_gauge::run::Run;
use algonius_gauge::service::Service;
use tokio::task::{LocalSet, spawn_local};

use super::{PROGRAM, SERVER};

/// Number of agents.
const AGENTS: usize = 10;

/// Measures row 10.
pub(crate) async fn measure(report: &mut Report) {
    let mut agents = String::new();
    for number in 0..AGENTS {
        _ = writeln!(agents, "[agents.a{number}]\ncommand = \"sleep\"\nargs = [\"0.2\"]");
    }
    let service = Service::start(PROGRAM, SERVER, &agents).await;
    let (mut rounds, each) = (Rounds::default(), if is_quick() { 2 } else { 5 });
    for _ in 0..Rounds::count() {
        rounds.take("alone", at_once(&service, 1, each).await);
        rounds.take("together", at_once(&service, AGENTS, each).await);
    }
    let median = |run: &Run| run.at(500);
    let [alone, together] = ["alone", "together"].map(|kind| rounds.whole(kind).told());
    report.row(Row {
        number: 10,
        what: format!("{AGENTS} agents of 200 ms at once: slow-down"),
        value: (rounds.ratio("together", "alone", median) - 1.0) * 100.0,
        unit: "%".to_owned(),
        goal: Goal::AtMost(5.0, 2.0),
        behind: format!("{together}; alone: {alone}"),
    });
}

/// Returns the times of the first agents, each with sequential requests.
async fn at_once(service: &Service, agents: usize, each: usize) -> Run {
    let all = LocalSet::new();
    let runs = all.run_until(async {
        let ask = |number| {
            let (address, asked) = (service.address, service.rpc(&format!("a{number}"), 0));
            spawn_local(async move { run(address, &asked, 1, Until::Done(each)).await })
        };
        let asking: Vec<_> = (0..agents).map(ask).collect();
        let mut runs = Vec::new();
        for asking in asking {
            runs.push(asking.await.expect("a run"));
        }
        runs
    });
    let runs = runs.await;
    let lasted = runs.iter().map(|run| run.lasted).max().unwrap_or_default();
    Run::joined(&runs, lasted)
}
