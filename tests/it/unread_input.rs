//! Programs that do not read what is written to them: the task has a warning, and no later message is damaged.

use serde_json::{Value, json};

use crate::harness::client::{completed_outcome, task_id, task_outcome};
use crate::harness::{ServiceProcess, Setup, message_params};

/// Bytes of a message that no pipe holds.
const LONG_MESSAGE_BYTES: usize = 300_000;

/// A program that is kept for a conversation.
const SESSION_AGENT: &str = "
[agents.kept]
command = 'HERE/kept'
mode = 'interactive'
stop_grace = 0.3
[agents.kept.turn]
end_line = 'END'
";

async fn start_session_agent(script: &str) -> ServiceProcess {
    Setup::new(SESSION_AGENT)
        .with_executable("kept", &format!("#!/bin/sh\n{script}\n"))
        .start()
        .await
}

/// The task of a message in the conversation.
async fn send_message(service: &ServiceProcess, text: &str) -> Value {
    let mut params = message_params(text);
    params["message"]["contextId"] = json!("c");
    service.expect_result("kept", "message/send", &params).await
}

async fn execution_warnings(service: &ServiceProcess, task: &Value) -> Vec<String> {
    let record = service.fetch_execution(&task_id(task)).await;
    let events = record["events"].as_array().unwrap().iter().map(|event| &event["data"]);
    let warning_events = events.filter(|event| event["kind"] == "warning");
    warning_events.map(|event| event["message"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn an_answer_before_the_end_of_its_message_ends_the_program() {
    let script = "dd bs=1 count=1 2>&1 >/dev/null | grep -v ' '; echo $$; echo END; exec sleep 600";
    let service = start_session_agent(script).await;
    let first_task = send_message(&service, &"a".repeat(LONG_MESSAGE_BYTES)).await;
    let (state, first_pid) = task_outcome(&first_task);
    assert_eq!(state, "completed", "{first_task}");
    let expected = "the program answered before it had read its input, and ";
    let warning_texts = execution_warnings(&service, &first_task).await;
    assert!(
        matches!(warning_texts.as_slice(), [note] if note.starts_with(expected)),
        "{warning_texts:?}"
    );
    let second_task = send_message(&service, "b").await;
    let (state, second_pid) = task_outcome(&second_task);
    assert_eq!((state.as_str(), second_pid != first_pid), ("completed", true), "{second_task}");
    assert_eq!(execution_warnings(&service, &second_task).await, [""; 0]);
}

#[tokio::test]
async fn bytes_for_a_closed_input_are_a_warning() {
    let service =
        start_session_agent("exec <&-; sleep 0.3; echo deaf; echo END; exec sleep 600").await;
    let task = send_message(&service, &"a".repeat(LONG_MESSAGE_BYTES)).await;
    assert_eq!(task_outcome(&task), completed_outcome("deaf\n"));
    let warning_texts = execution_warnings(&service, &task).await;
    let expected = "the program closed its standard input, and ";
    assert!(
        matches!(warning_texts.as_slice(), [note] if note.starts_with(expected)),
        "{warning_texts:?}"
    );
}

/// An ACP agent that requests a file of its client, and does not read the answer.
const STDIN_CLOSING_ACP_SCRIPT: &str = r#"
number() { printf %s "$1" | sed 's/.*"id":\([0-9]*\).*/\1/'; }
read -r line; echo '{"jsonrpc":"2.0","id":'"$(number "$line")"',"result":{"protocolVersion":1,"agentCapabilities":{}}}'
read -r line; echo '{"jsonrpc":"2.0","id":'"$(number "$line")"',"result":{"sessionId":"s"}}'
read -r line; exec <&-
echo '{"jsonrpc":"2.0","id":9,"method":"fs/read_text_file","params":{"sessionId":"s","path":"/x"}}'
sleep 0.5
echo '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"s","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"done"}}}}'
echo '{"jsonrpc":"2.0","id":'"$(number "$line")"',"result":{"stopReason":"end_turn"}}'"#;

#[tokio::test]
async fn an_agent_that_closes_its_input_gets_a_warning() {
    let agent = "[agents.acp]\ncommand = 'HERE/acp'\nprotocol = 'acp'\nstop_grace = 0.3\n";
    let script = format!("#!/bin/sh\n{STDIN_CLOSING_ACP_SCRIPT}\n");
    let service = Setup::new(agent).with_executable("acp", &script).start().await;
    let task = service.send("acp", "go").await;
    assert_eq!(task_outcome(&task), completed_outcome("done"), "{task}");
    let warning_texts = execution_warnings(&service, &task).await;
    let expected =
        "the agent closed its standard input, so it does not receive the rest of its messages";
    assert_eq!(warning_texts, [expected]);
}
