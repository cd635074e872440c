//! Row 14: memory with one agent and with many, and the duration of a start with very many.

use std::fmt::Write as _;
use std::time::Duration;

use algonius_gauge::client::KeepAliveClient;
use algonius_gauge::process::proportional_set_bytes;
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
        points.push((count as f64, measure_memory_bytes(count).await));
    }
    let memory_at = |count: usize| {
        points
            .iter()
            .find(|(agents, _)| *agents == count as f64)
            .map_or(f64::NAN, |(_, bytes)| *bytes)
    };
    let row = |description: String, value, unit: &str, goal, details| ResultRow {
        number: 14,
        description,
        value,
        unit: unit.to_owned(),
        goal,
        details,
    };
    let details = "share of memory (PSS) of the service and its warden".to_owned();
    let goal = Goal::AtMost(20.0, 12.0);
    report.add_row(row(
        "memory with one agent".to_owned(),
        memory_at(1) / 1e6,
        "MB",
        goal,
        details,
    ));
    let (first_thousand_kb, average_kb) = (
        (memory_at(1001) - memory_at(1)) / 1e6,
        (memory_at(MAX_AGENTS) - memory_at(1)) / (MAX_AGENTS as f64 - 1.0) / 1e3,
    );
    let details = format!("of the first thousand; of {MAX_AGENTS} {average_kb:.2} KB each");
    let goal = Goal::AtMost(12.0, 9.0);
    report.add_row(row(
        "memory of each further agent".to_owned(),
        first_thousand_kb,
        "KB",
        goal,
        details,
    ));
    let mut times = Vec::new();
    for _ in 0..if is_quick() { 1 } else { Rounds::count() } {
        times.push(measure_start_ms(MAX_AGENTS).await);
    }
    let details = format!("{} starts, from the call of the program on", times.len());
    let goal = Goal::AtMost(500.0, 300.0);
    let description = format!("{MAX_AGENTS} agents: start to first answer");
    report.add_row(row(description, median(times), "ms", goal, details));
    report.add_curve(Curve {
        name: "agents".to_owned(),
        x_label: "agents".to_owned(),
        y_label: "MB of service and warden".to_owned(),
        points: points.iter().map(|(count, bytes)| (*count, bytes / 1e6)).collect(),
    });
}

/// Returns a configuration with this many different agents.
fn agents_config(agent_count: usize) -> String {
    let mut text = "[server]\nlisten = \"127.0.0.1:0\"\n".to_owned();
    for number in 0..agent_count {
        _ = writeln!(
            text,
            "[agents.agent-{number}]\nname = \"Agent {number}\"\ncommand = \"/bin/cat\"\n\
             description = \"Says again what it is told, as number {number}.\""
        );
    }
    text
}

/// Returns the memory in bytes with this many agents, none of which has run.
async fn measure_memory_bytes(agent_count: usize) -> f64 {
    let service = Service::start_with_config(PROGRAM, &agents_config(agent_count)).await;
    sleep(SETTLE_TIME).await;
    service.sum_over_processes(proportional_set_bytes)
}

/// Returns the milliseconds until the first answer.
async fn measure_start_ms(agent_count: usize) -> f64 {
    let text = agents_config(agent_count);
    let started_at = Instant::now();
    let service = Service::start_with_config(PROGRAM, &text).await;
    let mut client = KeepAliveClient::connect(service.address).await;
    let request =
        service.build_request(&format!("GET /api/v1/agents/agent-{}", agent_count - 1), "", "");
    let answer = client.send_request(request.as_bytes()).await;
    assert_eq!(answer.status, 200);
    started_at.elapsed().as_secs_f64() * 1e3
}
