//! Programs that write events: a line that is no event is reported while the program works, and the answer of
//! the task reports it too.

use serde_json::{Value, json};

use crate::harness::client::{completed_with, task_id, task_outcome};
use crate::harness::{Service, ServiceClient, json_rpc_call, message_params};
use crate::streams::{open_stream, read_until};

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
async fn events_of_kind(service: &Service, id: &str, kind: &str) -> Vec<Value> {
    let detail = service.execution(id).await;
    let events = detail["events"].as_array().unwrap().clone();
    let events = events.into_iter().map(|mut event| event["data"].take());
    events.filter(|event| event["kind"] == kind).collect()
}

/// The task as a version of the protocol over HTTP has it.
async fn task_over_rest(client: &ServiceClient, id: &str, version: &str) -> Value {
    let headers =
        [format!("Authorization: Bearer {}", client.token), format!("A2A-Version: {version}")];
    let line = format!("GET /agents/teller/v1/tasks/{id}");
    client.request(&line, &headers, b"").await.json()
}

#[tokio::test]
async fn a_malformed_event_line_is_reported_at_once() {
    let service = Service::start(EVENT_WRITER_AGENT).await;
    let body = json_rpc_call("message/stream", &message_params("hello"));
    let mut stream = open_stream(&service, "teller", "0.3", &body).await;
    // The program has not ended: it waits for the gate.
    let events_before = read_until(&mut stream, "malformedLine").await;
    assert!(
        events_before.contains("is not JSON") && events_before.contains("s***@mail.example"),
        "{events_before}"
    );
    assert!(!events_before.contains("someone"), "{events_before}");
    service.setup.open_gate("go");
    let remaining_events = read_until(&mut stream, "the end").await;
    let last_event = remaining_events
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .next_back()
        .unwrap();
    let last_event: Value = serde_json::from_str(last_event).unwrap();
    assert_eq!(
        last_event["result"]["metadata"]["warnings"],
        json!([EVENT_LINES_WARNING]),
        "{last_event}"
    );

    let list = service.get("/api/v1/executions").await.json();
    let execution = task_id(&list["executions"][0]);
    let task = service.task("teller", &execution).await;
    assert_eq!(
        task_outcome(&task),
        completed_with("one\ntwo\n"),
        "what is no event is not in the answer"
    );
    assert_eq!(task["metadata"]["warnings"], json!([EVENT_LINES_WARNING]));
    for version in ["0.3", "1.0"] {
        let task = task_over_rest(&service, &execution, version).await;
        assert_eq!(task["metadata"]["warnings"], json!([EVENT_LINES_WARNING]), "{version}: {task}");
    }
    let detail = service.execution(&execution).await;
    assert_eq!(detail["attempts"][0]["warnings"], json!([EVENT_LINES_WARNING]));
    let events = events_of_kind(&service, &execution, "malformed-line").await;
    let line_numbers: Vec<_> = events.iter().map(|event| event["line"].clone()).collect();
    assert_eq!(line_numbers, [2, 3], "{events:?}");
}

#[tokio::test]
async fn few_of_many_malformed_event_lines_are_reported() {
    let service = Service::start(EVENT_WRITER_AGENT).await;
    let task = service.send("noisy", "hello").await;
    assert_eq!(task_outcome(&task), completed_with("fine"));
    let warnings = task["metadata"]["warnings"].as_array().unwrap();
    assert!(warnings[0].as_str().unwrap().starts_with("5000 lines "), "{warnings:?}");
    assert_eq!(events_of_kind(&service, &task_id(&task), "malformed-line").await.len(), 20);
    let output = service.run_command(&["send", "noisy", "hello"], "").await;
    assert_eq!(output.stdout, "fine");
    assert!(output.stderr.contains("warning: 5000 lines "), "{output:?}");
}
