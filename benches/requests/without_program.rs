//! Answers without a program, against a bare server's answers of the same size.

use std::rc::Rc;

use algonius_gauge::a2a_requests::{
    is_completed, post_request, repeated_request, sized_message_params_0_3,
};
use algonius_gauge::client::{BenchResponse, KeepAliveClient};
use algonius_gauge::load::{LoadRequest, StopCondition, run_load};
use algonius_gauge::report::{BenchReport, Goal, ResultRow};
use algonius_gauge::role::ServerProcess;
use algonius_gauge::round::Rounds;
use algonius_gauge::run::OperationTimes;
use algonius_gauge::service::Service;
use serde_json::{Value, json};

use super::MESSAGE_BYTES;

/// Number of requests in flight.
const PARALLEL_REQUESTS: usize = 10;

/// Kind of answer.
struct AnswerKind {
    name: &'static str,
    load_request: Rc<LoadRequest>,
    /// Length of the answer in bytes.
    answer_bytes: usize,
}

/// Measures row 5.
pub(crate) async fn measure(service: &Service, report: &mut BenchReport) {
    let baseline_server = ServerProcess::start("answers");
    let (kinds, mut rounds) = (answer_kinds(service).await, Rounds::default());
    let stop_condition = StopCondition::Elapsed(Rounds::run_duration() / 2);
    for _ in 0..Rounds::count() {
        for kind in &kinds {
            rounds.add(
                kind.name,
                run_load(service.address, &kind.load_request, PARALLEL_REQUESTS, stop_condition)
                    .await,
            );
            let body = r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get"}"#;
            let load_request = repeated_request(
                &post_request(&format!("/{}", kind.answer_bytes), "", body),
                kind.answer_bytes,
            );
            rounds.add(
                &baseline_kind(kind.name),
                run_load(baseline_server.address, &load_request, PARALLEL_REQUESTS, stop_condition)
                    .await,
            );
        }
    }
    for AnswerKind { name, answer_bytes, .. } in kinds {
        let [rate, baseline_rate] =
            [name, &baseline_kind(name)].map(|kind| rounds.median_of(kind, OperationTimes::rate));
        let summary = rounds.merged_run(name).summary();
        report.add_row(ResultRow {
            number: 5,
            description: format!("{name}, {PARALLEL_REQUESTS} in flight"),
            value: rounds.median_ratio(name, &baseline_kind(name), OperationTimes::rate),
            unit: "× axum".to_owned(),
            goal: Goal::AtLeast(0.4, 0.7),
            details: format!(
                "{rate:.0}/s; axum {baseline_rate:.0}/s with {answer_bytes} bytes; {summary}"
            ),
        });
    }
}

fn baseline_kind(kind: &str) -> String {
    format!("axum for {kind}")
}

async fn answer_kinds(service: &Service) -> Vec<AnswerKind> {
    let mut client = KeepAliveClient::connect(service.address).await;
    let send_request =
        service.json_rpc_request("cat", "message/send", &sized_message_params_0_3(MESSAGE_BYTES));
    let answer = client.send_request(send_request.as_bytes()).await;
    let send_response: Value = serde_json::from_slice(answer.body).expect("JSON");
    let task_params = json!({"id": send_response.pointer("/result/id").expect("a task")});
    let task_request = service.json_rpc_request("cat", "tasks/get", &task_params);
    let status_request = service.build_request("GET /status", "", "");
    let unauthorized_request =
        send_request.replace(&service.token, "").replace("authorization: Bearer \r\n", "");
    let answer_kind = async |client: &mut KeepAliveClient,
                             name,
                             request: &str,
                             is_good: fn(&BenchResponse<'_>) -> bool| {
        // The mark is not replaced: the message is the same each time.
        let request_bytes = request.to_owned().into_bytes();
        let length = client.send_request(&request_bytes).await.body.len();
        let build = Box::new(move |_| request_bytes.clone());
        let load_request = LoadRequest { build, is_good: Box::new(is_good) };
        AnswerKind { name, load_request: Rc::new(load_request), answer_bytes: length }
    };
    vec![
        answer_kind(&mut client, "tasks/get", &task_request, is_completed).await,
        answer_kind(&mut client, "the same message again", &send_request, is_completed).await,
        answer_kind(&mut client, "401", &unauthorized_request, |answer| answer.status == 401).await,
        answer_kind(&mut client, "/status", &status_request, |answer| {
            answer.is_ok_and_contains("\"cat\"")
        })
        .await,
    ]
}
