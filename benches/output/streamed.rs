//! Stream of server-sent events, against a single answer.

use std::time::{SystemTime, UNIX_EPOCH};

use algonius_gauge::a2a_requests::{is_completed, message, numbered_request};
use algonius_gauge::client::KeepAliveClient;
use algonius_gauge::load::unique_number;
use algonius_gauge::report::{BenchReport, Goal, ResultRow};
use algonius_gauge::role::is_quick;
use algonius_gauge::run::{RunTimes, nanoseconds};
use algonius_gauge::service::Service;
use tokio::time::Instant;

use super::PROGRAM;

/// Lines that [`CLOCK_SCRIPT`] prints.
const LINES: usize = 10;

/// Prints the time of the day with each line, in milliseconds. The pause keeps each line alone in its event.
const CLOCK_SCRIPT: &str = r#"
[agents.clock]
command = "sh"
args = ["-c", "for n in 1 2 3 4 5 6 7 8 9 10; do date '+at %s%3N'; sleep 0.2; done"]
"#;

/// Measures row 13.
pub(crate) async fn measure(report: &mut BenchReport) {
    let cat = "[agents.cat]\ncommand = \"cat\"\nmax_concurrent = 10\n";
    let service = Service::start(PROGRAM, "", &[cat, CLOCK_SCRIPT].concat()).await;
    measure_events(report, &service).await;
    measure_lines(report, &service).await;
}

/// Measures the first event and the end of a stream.
async fn measure_events(report: &mut BenchReport, service: &Service) {
    let [unary, stream] = ["message/send", "message/stream"]
        .map(|method| numbered_request(&service.call("cat", method, &message(1024))));
    let mut client = KeepAliveClient::to(service.address).await;
    let (mut unary_times, mut firsts, mut streams) = (Vec::new(), Vec::new(), Vec::new());
    let begin = Instant::now();
    for _ in 0..if is_quick() { 100 } else { 500 } {
        let request = unary(unique_number());
        let started = Instant::now();
        let is_good = is_completed(&client.ask(&request).await);
        unary_times.push(nanoseconds(started.elapsed()));
        let request = stream(unique_number());
        let (started, mut first) = (Instant::now(), None);
        let on_piece = |_: &[u8]| _ = first.get_or_insert_with(|| nanoseconds(started.elapsed()));
        let answer = client.follow(&request, on_piece).await;
        streams.push(nanoseconds(started.elapsed()));
        assert!(is_good && answer.holds("\"state\":\"completed\""));
        firsts.extend(first);
    }
    let [unary_times, firsts, streams] =
        [unary_times, firsts, streams].map(|times| RunTimes::of(times, begin.elapsed()));
    report.row(ResultRow {
        number: 13,
        description: "first event of a stream".to_owned(),
        value: firsts.at(500),
        unit: "ms".to_owned(),
        goal: Goal::AtMost(1.5, 0.75),
        behind: firsts.summary(),
    });
    report.row(ResultRow {
        number: 13,
        description: "whole stream, beyond the one answer".to_owned(),
        value: streams.at(500) - unary_times.at(500),
        unit: "ms".to_owned(),
        goal: Goal::AtMost(0.5, 0.25),
        behind: format!("stream: {}; one answer: {}", streams.summary(), unary_times.summary()),
    });
}

/// Returns the time since each line of this piece of a stream was printed, in nanoseconds.
#[expect(clippy::disallowed_methods, reason = "the program tells the time of the day")]
fn delays_of(piece: &[u8]) -> Vec<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, nanoseconds);
    let text = String::from_utf8_lossy(piece);
    let times = text.split("at ").skip(1).filter_map(|rest| rest.get(..13)?.parse::<u64>().ok());
    times.map(|milliseconds| now.saturating_sub(milliseconds * 1_000_000)).collect()
}

/// Measures the time from a line that a program prints until the follower has it.
async fn measure_lines(report: &mut BenchReport, service: &Service) {
    let request = numbered_request(&service.call("clock", "message/stream", &message(1)));
    let mut client = KeepAliveClient::to(service.address).await;
    let (mut delays, begin) = (Vec::new(), Instant::now());
    for _ in 0..if is_quick() { 2 } else { 10 } {
        let mut lines = Vec::new();
        let on_piece = |piece: &[u8]| lines.extend(delays_of(piece));
        let answer = client.follow(&request(unique_number()), on_piece).await;
        assert!(answer.holds("\"state\":\"completed\"") && lines.len() >= LINES);
        delays.extend(lines.into_iter().take(LINES)); // The last event repeats the text.
    }
    let delays = RunTimes::of(delays, begin.elapsed());
    report.row(ResultRow {
        number: 13,
        description: "a line, from its program to its follower".to_owned(),
        value: delays.at(500),
        unit: "ms".to_owned(),
        goal: Goal::AtMost(300.0, 75.0),
        behind: delays.summary(),
    });
}
