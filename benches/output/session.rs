//! Answer of an agent that speaks a control protocol, piece by piece.

use std::time::{SystemTime, UNIX_EPOCH};

use algonius_gauge::a2a_requests::{message_params, request_builder};
use algonius_gauge::client::KeepAliveClient;
use algonius_gauge::load::unique_number;
use algonius_gauge::report::{BenchReport, Goal, ResultRow};
use algonius_gauge::role::is_quick;
use algonius_gauge::run::{RunTimes, nanoseconds};
use algonius_gauge::service::Service;
use tokio::time::Instant;

use super::PROGRAM;

/// Pieces of each answer.
const PIECE_COUNT: usize = 10;

/// Digits of a time of the day in nanoseconds.
const TIME_DIGITS: usize = 19;

/// Agent that speaks ACP and prints the time of the day, in nanoseconds, with each piece of its answer. The pause keeps
/// each piece alone in its event.
const SESSION_AGENT: &str = r#"
[agents.clock]
command = "sh"
protocol = "acp"
args = ["-c", '''
piece='{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":'
piece=$piece'{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"at %s%N "}}}}'
while read -r line; do
  id=${line#*\"id\":}
  id=${id%%[,\}]*}
  case $line in
  *\"initialize\"*) result='{"protocolVersion":1,"agentCapabilities":{}}' ;;
  *\"session/new\"*) result='{"sessionId":"s"}' ;;
  *\"session/prompt\"*)
    for n in 1 2 3 4 5 6 7 8 9 10; do date "+$piece"; sleep 0.1; done
    result='{"stopReason":"end_turn"}' ;;
  *) continue ;;
  esac
  echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":$result}"
done
''']
"#;

/// Measures row 23: the time from the moment at which the agent writes a piece until its follower has it.
pub(crate) async fn measure(report: &mut BenchReport) {
    let service = Service::start(PROGRAM, "", SESSION_AGENT).await;
    let build_request =
        request_builder(&service.json_rpc_request("clock", "message/stream", &message_params(1)));
    let mut client = KeepAliveClient::connect(service.address).await;
    let (mut delays, begin) = (Vec::new(), Instant::now());
    for _ in 0..if is_quick() { 3 } else { 20 } {
        let mut stream_delays = Vec::new();
        let on_piece = |piece: &[u8]| stream_delays.extend(piece_delays(piece));
        let answer = client.request_streaming(&build_request(unique_number()), on_piece).await;
        assert!(answer.is_ok_with("\"state\":\"completed\"") && stream_delays.len() >= PIECE_COUNT);
        delays.extend(stream_delays.into_iter().take(PIECE_COUNT)); // The last event repeats the text.
    }
    let delays = RunTimes::of(delays, begin.elapsed());
    report.add_row(ResultRow {
        number: 23,
        description: "a piece of an answer, from an agent in a session to its follower".to_owned(),
        value: delays.quantile_ms(500),
        unit: "ms".to_owned(),
        goal: Goal::AtMost(2.0, 1.0),
        behind: delays.summary(),
    });
}

/// Returns the time since each piece in these bytes was written, in nanoseconds.
#[expect(clippy::disallowed_methods, reason = "the program tells the time of the day")]
fn piece_delays(bytes: &[u8]) -> Vec<u64> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, nanoseconds);
    let text = String::from_utf8_lossy(bytes);
    let times =
        text.split("at ").skip(1).filter_map(|rest| rest.get(..TIME_DIGITS)?.parse::<u64>().ok());
    times.map(|time| now.saturating_sub(time)).collect()
}
