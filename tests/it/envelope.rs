//! The envelope of older clients, on `message:send`: answered in kind, whatever comes of it.

use serde_json::{Value, json};

use crate::harness::client::{TestResponse, completed_outcome, task_outcome};
use crate::harness::{ServiceProcess, Setup, fake_agent_config};

const SEND_PATH: &str = "/agents/echo/v1/message:send";

/// Says who says what.
const SPEAKER_AGENT: &str = "
[agents.echo]
command = 'printf'
input = 'args'
args = ['%s says %s', '{{ param.name }}', '{{ input }}']
params = { name = 'nobody' }
overrides.params = ['name']
";

fn envelope(payload: &Value) -> Value {
    json!({
        "protocol": "a2a", "version": "0.3.0", "id": "e-1", "type": "request",
        "timestamp": "2030-01-31T12:00:00Z",
        "context": {"from": "me", "to": "echo", "conversation_id": "c-1", "message_id": "m-1"},
        "payload": payload,
    })
}

async fn send_envelope(service: &ServiceProcess, body: &Value) -> (TestResponse, Value) {
    let answer = service.post(SEND_PATH, &body.to_string()).await;
    let document = answer.json();
    (answer, document)
}

#[tokio::test]
async fn an_envelope_request_is_executed_and_answered() {
    let service = ServiceProcess::start(SPEAKER_AGENT).await;
    let params = json!({"input": "hello", "parameters": {"name": "ann"}});
    let (answer, document) =
        send_envelope(&service, &envelope(&json!({"method": "execute-agent", "params": params})))
            .await;
    assert_eq!(answer.status, 200, "{document}");
    assert_eq!(answer.header("content-type"), Some("application/json"));
    for (member, value) in [
        ("protocol", json!("a2a")),
        ("version", json!("0.3.0")),
        ("type", json!("response")),
        ("in_response_to", json!("e-1")),
        (
            "context",
            json!({"from": "echo", "to": "me", "conversation_id": "c-1", "message_id": "m-1"}),
        ),
    ] {
        assert_eq!(document[member], value, "{member}");
    }
    let task = &document["payload"]["result"];
    assert_eq!(task_outcome(task), completed_outcome("ann says hello"));
    assert_eq!(task["contextId"], "c-1");
    // It is a task like any other, and the same envelope is the same task.
    let id = task["id"].as_str().unwrap();
    assert_eq!(
        task_outcome(&service.fetch_task("echo", id).await),
        completed_outcome("ann says hello")
    );
    let (_, repeated_document) =
        send_envelope(&service, &envelope(&json!({"method": "execute-agent", "params": params})))
            .await;
    assert_eq!(repeated_document["payload"]["result"]["id"], id);
}

#[tokio::test]
async fn an_envelope_reports_the_agent_and_its_capabilities() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "name = 'Echo'")).await;
    let (_, status) = send_envelope(&service, &envelope(&json!({"method": "status"}))).await;
    assert_eq!(status["payload"]["result"]["id"], "echo");
    let (_, card) =
        send_envelope(&service, &envelope(&json!({"method": "list-capabilities"}))).await;
    assert_eq!(card["payload"]["result"]["name"], "Echo");
    assert_eq!(card["payload"]["result"]["capabilities"]["streaming"], true);
}

#[tokio::test]
async fn envelope_errors_are_returned_in_an_envelope() {
    let text = format!(
        "{}[tokens.ann]\ntoken_env = 'ANN'\nscopes = ['read']\n",
        fake_agent_config("echo", "echo", "")
    );
    let token = "t".repeat(40);
    let service = Setup::new(&text).env("ANN", &token).start().await;
    let execute_payload = json!({"method": "execute-agent", "params": {"input": "x"}});
    let envelope_with = |member: &str, value: Value| {
        let mut body = envelope(&execute_payload);
        body[member] = value;
        body
    };
    for (body, status, code) in [
        (envelope(&json!({"method": "dance"})), 404, "method-unknown"),
        (envelope(&json!({"method": "execute-agent"})), 400, "invalid-params"),
        (envelope_with("version", json!("7.0")), 400, "version-unsupported"),
        (envelope_with("context", json!({"to": "other"})), 400, "invalid-params"),
        (envelope_with("type", json!("stream")), 400, "invalid-request"),
        (envelope_with("id", json!(7)), 400, "invalid-params"),
    ] {
        let (answer, document) = send_envelope(&service, &body).await;
        let error = &document["payload"]["error"];
        assert_eq!(
            (answer.status, &error["data"]["code"]),
            (status, &json!(code)),
            "{body} {document}"
        );
        assert_eq!((&document["protocol"], &document["type"]), (&json!("a2a"), &json!("error")));
    }
    let answer = service
        .client_with_token(&token)
        .post(SEND_PATH, &envelope(&execute_payload).to_string())
        .await;
    let code = answer.json()["payload"]["error"]["data"]["code"].clone();
    assert_eq!((answer.status, code), (403, json!("forbidden")));
    let unauthenticated = service
        .client_with_token(&"x".repeat(40))
        .post(SEND_PATH, &envelope(&execute_payload).to_string())
        .await;
    assert_eq!(unauthenticated.status, 401);
}
