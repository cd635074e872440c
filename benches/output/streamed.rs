//! Stream of server-sent events, against a single answer.

use algonius_gauge::a2a_requests::{is_completed, request_builder, sized_message_params_0_3};
use algonius_gauge::client::KeepAliveClient;
use algonius_gauge::load::unique_number;
use algonius_gauge::report::{BenchReport, Goal, ResultRow};
use algonius_gauge::role::is_quick;
use algonius_gauge::run::{OperationTimes, nanoseconds};
use algonius_gauge::service::Service;
use tokio::time::Instant;

use super::PROGRAM;
use super::printed_times::measure_delays;

/// Prints the time of the day with each line, in nanoseconds. The pause keeps each line alone in its event.
const CLOCK_AGENT_CONFIG: &str = r#"
[agents.clock]
command = "sh"
args = ["-c", "for n in 1 2 3 4 5 6 7 8 9 10; do date '+at %s%N'; sleep 0.2; done"]
"#;

/// Measures row 13.
pub(crate) async fn measure(report: &mut BenchReport) {
    let cat_agent_config = "[agents.cat]\ncommand = \"cat\"\nmax_concurrent = 10\n";
    let service =
        Service::start(PROGRAM, "", &[cat_agent_config, CLOCK_AGENT_CONFIG].concat()).await;
    measure_events(report, &service).await;
    measure_lines(report, &service).await;
}

/// Measures the first event and the end of a stream.
async fn measure_events(report: &mut BenchReport, service: &Service) {
    let [build_unary, build_stream] = ["message/send", "message/stream"].map(|method| {
        request_builder(&service.json_rpc_request("cat", method, &sized_message_params_0_3(1024)))
    });
    let mut client = KeepAliveClient::connect(service.address).await;
    let (mut unary_times, mut first_event_times, mut stream_times) =
        (Vec::new(), Vec::new(), Vec::new());
    let started_at = Instant::now();
    for _ in 0..if is_quick() { 100 } else { 500 } {
        let request = build_unary(unique_number());
        let request_started_at = Instant::now();
        let is_good = is_completed(&client.send_request(&request).await);
        unary_times.push(nanoseconds(request_started_at.elapsed()));
        let request = build_stream(unique_number());
        let (request_started_at, mut first_event_time) = (Instant::now(), None);
        let on_piece = |_: &[u8]| {
            _ = first_event_time.get_or_insert_with(|| nanoseconds(request_started_at.elapsed()));
        };
        let answer = client.send_streaming_request(&request, on_piece).await;
        stream_times.push(nanoseconds(request_started_at.elapsed()));
        assert!(is_good && answer.is_ok_and_contains("\"state\":\"completed\""));
        first_event_times.extend(first_event_time);
    }
    let [unary_times, first_event_times, stream_times] =
        [unary_times, first_event_times, stream_times]
            .map(|times| OperationTimes::new(times, started_at.elapsed()));
    report.add_row(ResultRow {
        number: 13,
        description: "first event of a stream".to_owned(),
        value: first_event_times.quantile_ms(500),
        unit: "ms".to_owned(),
        goal: Goal::AtMost(1.5, 0.75),
        details: first_event_times.summary(),
    });
    report.add_row(ResultRow {
        number: 13,
        description: "whole stream, beyond the one answer".to_owned(),
        value: stream_times.quantile_ms(500) - unary_times.quantile_ms(500),
        unit: "ms".to_owned(),
        goal: Goal::AtMost(0.5, 0.25),
        details: format!(
            "stream: {}; one answer: {}",
            stream_times.summary(),
            unary_times.summary()
        ),
    });
}

/// Measures the time from a line that a program prints until the follower has it.
async fn measure_lines(report: &mut BenchReport, service: &Service) {
    let delays = measure_delays(service, if is_quick() { 2 } else { 10 }).await;
    report.add_row(ResultRow {
        number: 13,
        description: "a line, from its program to its follower".to_owned(),
        value: delays.quantile_ms(500),
        unit: "ms".to_owned(),
        goal: Goal::AtMost(300.0, 75.0),
        details: delays.summary(),
    });
}
