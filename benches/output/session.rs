//! Answer of an agent that speaks a control protocol, piece by piece.

use algonius_gauge::report::{BenchReport, Goal, ResultRow};
use algonius_gauge::role::is_quick;
use algonius_gauge::service::Service;

use super::PROGRAM;
use super::printed_times::measure_delays;

/// Agent that speaks ACP and prints the time of the day, in nanoseconds, with each piece of its answer. The pause keeps
/// each piece alone in its event.
const SESSION_AGENT_CONFIG: &str = r#"
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
    let service = Service::start(PROGRAM, "", SESSION_AGENT_CONFIG).await;
    let delays = measure_delays(&service, if is_quick() { 3 } else { 20 }).await;
    report.add_row(ResultRow {
        number: 23,
        description: "a piece of an answer, from an agent in a session to its follower".to_owned(),
        value: delays.quantile_ms(500),
        unit: "ms".to_owned(),
        goal: Goal::AtMost(2.0, 1.0),
        details: delays.summary(),
    });
}
