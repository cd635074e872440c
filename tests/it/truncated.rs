//! Answers that are longer than an agent may give: every interface to such an
//! answer reports it beside the text.

use serde_json::{Value, json};

use crate::harness::client::{failed_outcome, task_id, task_outcome};
use crate::harness::{ServiceClient, ServiceProcess, message_params};

/// Three ways to give an answer of 50,000 bytes of which 10,000 are kept, and an artifact that does not
/// fit whole.
const AGENTS: &str = r#"
[agents.plain]
command = "sh"
args = ["-c", "yes 123456789 | head -n 5000"]
max_output_bytes = 10_000
[agents.file]
command = "sh"
args = ["-c", "yes 123456789 | head -n 5000 > \"$1\"", "-", "{{ output_file }}"]
output = "file"
max_output_bytes = 10_000
[agents.teller]
command = "sh"
args = ["-c", '''yes '{"type":"text","text":"123456789 "}' | head -n 5000''']
output = "events"
max_output_bytes = 10_000
[agents.maker]
command = "sh"
args = ["-c", '''
echo '{"type":"artifact","id":"a","text":"begun ","last":false}'
yes '{"type":"artifact","id":"a","text":"123456789 ","append":true,"last":false}' | head -n 200
''']
output = "events"
max_output_bytes = 10_000
[agents.short]
command = "cat"
"#;

/// The first artifact of a task over HTTP.
async fn artifact_over_rest(client: &ServiceClient, agent: &str, id: &str, version: &str) -> Value {
    let headers =
        [format!("Authorization: Bearer {}", client.token), format!("A2A-Version: {version}")];
    let request_line = format!("GET /agents/{agent}/v1/tasks/{id}");
    let mut task = client.request(&request_line, &headers, b"").await.json();
    task["artifacts"][0].take()
}

/// The last artifact update of a stream.
async fn send_and_read_last_artifact_update(client: &ServiceClient, agent: &str) -> Value {
    let answer = client.call(agent, "message/stream", &message_params("hello")).await;
    let lines = answer.body.lines().filter_map(|line| line.strip_prefix("data: "));
    let mut events =
        lines.map(|line| serde_json::from_str::<Value>(line).unwrap()["result"].take());
    events.rfind(|event| event["kind"] == "artifact-update").unwrap()
}

/// Returns the number of missing bytes from an artifact's metadata.
fn dropped_bytes(artifact: &Value) -> u64 {
    artifact["metadata"]["truncated"]["droppedBytes"].as_u64().unwrap_or_default()
}

#[tokio::test]
async fn a_truncated_answer_is_marked_on_every_interface() {
    let service = ServiceProcess::start(AGENTS).await;
    for agent in ["plain", "file", "teller"] {
        let task = service.send(agent, "hello").await;
        let (id, artifact) = (task_id(&task), &task["artifacts"][0]);
        let text = artifact["parts"][0]["text"].as_str().unwrap();
        let (head, tail) = text.split_once("\n[... ").unwrap();
        let (dropped_byte_count, tail) = tail.split_once(" bytes were dropped ...]\n").unwrap();
        let dropped_byte_count: u64 = dropped_byte_count.parse().unwrap();
        assert_eq!(dropped_bytes(artifact), dropped_byte_count, "{agent}");
        assert_eq!((head.len() + tail.len()) as u64 + dropped_byte_count, 50_000, "{agent}");
        let stored_task = service.fetch_task(agent, &id).await;
        assert_eq!(dropped_bytes(&stored_task["artifacts"][0]), dropped_byte_count, "{agent}");
        for version in ["0.3", "1.0"] {
            let artifact = artifact_over_rest(&service, agent, &id, version).await;
            assert_eq!(
                dropped_bytes(&artifact),
                dropped_byte_count,
                "{agent} {version}: {artifact}"
            );
        }
        let last_update = send_and_read_last_artifact_update(&service, agent).await;
        assert_eq!(
            (dropped_bytes(&last_update["artifact"]), &last_update["lastChunk"]),
            (dropped_byte_count, &json!(true))
        );
        let detail = service.fetch_execution(&id).await;
        assert_eq!(detail["outputDropped"], dropped_byte_count, "{agent}");
        let channel = if agent == "plain" { "stdout" } else { "answer" };
        assert_eq!(detail["attempts"][0]["dropped"][channel], dropped_byte_count, "{agent}");
    }
    let complete_task = service.send("short", "hello").await;
    assert_eq!(complete_task["artifacts"][0]["metadata"], Value::Null, "{complete_task}");
    assert_eq!(
        service.fetch_execution(&task_id(&complete_task)).await["outputDropped"],
        Value::Null
    );
}

#[tokio::test]
async fn a_truncated_artifact_is_marked_and_fails_the_task() {
    let service = ServiceProcess::start(AGENTS).await;
    let task = service.send("maker", "hello").await;
    assert_eq!(task_outcome(&task), failed_outcome("output-too-large"), "{task}");
    let message = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert!(message.contains("10000 bytes of `max_output_bytes`"), "{message}");
    let artifact = &task["artifacts"][0];
    assert!(dropped_bytes(artifact) > 0, "{artifact}");
    let last_update = send_and_read_last_artifact_update(&service, "maker").await;
    assert_eq!(last_update["lastChunk"], true);
    assert_eq!(dropped_bytes(&last_update["artifact"]), dropped_bytes(artifact));
    let warnings = task["metadata"]["warnings"].as_array().unwrap();
    assert!(warnings[0].as_str().unwrap().ends_with(" were not stored"), "{warnings:?}");
}
