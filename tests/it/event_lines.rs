//! Programs that write events: a line that is no event is reported while the program works, and the answer of
//! the task reports it too.

use serde_json::{Value, json};

use crate::harness::client::{completed_outcome, task_id, task_outcome};
use crate::harness::{ServiceClient, ServiceProcess, json_rpc_request_body, message_params};
use crate::streams::{open_stream, read_until_text_or_end};

/// Writes an event, a line of words and, once the gate is open, an event that is cut and one more.
const EVENT_WRITER_AGENT: &str = r#"
[agents.teller]
command = "sh"
args = ["-c", '''
printf '%s\n' '{"type":"text","text":"one\n"}'
echo 'debug: asking someone@mail.example'
until [ -e HERE/go ]; do sleep 0.02; done
echo '{"type":"later","text":"not read"}'
printf '%s\n' '{"type":"text","text":"two\n"}'
''']
output = "events"
[agents.noisy]
command = "sh"
args = ["-c", '''yes 'no event' | head -n 5000; echo '{"type":"text","text":"fine"}' ''']
output = "events"
"#;

const EVENT_LINES_WARNING: &str = "2 lines of the agent's output are not events, the first is line 2; the output \
                       keeps them";

/// The facts of this kind in the history of an execution.
async fn fetch_events_of_kind(service: &ServiceProcess, id: &str, kind: &str) -> Vec<Value> {
    let detail = service.fetch_execution(id).await;
    let events = detail["events"].as_array().unwrap().clone();
    let events = events.into_iter().map(|mut event| event["data"].take());
    events.filter(|event| event["kind"] == kind).collect()
}

/// The task as a version of the protocol over HTTP has it.
async fn fetch_task_over_rest(client: &ServiceClient, id: &str, version: &str) -> Value {
    let headers =
        [format!("Authorization: Bearer {}", client.token), format!("A2A-Version: {version}")];
    let line = format!("GET /agents/teller/v1/tasks/{id}");
    client.request(&line, &headers, b"").await.json()
}

#[tokio::test]
async fn a_malformed_event_line_is_reported_at_once() {
    let service = ServiceProcess::start(EVENT_WRITER_AGENT).await;
    let body = json_rpc_request_body("message/stream", &message_params("hello"));
    let mut stream = open_stream(&service, "teller", "0.3", &body).await;
    // The program has not ended: it waits for the gate.
    let text_before_gate = read_until_text_or_end(&mut stream, "malformedLine").await;
    assert!(
        text_before_gate.contains("is not JSON") && text_before_gate.contains("s***@mail.example"),
        "{text_before_gate}"
    );
    assert!(!text_before_gate.contains("someone"), "{text_before_gate}");
    service.setup.open_gate("go");
    let remaining_text = read_until_text_or_end(&mut stream, "the end").await;
    let last_event =
        remaining_text.lines().filter_map(|line| line.strip_prefix("data: ")).next_back().unwrap();
    let last_event: Value = serde_json::from_str(last_event).unwrap();
    assert_eq!(
        last_event["result"]["metadata"]["warnings"],
        json!([EVENT_LINES_WARNING]),
        "{last_event}"
    );

    let list = service.get("/api/v1/executions").await.json();
    let execution_id = task_id(&list["executions"][0]);
    let task = service.fetch_task("teller", &execution_id).await;
    assert_eq!(
        task_outcome(&task),
        completed_outcome("one\ntwo\n"),
        "what is no event is not in the answer"
    );
    assert_eq!(task["metadata"]["warnings"], json!([EVENT_LINES_WARNING]));
    for version in ["0.3", "1.0"] {
        let task = fetch_task_over_rest(&service, &execution_id, version).await;
        assert_eq!(task["metadata"]["warnings"], json!([EVENT_LINES_WARNING]), "{version}: {task}");
    }
    let detail = service.fetch_execution(&execution_id).await;
    assert_eq!(detail["attempts"][0]["warnings"], json!([EVENT_LINES_WARNING]));
    let events = fetch_events_of_kind(&service, &execution_id, "malformed-line").await;
    let line_numbers: Vec<_> = events.iter().map(|event| event["line"].clone()).collect();
    assert_eq!(line_numbers, [2, 3], "{events:?}");
}

#[tokio::test]
async fn few_of_many_malformed_event_lines_are_reported() {
    let service = ServiceProcess::start(EVENT_WRITER_AGENT).await;
    let task = service.send("noisy", "hello").await;
    assert_eq!(task_outcome(&task), completed_outcome("fine"));
    let warnings = task["metadata"]["warnings"].as_array().unwrap();
    assert!(warnings[0].as_str().unwrap().starts_with("5000 lines "), "{warnings:?}");
    assert_eq!(fetch_events_of_kind(&service, &task_id(&task), "malformed-line").await.len(), 20);
    let output = service.run_command(&["send", "noisy", "hello"], "").await;
    assert_eq!(output.stdout, "fine");
    assert!(output.stderr.contains("warning: 5000 lines "), "{output:?}");
}
