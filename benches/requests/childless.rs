//! Answers without a program, against a bare server's answers of the same size.

use std::rc::Rc;

use algonius_gauge::ask::{is_completed, message, plain, same};
use algonius_gauge::client::{Answer, Client};
use algonius_gauge::load::{Asked, Until, run};
use algonius_gauge::part::Server;
use algonius_gauge::report::{Goal, Report, Row};
use algonius_gauge::round::Rounds;
use algonius_gauge::run::Run;
use algonius_gauge::service::Service;
use serde_json::{Value, json};

use super::BYTES;

/// Number of requests in flight.
const WIDE: usize = 10;

/// Kind of answer.
struct Kind {
    name: &'static str,
    asked: Rc<Asked>,
    /// Length of the answer in bytes.
    bytes: usize,
}

/// Measures row 5.
pub(crate) async fn measure(service: &Service, report: &mut Report) {
    let bare = Server::start("answers");
    let (kinds, mut rounds) = (kinds(service).await, Rounds::default());
    let until = Until::Over(Rounds::lasting() / 2);
    for _ in 0..Rounds::count() {
        for kind in &kinds {
            rounds.take(kind.name, run(service.address, &kind.asked, WIDE, until).await);
            let body = r#"{"jsonrpc":"2.0","id":1,"method":"tasks/get"}"#;
            let asked = same(&plain(&format!("/{}", kind.bytes), "", body), kind.bytes);
            rounds.take(&below(kind.name), run(bare.address, &asked, WIDE, until).await);
        }
    }
    for Kind { name, bytes, .. } in kinds {
        let [rate, most] = [name, &below(name)].map(|kind| rounds.of(kind, Run::rate));
        let told = rounds.whole(name).told();
        report.row(Row {
            number: 5,
            what: format!("{name}, {WIDE} in flight"),
            value: rounds.ratio(name, &below(name), Run::rate),
            unit: "× axum".to_owned(),
            goal: Goal::AtLeast(0.4, 0.7),
            behind: format!("{rate:.0}/s; axum {most:.0}/s with {bytes} bytes; {told}"),
        });
    }
}

fn below(kind: &str) -> String {
    format!("axum for {kind}")
}

async fn kinds(service: &Service) -> Vec<Kind> {
    let mut client = Client::to(service.address).await;
    let sent = service.call("cat", "message/send", &message(BYTES));
    let answer = client.ask(sent.as_bytes()).await;
    let task: Value = serde_json::from_slice(answer.body).expect("JSON");
    let task = json!({"id": task.pointer("/result/id").expect("a task")});
    let found = service.call("cat", "tasks/get", &task);
    let status = service.request("GET /status", "", "");
    let refused = sent.replace(&service.token, "").replace("authorization: Bearer \r\n", "");
    let of = async |client: &mut Client, name, request: &str, is_good: fn(&Answer<'_>) -> bool| {
        // The mark is not replaced: the message is the same each time.
        let bytes = request.to_owned().into_bytes();
        let length = client.ask(&bytes).await.body.len();
        let request = Box::new(move |_| bytes.clone());
        let asked = Asked { request, is_good: Box::new(is_good) };
        Kind { name, asked: Rc::new(asked), bytes: length }
    };
    vec![
        of(&mut client, "tasks/get", &found, is_completed).await,
        of(&mut client, "the same message again", &sent, is_completed).await,
        of(&mut client, "401", &refused, |answer| answer.status == 401).await,
        of(&mut client, "/status", &status, |answer| answer.holds("\"cat\"")).await,
    ]
}
