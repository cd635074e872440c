//! Delay between the end of a program and the readability of its result.

use std::time::Duration;

use algonius_gauge::a2a_requests::{request_builder, sized_message_params_0_3};
use algonius_gauge::client::{BenchResponse, KeepAliveClient};
use algonius_gauge::load::{unique_number, wall_clock_nanoseconds};
use algonius_gauge::report::{BenchReport, Goal, ResultRow};
use algonius_gauge::role::is_quick;
use algonius_gauge::run::OperationTimes;
use algonius_gauge::service::Service;
use algonius_gauge::spawn::plain_text;
use serde_json::{Value, json};

use super::PROGRAM;

/// Size of the result in bytes.
const RESULT_BYTES: usize = 100_000;

/// Agent that prints the time in nanoseconds at the end of its output.
const AGENT_CONFIG: &str = "[agents.one]\ncommand = \"sh\"\n\
    args = [\"-c\", \"cat HERE/result; exec date +%s%N\"]\n";

/// Measures row 20.
pub(crate) async fn measure(report: &mut BenchReport) {
    let service = Service::start(PROGRAM, "", AGENT_CONFIG).await;
    std::fs::write(service.home().join("result"), plain_text(RESULT_BYTES)).expect("a file");
    let build_send_request = request_builder(&service.json_rpc_request(
        "one",
        "message/send",
        &sized_message_params_0_3(1),
    ));
    let mut client = KeepAliveClient::connect(service.address).await;
    let mut times = Vec::new();
    for _ in 0..if is_quick() { 100 } else { 1000 } {
        let sent_task =
            parse_task(&client.send_request(&build_send_request(unique_number())).await);
        let id = sent_task.pointer("/result/id").expect("an id");
        let request = service.json_rpc_request("one", "tasks/get", &json!({"id": id}));
        let answer = client.send_request(request.as_bytes()).await;
        let read_at = wall_clock_nanoseconds();
        times.push(read_at.saturating_sub(output_end_time(&parse_task(&answer))));
    }
    let run = OperationTimes::new(times, Duration::ZERO);
    report.add_row(ResultRow {
        number: 20,
        description: "100 KB can be read after the program's last word, p99".to_owned(),
        value: run.quantile_ms(990),
        unit: "ms".to_owned(),
        goal: Goal::AtMost(20.0, 5.0),
        details: format!("{}; from its last word until `tasks/get` has answered", run.summary()),
    });
}

fn parse_task(answer: &BenchResponse<'_>) -> Value {
    assert!(
        answer.is_ok_and_contains("\"state\":\"completed\"") && answer.body.len() > RESULT_BYTES
    );
    serde_json::from_slice(answer.body).expect("JSON")
}

/// Returns the time at which the program wrote the end of its output.
fn output_end_time(task: &Value) -> u64 {
    let text = task.pointer("/result/artifacts/0/parts/0/text").and_then(Value::as_str);
    let is_not_digit = |char: char| !char.is_ascii_digit();
    let last = text.and_then(|text| text.trim_end().rsplit(is_not_digit).next());
    last.and_then(|last| last.parse().ok()).expect("a time at the end of the result")
}
