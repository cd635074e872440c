//! Answers without a program, against a bare server's answers of the same size.

use std::rc::Rc;

use algonius_gauge::a2a_requests::{is_completed, message, post_request, repeated_request};
use algonius_gauge::client::{BenchResponse, KeepAliveClient};
use algonius_gauge::load::{LoadRequest, StopCondition, run};
use algonius_gauge::report::{BenchReport, Goal, ResultRow};
use algonius_gauge::role::ServerProcess;
use algonius_gauge::round::Rounds;
use algonius_gauge::run::RunTimes;
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
    bytes: usize,
}

/// Measures row 5.
pub(crate) async fn measure(service: &Service, report: &mut BenchReport) {
    let bare = ServerProcess::start("answers");
    let (kinds, mut rounds) = (kinds(service).await, Rounds::default());
    let until = StopCondition::Elapsed(Rounds::run_duration() / 2);
    for _ in 0..Rounds::count() {
        for kind in &kinds {
            rounds.take(
                kind.name,
                run(service.address, &kind.load_request, PARALLEL_REQUESTS, until).await,
            );
            let body = r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get"}"#;
            let load_request =
                repeated_request(&post_request(&format!("/{}", kind.bytes), "", body), kind.bytes);
            rounds.take(
                &below(kind.name),
                run(bare.address, &load_request, PARALLEL_REQUESTS, until).await,
            );
        }
    }
    for AnswerKind { name, bytes, .. } in kinds {
        let [rate, baseline_rate] =
            [name, &below(name)].map(|kind| rounds.of(kind, RunTimes::rate));
        let summary = rounds.merged(name).summary();
        report.row(ResultRow {
            number: 5,
            description: format!("{name}, {PARALLEL_REQUESTS} in flight"),
            value: rounds.ratio(name, &below(name), RunTimes::rate),
            unit: "× axum".to_owned(),
            goal: Goal::AtLeast(0.4, 0.7),
            behind: format!("{rate:.0}/s; axum {baseline_rate:.0}/s with {bytes} bytes; {summary}"),
        });
    }
}

fn below(kind: &str) -> String {
    format!("axum for {kind}")
}

async fn kinds(service: &Service) -> Vec<AnswerKind> {
    let mut client = KeepAliveClient::to(service.address).await;
    let sent = service.call("cat", "message/send", &message(MESSAGE_BYTES));
    let answer = client.ask(sent.as_bytes()).await;
    let task: Value = serde_json::from_slice(answer.body).expect("JSON");
    let task = json!({"id": task.pointer("/result/id").expect("a task")});
    let found = service.call("cat", "tasks/get", &task);
    let status = service.request("GET /status", "", "");
    let refused = sent.replace(&service.token, "").replace("authorization: Bearer \r\n", "");
    let of = async |client: &mut KeepAliveClient,
                    name,
                    request: &str,
                    is_good: fn(&BenchResponse<'_>) -> bool| {
        // The mark is not replaced: the message is the same each time.
        let bytes = request.to_owned().into_bytes();
        let length = client.ask(&bytes).await.body.len();
        let request = Box::new(move |_| bytes.clone());
        let load_request = LoadRequest { request, is_good: Box::new(is_good) };
        AnswerKind { name, load_request: Rc::new(load_request), bytes: length }
    };
    vec![
        of(&mut client, "tasks/get", &found, is_completed).await,
        of(&mut client, "the same message again", &sent, is_completed).await,
        of(&mut client, "401", &refused, |answer| answer.status == 401).await,
        of(&mut client, "/status", &status, |answer| answer.holds("\"cat\"")).await,
    ]
}
