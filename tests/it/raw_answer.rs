//! An agent whose owner may have its answer as it was given: beside all that is kept.

use serde_json::{Value, json};

use crate::harness::client::{completed_outcome, task_id, task_outcome};
use crate::harness::{
    ServiceClient, ServiceProcess, Setup, message_params, message_params_with_id, poll_until,
};

const EMAIL_ADDRESS: &str = "someone@mail.example";

/// Answers with what it was asked: one as it was given, one masked, one in events.
const AGENTS: &str = r#"
[agents.open]
command = "cat"
unredacted_response = true
[agents.shut]
command = "cat"
[agents.teller]
command = "sh"
args = ["-c", '''
read word
printf '{"type":"text","text":"to %s, "}\n{"type":"status","text":"on the way"}\n' "$word"
printf '{"type":"text","text":"then home"}\n{"type":"artifact","id":"a","text":"of %s"}\n' "$word"
''']
output = "events"
unredacted_response = true
[agents.asker]
command = "sh"
args = ["-c", '''
read word
if [ "$ALGONIUS_TURN" = 1 ]; then echo '{"type":"input_required","text":"to whom?"}'
else printf '{"type":"text","text":"to %s"}\n' "$word"; fi
''']
output = "events"
unredacted_response = true
[tokens.ann]
token_env = "ANN"
scopes = ["read", "run", "admin"]
"#;

const ANN_TOKEN: &str = "ann-ann-ann-ann-ann-ann-ann-ann-ann-ann";

async fn start_service() -> ServiceProcess {
    Setup::new(AGENTS).env("ANN", ANN_TOKEN).env("RUST_LOG", "trace").start().await
}

/// The answer of one call over HTTP+JSON that waits.
async fn send_over_rest(client: &ServiceClient, agent: &str, text: &str) -> Value {
    let parts = json!([{"text": text}]);
    let id = uuid::Uuid::new_v4().to_string();
    let body = json!({"message": {"messageId": id, "role": "ROLE_USER", "parts": parts}});
    let headers = [
        format!("Authorization: Bearer {}", client.token),
        "Content-Type: application/json".to_owned(),
        "A2A-Version: 1.0".to_owned(),
    ];
    let request_line = format!("POST /agents/{agent}/v1/message:send");
    client.request(&request_line, &headers, body.to_string().as_bytes()).await.json()
}

async fn expect_not_stored(service: &ServiceProcess, secret: &str) {
    let ledger = service.setup.read_ledger_files();
    let is_stored = ledger.windows(secret.len()).any(|window| window == secret.as_bytes());
    assert!(!is_stored, "{secret} is in the ledger");
    assert!(!service.stderr_text().contains(secret), "{secret} is in the log");
}

#[tokio::test]
async fn only_the_waiting_caller_gets_the_raw_answer() {
    let service = start_service().await;
    let task = service.send("open", EMAIL_ADDRESS).await;
    assert_eq!(task_outcome(&task), completed_outcome(EMAIL_ADDRESS));
    let artifact = &task["artifacts"][0];
    assert_eq!(artifact["metadata"]["redacted"], Value::Null, "{artifact}");
    let stored_task = service.fetch_task("open", &task_id(&task)).await;
    assert_eq!(task_outcome(&stored_task), completed_outcome("s***@mail.example"));
    assert_eq!(stored_task["artifacts"][0]["metadata"], json!({"redacted": 1}));
    let task = &send_over_rest(&service, "open", EMAIL_ADDRESS).await["task"];
    assert_eq!(task["artifacts"][0]["parts"][0]["text"], EMAIL_ADDRESS);
    let stream_response =
        service.call("open", "message/stream", &message_params(EMAIL_ADDRESS)).await;
    assert!(
        stream_response.body.contains("\"completed\"")
            && !stream_response.body.contains(EMAIL_ADDRESS)
    );
    assert!(
        !service.fetch_execution(&task_id(&stored_task)).await.to_string().contains(EMAIL_ADDRESS)
    );
    expect_not_stored(&service, EMAIL_ADDRESS).await;
}

#[tokio::test]
async fn an_answer_is_masked_unless_configured_otherwise() {
    let service = start_service().await;
    assert_eq!(
        task_outcome(&service.send("shut", EMAIL_ADDRESS).await),
        completed_outcome("s***@mail.example")
    );
}

/// The text is gone with the actor that held it, which cleans up a moment longer.
#[tokio::test]
async fn other_callers_and_late_lookups_get_masked_text() {
    let service = start_service().await;
    let params = message_params_with_id("m-1", EMAIL_ADDRESS);
    let task = service.expect_result("open", "message/send", &params).await;
    assert_eq!(task_outcome(&task), completed_outcome(EMAIL_ADDRESS));
    poll_until("the text to be gone", async || {
        let duplicate = service.expect_result("open", "message/send", &params).await;
        assert_eq!(task_id(&duplicate), task_id(&task));
        (task_outcome(&duplicate) == completed_outcome("s***@mail.example")).then_some(())
    })
    .await;
    let ann = service.client_with_token(ANN_TOKEN);
    assert_eq!(
        task_outcome(&ann.fetch_task("open", &task_id(&task)).await),
        completed_outcome("s***@mail.example")
    );
}

/// An administrator may answer a question that somebody else was asked, and owns nothing by that.
#[tokio::test]
async fn an_answer_by_another_caller_gets_masked_text() {
    let service = start_service().await;
    for (client, expected) in [
        (service.client_with_token(ANN_TOKEN), "to s***@mail.example"),
        (service.client_with_token(&service.token), "to someone@mail.example"),
    ] {
        let waiting_task = service.send("asker", "begin").await;
        let mut answer = message_params(EMAIL_ADDRESS);
        answer["message"]["taskId"] = waiting_task["id"].clone();
        answer["message"]["contextId"] = waiting_task["contextId"].clone();
        let task = client.expect_result("asker", "message/send", &answer).await;
        assert_eq!(task_outcome(&task), completed_outcome(expected));
    }
}

#[tokio::test]
async fn the_raw_answer_is_complete_and_other_artifacts_are_masked() {
    let service = start_service().await;
    let task = service.send("teller", EMAIL_ADDRESS).await;
    let stored_task = service.fetch_task("teller", &task_id(&task)).await;
    let artifact_content = |task: &Value, id: &str| {
        let artifacts = task["artifacts"].as_array().unwrap();
        let artifact =
            artifacts.iter().find(|artifact| artifact["artifactId"] == id).unwrap().clone();
        (artifact["parts"][0]["text"].clone(), artifact["metadata"]["redacted"].clone())
    };
    let redacted_content = (json!("of s***@mail.example"), json!(1));
    assert_eq!(
        (artifact_content(&task, "a"), artifact_content(&stored_task, "a")),
        (redacted_content.clone(), redacted_content)
    );
    let raw_content = (json!("to someone@mail.example, then home"), Value::Null);
    let redacted_content = (json!("to s***@mail.example, then home"), json!(1));
    assert_eq!(
        (artifact_content(&task, "answer"), artifact_content(&stored_task, "answer")),
        (raw_content, redacted_content)
    );
    expect_not_stored(&service, EMAIL_ADDRESS).await;
}
