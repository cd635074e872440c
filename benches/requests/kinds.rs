//! Cost of agents of other kinds that receive no request, for a service whose programs receive them.

use std::time::Duration;

use algonius_gauge::load::{StopCondition, run_load};
use algonius_gauge::process::proportional_set_bytes;
use algonius_gauge::report::{BenchReport, Goal, ResultRow};
use algonius_gauge::round::Rounds;
use algonius_gauge::run::{OperationTimes, median};
use algonius_gauge::service::Service;

use tokio::time::sleep;

use super::{MESSAGE_BYTES, PROGRAM};

/// Time for the services to settle after their start.
const SETTLE_TIME: Duration = Duration::from_secs(2);

/// Number of requests in flight.
const PARALLEL_REQUESTS: usize = 10;

const CAT_CONFIG: &str =
    "[agents.cat]\ncommand = \"cat\"\nmax_concurrent = 10\nqueue_depth = 1000\n";

/// A team, an interactive agent and a cognitive agent.
const OTHER_AGENTS_CONFIG: &str = r#"
[agents.crew]
kind = "team"
team.steps = ["cat", "coder", "thinker"]
[agents.coder]
command = "cat"
protocol = "acp"
[models.local]
base_url = "http://127.0.0.1:1/v1"
[tools.now]
source = "handler"
handler = { kind = "clock" }
[agents.thinker]
kind = "cognitive"
layer = "perceptual"
model_id = "local/model"
tools = ["now"]
"#;

/// Measures row 25. In each round both services start and run at the same time, and receive the requests in turn.
pub(crate) async fn measure(report: &mut BenchReport) {
    let (mut rounds, mut memory_ratios) = (Rounds::default(), Vec::new());
    let mixed_config = format!("{CAT_CONFIG}{OTHER_AGENTS_CONFIG}");
    for number in 0..Rounds::count() {
        // The order alternates, because it affects the memory.
        let mut configs = [CAT_CONFIG, &mixed_config];
        configs.rotate_left(number % 2);
        let first = Service::start(PROGRAM, "", configs[0]).await;
        let second = Service::start(PROGRAM, "", configs[1]).await;
        let (plain_service, mixed_service) =
            if number % 2 == 0 { (first, second) } else { (second, first) };
        sleep(SETTLE_TIME).await;
        // Before the requests: what they leave in the allocator differs by more than the agents do.
        let [plain_bytes, mixed_bytes] = [&plain_service, &mixed_service]
            .map(|service| service.sum_over_processes(proportional_set_bytes));
        memory_ratios.push(mixed_bytes / plain_bytes);
        for (kind, service) in [("alone", &plain_service), ("mixed", &mixed_service)] {
            let load_request = service.json_rpc_load_request("cat", MESSAGE_BYTES);
            let stop_condition = StopCondition::Elapsed(Rounds::run_duration());
            let run_times =
                run_load(service.address, &load_request, PARALLEL_REQUESTS, stop_condition).await;
            rounds.add(kind, run_times);
        }
    }
    let [mixed_rate, plain_rate] =
        ["mixed", "alone"].map(|kind| rounds.median_of(kind, OperationTimes::rate));
    let row = |description: &str, value, goal, details| ResultRow {
        number: 25,
        description: description.to_owned(),
        value,
        unit: "× programs alone".to_owned(),
        goal,
        details,
    };
    report.add_row(row(
        "throughput of programs beside agents of other kinds",
        rounds.median_ratio("mixed", "alone", OperationTimes::rate),
        Goal::AtLeast(0.97, 0.99),
        format!("{mixed_rate:.0}/s against {plain_rate:.0}/s"),
    ));
    let count = memory_ratios.len();
    report.add_row(row(
        "memory with agents of other kinds",
        median(memory_ratios),
        Goal::AtMost(1.02, 1.01),
        format!("share of memory (PSS) of service and warden, at rest, of {count} starts"),
    ));
}
