//! Output that is no text, or hardly: each binding shows it as text, and the task has its end.

use serde_json::{Value, json};

use crate::harness::client::{completed_outcome, task_id, task_outcome};
use crate::harness::{ServiceClient, ServiceProcess, fake_agent_config, message_params};

/// One byte at a time, so that each border lies within a character once; and events that are no
/// text in ways of their own: half of a pair, a byte that is no UTF-8, a control character.
const AGENTS: &str = r#"
[agents.slow]
command = "sh"
args = ["-c", '''
for byte in 303 251 342 202 254 360 237 230 200; do printf "\\$byte"; sleep 0.02; done
''']
[agents.teller]
command = "sh"
args = ["-c", '''
echo '{"type":"text","text":"half \ud83d of a pair, "}'
printf '{"type":"text","text":"no \377 text, "}\n'
echo '{"type":"text","text":"a \ud83d\ude00, \u0000 and \u001b[1m"}'
''']
output = "events"
"#;

/// What the noisy agent printed: escapes and control characters as they are, the rest replaced.
const NOISE: &str = "\u{1b}[31mred\u{1b}[0m \u{fffd}\u{fffd} bell\u{7} zero\u{0} half \u{fffd}";

/// Answer of the agent with events.
const EVENT_TEXT: &str = "half \u{fffd} of a pair, no \u{fffd} text, a 😀, \u{0} and \u{1b}[1m";

async fn start_service() -> ServiceProcess {
    ServiceProcess::start(&[AGENTS, &fake_agent_config("noisy", "noisy", "")].concat()).await
}

/// The texts that a stream over JSON-RPC shows, put together.
async fn send_and_read_stream_text(client: &ServiceClient, agent: &str) -> String {
    let body = client.call(agent, "message/stream", &message_params("go")).await.body;
    let events = body.lines().filter_map(|line| line.strip_prefix("data: "));
    let events: Vec<Value> = events.map(|event| serde_json::from_str(event).unwrap()).collect();
    let texts = events
        .iter()
        .filter_map(|event| event.pointer("/result/artifact/parts/0/text").and_then(Value::as_str));
    texts.collect()
}

/// The answer over HTTP+JSON.
async fn send_and_read_rest_answer(client: &ServiceClient, agent: &str) -> String {
    let parts = json!([{"text": "go"}]);
    let id = uuid::Uuid::new_v4().to_string();
    let body = json!({"message": {"messageId": id, "role": "ROLE_USER", "parts": parts}});
    let headers = [
        format!("Authorization: Bearer {}", client.token),
        "Content-Type: application/json".to_owned(),
        "A2A-Version: 1.0".to_owned(),
    ];
    let line = format!("POST /agents/{agent}/v1/message:send");
    let answer = client.request(&line, &headers, body.to_string().as_bytes()).await.json();
    answer_text(&answer["task"])
}

fn answer_text(task: &Value) -> String {
    let text = task.pointer("/artifacts/0/parts/0/text").and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}

#[tokio::test]
async fn invalid_utf_8_is_shown_as_text_over_http() {
    let service = start_service().await;
    for (agent, expected) in [("noisy", NOISE), ("slow", "é€😀"), ("teller", EVENT_TEXT)] {
        let task = service.send(agent, "go").await;
        assert_eq!(task_outcome(&task), completed_outcome(expected), "{agent}");
        let stored_task = service.fetch_task(agent, &task_id(&task)).await;
        assert_eq!(task_outcome(&stored_task), completed_outcome(expected), "{agent}");
        assert_eq!(send_and_read_stream_text(&service, agent).await, expected, "{agent}");
        assert_eq!(send_and_read_rest_answer(&service, agent).await, expected, "{agent}");
    }
}

#[tokio::test]
async fn the_record_shows_replaced_bytes_without_a_warning() {
    let service = start_service().await;
    let noisy = service.send("noisy", "go").await;
    let record = service.fetch_execution(&task_id(&noisy)).await;
    let expected_stderr = "\u{1b}]0;title\u{7} warning \u{fffd}(\n";
    assert_eq!((&record["output"], &record["stderr"]), (&json!(NOISE), &json!(expected_stderr)));
    let task = service.send("teller", "go").await;
    let events = service.fetch_execution(&task_id(&task)).await["events"].clone();
    let warnings =
        events.as_array().unwrap().iter().filter(|event| event["data"]["kind"] == "warning");
    assert_eq!(warnings.count(), 0, "{events}");
}
