//! Every operation requires the right that its description names, and no other.

use serde_json::{Value, json};

use super::response_validator::ResponseValidator;
use super::{
    READER_TOKEN, RUNNER_TOKEN, SCHEDULES_PATH, schedule_body, send_request, start_service,
};

/// A body that is read as far as the question who may do this.
fn request_body(path: &str) -> Option<Value> {
    match path {
        "/api/v1/executions" => Some(json!({"agent": "echo", "text": "x"})),
        "/api/v1/tokens" => Some(json!({"name": "x", "scopes": ["admin"]})),
        "/api/v1/schedules/preview" => Some(json!({"cron": "@daily"})),
        _ if path.starts_with(SCHEDULES_PATH) => Some(schedule_body("@daily")),
        _ => None,
    }
}

#[tokio::test]
async fn every_operation_requires_its_documented_right() {
    let service = start_service().await;
    let validator = ResponseValidator::fetch(&service).await;
    let mut public_operations = Vec::new();
    for (method, path, operation) in validator.operations() {
        let line = format!("{method} {path}");
        let target = path.replace("{id}", "echo").replace("{agent}", "echo").replace("{name}", "x");
        let body = request_body(&path).filter(|_| operation.get("requestBody").is_some());
        let status_with_token = async |token: &str| {
            let client = service.client_with_token(token);
            let request = format!("{method} {target}");
            let answer = send_request(&client, &request, &[], body.as_ref()).await;
            assert_eq!(validator.response_faults(&line, &answer), [""; 0], "{line}: {answer:?}");
            answer.status
        };
        if operation["security"].as_array().unwrap().is_empty() {
            public_operations.push(line.clone());
            continue;
        }
        let required = operation.pointer("/security/0/token/0").unwrap();
        let insufficient_token = if required == "run" { READER_TOKEN } else { RUNNER_TOKEN };
        // A caller without the right must not learn from another status that the path does not exist.
        let statuses = (status_with_token("").await, status_with_token(insufficient_token).await);
        assert_eq!(statuses, (401, 403), "{line}");
    }
    assert_eq!(
        public_operations,
        ["GET /errors", "GET /errors/{code}", "GET /health", "GET /ready"]
    );
}

/// A token with one right alone is let in where that one is named, and nowhere else.
#[tokio::test]
async fn the_documented_right_is_sufficient() {
    let service = start_service().await;
    let validator = ResponseValidator::fetch(&service).await;
    for right in ["read", "run", "approve", "admin"] {
        let token_request = json!({"name": right, "scopes": [right]}).to_string();
        let created = service.post("/api/v1/tokens", &token_request).await.json();
        let client = service.client_with_token(created["token"].as_str().unwrap());
        for (method, path, operation) in validator.operations() {
            let Some(required) = operation.pointer("/security/0/token/0") else { continue };
            let target = path.replace("{id}", "echo").replace("{agent}", "echo");
            let request = format!("{method} {}", target.replace("{name}", "nobody"));
            let body = request_body(&path).filter(|_| operation.get("requestBody").is_some());
            let answer = send_request(&client, &request, &[], body.as_ref()).await;
            let line = format!("{method} {path} with {right}");
            assert_eq!(answer.status != 403, required == right, "{line}: {answer:?}");
        }
    }
}
