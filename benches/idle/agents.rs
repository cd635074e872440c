//! Row 14: memory with one agent and with many, and the duration of a start with very many.

use std::fmt::Write as _;
use std::time::Duration;

use algonius_gauge::client::KeepAliveClient;
use algonius_gauge::process::proportional_bytes;
use algonius_gauge::report::{BenchReport, Curve, Goal, ResultRow};
use algonius_gauge::role::is_quick;
use algonius_gauge::round::Rounds;
use algonius_gauge::run::median;
use algonius_gauge::service::Service;
use tokio::time::{Instant, sleep};

use super::PROGRAM;

/// Time for the service to settle after its start.
const SETTLE_TIME: Duration = Duration::from_secs(2);

/// Greatest number of agents in the bench.
const MAX_AGENTS: usize = 10_000;

/// Measures row 14.
pub(crate) async fn measure(report: &mut BenchReport) {
    let counts = [1, 101, 1001, MAX_AGENTS];
    let mut points = Vec::new();
    for count in counts {
        points.push((count as f64, memory(count).await));
    }
    let of = |count: usize| {
        points.iter().find(|(agents, _)| *agents == count as f64).map_or(f64::NAN, |(_, it)| *it)
    };
    let row = |description: String, value, unit: &str, goal, behind| ResultRow {
        number: 14,
        description,
        value,
        unit: unit.to_owned(),
        goal,
        behind,
    };
    let behind = "share of memory (PSS) of the service and its warden".to_owned();
    let aim = Goal::AtMost(20.0, 12.0);
    report.row(row("memory with one agent".to_owned(), of(1) / 1e6, "MB", aim, behind));
    let (each, all) =
        ((of(1001) - of(1)) / 1e6, (of(MAX_AGENTS) - of(1)) / (MAX_AGENTS as f64 - 1.0) / 1e3);
    let behind = format!("of the first thousand; of {MAX_AGENTS} {all:.2} KB each");
    let aim = Goal::AtMost(12.0, 9.0);
    report.row(row("memory of each further agent".to_owned(), each, "KB", aim, behind));
    let mut times = Vec::new();
    for _ in 0..if is_quick() { 1 } else { Rounds::count() } {
        times.push(start(MAX_AGENTS).await);
    }
    let behind = format!("{} starts, from the call of the program on", times.len());
    let aim = Goal::AtMost(500.0, 300.0);
    let description = format!("{MAX_AGENTS} agents: start to first answer");
    report.row(row(description, median(times), "ms", aim, behind));
    report.curve(Curve {
        name: "agents".to_owned(),
        across: "agents".to_owned(),
        up: "MB of service and warden".to_owned(),
        points: points.iter().map(|(count, bytes)| (*count, bytes / 1e6)).collect(),
    });
}

/// Returns a configuration with this many different agents.
fn config(agents: usize) -> String {
    let mut text = "[server]\nlisten = \"127.0.0.1:0\"\n".to_owned();
    for number in 0..agents {
        _ = writeln!(
            text,
            "[agents.agent-{number}]\nname = \"Agent {number}\"\ncommand = \"/bin/cat\"\n\
             description = \"Says again what it is told, as number {number}.\""
        );
    }
    text
}

/// Returns the memory in bytes with this many agents, none of which has run.
async fn memory(agents: usize) -> f64 {
    let service = Service::on(PROGRAM, &config(agents)).await;
    sleep(SETTLE_TIME).await;
    service.sum(proportional_bytes)
}

/// Returns the milliseconds until the first answer.
async fn start(agents: usize) -> f64 {
    let text = config(agents);
    let begin = Instant::now();
    let service = Service::on(PROGRAM, &text).await;
    let mut client = KeepAliveClient::to(service.address).await;
    let request = service.request(&format!("GET /api/v1/agents/agent-{}", agents - 1), "", "");
    let answer = client.ask(request.as_bytes()).await;
    assert_eq!(answer.status, 200);
    begin.elapsed().as_secs_f64() * 1e3
}
