//! Stream of server-sent events, against a single answer.

use algonius_gauge::ask::{is_completed, message, stamped};
use algonius_gauge::client::Client;
use algonius_gauge::load::number;
use algonius_gauge::part::is_quick;
use algonius_gauge::report::{Goal, Report, Row};
use algonius_gauge::run::{Run, nanoseconds};
use algonius_gauge::service::Service;
use tokio::time::Instant;

use super::PROGRAM;

/// Measures row 13.
pub(crate) async fn measure(report: &mut Report) {
    let agent = "[agents.cat]\ncommand = \"cat\"\nmax_concurrent = 10\n";
    let service = Service::start(PROGRAM, "", agent).await;
    let [unary, stream] = ["message/send", "message/stream"]
        .map(|method| stamped(&service.call("cat", method, &message(1024))));
    let mut client = Client::to(service.address).await;
    let (mut whole, mut firsts, mut streams) = (Vec::new(), Vec::new(), Vec::new());
    let begin = Instant::now();
    for _ in 0..if is_quick() { 100 } else { 500 } {
        let request = unary(number());
        let started = Instant::now();
        let is_good = is_completed(&client.ask(&request).await);
        whole.push(nanoseconds(started.elapsed()));
        let request = stream(number());
        let (started, mut first) = (Instant::now(), None);
        let seen = |_: &[u8]| _ = first.get_or_insert_with(|| nanoseconds(started.elapsed()));
        let answer = client.follow(&request, seen).await;
        streams.push(nanoseconds(started.elapsed()));
        assert!(is_good && answer.holds("\"state\":\"completed\""));
        firsts.extend(first);
    }
    let [whole, firsts, streams] =
        [whole, firsts, streams].map(|times| Run::of(times, begin.elapsed()));
    report.row(Row {
        number: 13,
        what: "first event of a stream".to_owned(),
        value: firsts.at(500),
        unit: "ms".to_owned(),
        goal: Goal::AtMost(1.5, 0.75),
        behind: firsts.told(),
    });
    report.row(Row {
        number: 13,
        what: "whole stream, beyond the one answer".to_owned(),
        value: streams.at(500) - whole.at(500),
        unit: "ms".to_owned(),
        goal: Goal::AtMost(0.5, 0.25),
        behind: format!("stream: {}; one answer: {}", streams.told(), whole.told()),
    });
}
