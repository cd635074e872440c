//! `send` prints messages that the agent writes before its answer, and goes on with the answer as it arrives.

use super::TextCollector;
use crate::harness::ServiceProcess;

/// Writes a message in two pieces, uses a tool, and writes its answer in two pieces.
const WORKER_AGENT: &str = r#"
[agents.worker]
command = "sh"
output = "claude-stream-json"
args = ["-c", '''
gate() { until [ -e "HERE/$1" ]; do sleep 0.01; done; }
start() { printf '{"type":"stream_event","event":{"type":"message_start","message":{"id":"%s"}}}\n' "$1"; }
say() { printf '{"type":"stream_event","event":{"type":"content_block_delta","delta":{"text":"%s"}}}\n' "$1"; }
start m1; say 'let me '; gate go-1; say 'look'
echo '{"type":"assistant","message":{"id":"m1","content":[{"type":"text","text":"let me look"},{"type":"tool_use","id":"t","name":"Read"}]}}'
start m1b; echo '{"type":"assistant","message":{"id":"m1b","content":[{"type":"thinking","thinking":"hm"},{"type":"tool_use","id":"u","name":"Read"}]}}'
start m2; say 'first '; gate go-2; say 'second'
printf '%s\n' '{"type":"result","is_error":false,"result":"first second"}'
''']
"#;

#[tokio::test]
async fn send_prints_the_answer_without_earlier_messages() {
    let service = ServiceProcess::start(WORKER_AGENT).await;
    let mut send_output = TextCollector::from_command(&service, &["send", "worker", "hello"]);
    for (words, gate) in [("let me ", "go-1"), ("first ", "go-2")] {
        send_output.wait_for_text(words).await;
        service.setup.open_gate(gate);
    }
    assert_eq!(send_output.wait_for_end().await, "let me look\nfirst second");
}

#[tokio::test]
async fn send_without_streaming_prints_only_the_answer() {
    let service = ServiceProcess::start(WORKER_AGENT).await;
    service.setup.open_gate("go-1");
    service.setup.open_gate("go-2");
    let output = service.run_command(&["send", "--no-stream", "worker", "hello"], "").await;
    assert_eq!((output.stdout.as_str(), output.stderr.as_str()), ("first second", ""));
}
