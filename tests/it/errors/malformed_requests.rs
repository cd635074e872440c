//! Requests that are none: each way has its own.

use super::error_request::{TransportAnswer, response_text};
use super::{CANARY, Code, assert_snapshot};
use crate::harness::{
    ServiceProcess, Setup, TestResponse, fake_agent_config, json_rpc_request_body, message_params,
};

const JSON_RPC_LINE: &str = "POST /agents/echo/v1";
const REST_SEND_LINE: &str = "POST /agents/echo/v1/message:send";

/// A request with the operator's token and these headers instead of the usual ones.
async fn send_raw_request(
    service: &ServiceProcess,
    line: &str,
    headers: &[&str],
    body: &str,
) -> TestResponse {
    let token = format!("Authorization: Bearer {}", service.token);
    let headers = headers.iter().map(|line| (*line).to_owned());
    let headers: Vec<_> = std::iter::once(token).chain(headers).collect();
    service.request(line, &headers, body.as_bytes()).await
}

/// A body on all ways of HTTP.
async fn send_over_http_bindings(
    service: &ServiceProcess,
    media_type: &str,
    bodies: [&str; 2],
) -> Vec<TransportAnswer> {
    let [rpc, rest] = bodies;
    let mut answers = Vec::new();
    for (transport, line, version, body) in [
        ("JSON-RPC 0.3", JSON_RPC_LINE, "0.3", rpc),
        ("JSON-RPC 1.0", JSON_RPC_LINE, "1.0", rpc),
        ("HTTP+JSON 0.3", REST_SEND_LINE, "0.3", rest),
        ("HTTP+JSON 1.0", REST_SEND_LINE, "1.0", rest),
    ] {
        let version = format!("A2A-Version: {version}");
        let content_type_header = format!("Content-Type: {media_type}");
        answers.push((
            transport,
            response_text(
                &send_raw_request(service, line, &[&version, &content_type_header], body).await,
            ),
        ));
    }
    answers
}

#[tokio::test]
async fn invalid_requests_have_their_errors_on_every_interface() {
    let service = Setup::new(&fake_agent_config("echo", "echo", "")).start().await;
    let json = "application/json";
    let malformed_body = format!("{{\"a\": \"{CANARY}\"");
    let answers = send_over_http_bindings(&service, json, [&malformed_body, &malformed_body]).await;
    assert_snapshot(&service, "malformed-json", Code::MalformedJson, &answers);
    let valid_body = json_rpc_request_body("message/send", &message_params(CANARY));
    let answers = send_over_http_bindings(&service, "text/plain", [&valid_body, "{}"]).await;
    assert_snapshot(&service, "media-type-unsupported", Code::ContentType, &answers);
    let unknown_method = json_rpc_request_body("message/sing", &message_params(CANARY));
    let answers = send_over_http_bindings(&service, json, [&unknown_method, "{}"]).await;
    assert_snapshot(&service, "method-unknown", Code::MethodUnknown, answers.get(..2).unwrap());
    let answers = send_over_http_bindings(&service, json, [&format!("[\"{CANARY}\"]"), "[]"]).await;
    assert_snapshot(&service, "invalid-request", Code::InvalidRequest, answers.get(..2).unwrap());
    let invalid_params =
        json_rpc_request_body("tasks/get", &serde_json::json!({"id": 5, "other": CANARY}));
    let answers = send_over_http_bindings(
        &service,
        json,
        [&invalid_params, "{\"message\": 5, \"request\": 5}"],
    )
    .await;
    assert_snapshot(&service, "invalid-params", Code::InvalidParams, answers.get(..1).unwrap());
    for (scenario, code, line) in [
        ("path-unknown", Code::PathUnknown, "GET /nowhere"),
        ("method-not-allowed", Code::MethodNotAllowed, "DELETE /status"),
    ] {
        let answer = send_raw_request(&service, line, &[], "").await;
        assert_snapshot(&service, scenario, code, &[("HTTP", response_text(&answer))]);
    }
}

#[tokio::test]
async fn foreign_and_incomplete_requests_have_their_errors() {
    let setup =
        Setup::with_server_settings("body_timeout = 0.3", &fake_agent_config("echo", "echo", ""));
    let service = setup.start().await;
    let answer =
        send_raw_request(&service, JSON_RPC_LINE, &["Origin: https://evil.example"], "{}").await;
    assert_snapshot(
        &service,
        "origin-foreign",
        Code::OriginForeign,
        &[("HTTP", response_text(&answer))],
    );
    let token = &service.token;
    let request_text = |host: &str, length: usize| {
        format!(
            "{JSON_RPC_LINE} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\nContent-Length: {length}\r\n\
             Content-Type: application/json\r\nAuthorization: Bearer {token}\r\n\r\n{{}}"
        )
    };
    for (scenario, code, bytes) in [
        ("host-unknown", Code::HostUnknown, request_text("evil.example", 2)),
        ("body-timeout", Code::BodyTimeout, request_text("localhost", 20)),
    ] {
        let answer = TestResponse::parse(&service.send_raw(bytes.as_bytes()).await).unwrap();
        assert_snapshot(&service, scenario, code, &[("HTTP", response_text(&answer))]);
    }
}
