//! Integration tests of refusals before dispatch: each is written in the format of the path by which the request
//! came, in the words of its version, and status and body agree.

use serde_json::{Value, json};

use crate::harness::{Service, Setup, TestResponse, fake_agent_config};

/// A path of A2A, the version that its caller names, and the format of its errors.
#[derive(Debug, Clone, Copy)]
struct RefusedRequest {
    line: &'static str,
    version: Option<&'static str>,
    format: RefusalFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RefusalFormat {
    JsonRpc,
    V0_3,
    GoogleRpcStatus,
}

const fn refusal_path(
    line: &'static str,
    version: Option<&'static str>,
    format: RefusalFormat,
) -> RefusedRequest {
    RefusedRequest { line, version, format }
}

/// Every kind of path in every version: none, each that is served, and others.
const REFUSAL_PATHS: &[RefusedRequest] = &[
    refusal_path("POST /agents/echo/v1", None, RefusalFormat::JsonRpc),
    refusal_path("POST /agents/echo/v1/", Some("0.3"), RefusalFormat::JsonRpc),
    refusal_path("POST /agents/echo/v1", Some("1.0"), RefusalFormat::JsonRpc),
    refusal_path("POST /agents/echo/v1", Some("7.0"), RefusalFormat::JsonRpc),
    refusal_path("POST /bots/echo/v1", Some("1.0"), RefusalFormat::JsonRpc),
    refusal_path("POST /agents/echo/v1/message:send", None, RefusalFormat::V0_3),
    refusal_path("POST /agents/echo/v1/message:stream", Some("0.3.0"), RefusalFormat::V0_3),
    refusal_path("GET /agents/echo/v1/tasks/x", Some("0.3"), RefusalFormat::V0_3),
    refusal_path("POST /agents/echo/v1/message:send", Some("1.0"), RefusalFormat::GoogleRpcStatus),
    refusal_path(
        "POST /agents/echo/v1/message:stream",
        Some("1.0.1"),
        RefusalFormat::GoogleRpcStatus,
    ),
    refusal_path("GET /agents/echo/v1/tasks/x", Some("1.0"), RefusalFormat::GoogleRpcStatus),
    refusal_path(
        "GET /agents/echo/v1/extendedAgentCard",
        Some("1.1"),
        RefusalFormat::GoogleRpcStatus,
    ),
    refusal_path(
        "DELETE /bots/echo/v1/tasks/x/pushNotificationConfigs/y",
        Some("1.0"),
        RefusalFormat::GoogleRpcStatus,
    ),
];

async fn send_request(
    service: &Service,
    path: RefusedRequest,
    extra_headers: &[String],
    body: &[u8],
) -> TestResponse {
    let version = path.version.map(|version| format!("A2A-Version: {version}"));
    let has_type = extra_headers.iter().any(|line| line.starts_with("Content-Type:"));
    let default_type = "Content-Type: application/json".to_owned();
    let headers: Vec<_> = extra_headers
        .iter()
        .cloned()
        .chain(version)
        .chain((!has_type).then_some(default_type))
        .collect();
    service.request(path.line, &headers, body).await
}

/// Sees that a refusal has this status, code and number of JSON-RPC, in the format of its path.
fn assert_refusal(
    answer: &TestResponse,
    path: RefusedRequest,
    (status, code, number): (u16, &str, i64),
) {
    let context = format!("{path:?} {answer:?}");
    assert_eq!((answer.status, answer.error_code().as_str()), (status, code), "{context}");
    assert_eq!(answer.header("content-type"), Some("application/json"), "{context}");
    let document = answer.json();
    let error = &document["error"];
    let words = error["message"].as_str();
    assert!(words.is_some_and(|words| !words.is_empty()), "{context}");
    let info = match path.format {
        RefusalFormat::JsonRpc => {
            assert_eq!((&document["jsonrpc"], &document["id"]), (&json!("2.0"), &Value::Null));
            assert_eq!(error["code"], number, "{context}");
            &error["data"]
        }
        RefusalFormat::V0_3 | RefusalFormat::GoogleRpcStatus => {
            assert_eq!(error["code"], status, "{context}");
            assert!(error["status"].is_string(), "{context}");
            &error["details"]
        }
    };
    assert_eq!(info[0]["@type"], "type.googleapis.com/google.rpc.ErrorInfo", "{context}");
    assert_eq!(info.as_array().map(Vec::len), Some(1), "{context}");
    if path.format == RefusalFormat::V0_3 {
        assert_eq!((&document["code"], &document["message"]), (&json!(number), &error["message"]));
        assert_eq!(document["data"], info[0]["metadata"], "{context}");
    } else {
        let members: Vec<_> = document.as_object().unwrap().keys().collect();
        let expected = if path.format == RefusalFormat::JsonRpc { 3 } else { 1 };
        assert_eq!(members.len(), expected, "{context}");
    }
}

fn authorization(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

fn agents() -> String {
    fake_agent_config("echo", "echo", "a2a.base_path = '/bots/echo'")
}

#[tokio::test]
async fn unauthenticated_requests_are_refused_in_the_path_format() {
    let setup = Setup::new(&format!("{}[lockout]\nfailures = 100\n", agents()));
    let service = setup.start().await;
    let wrong_headers = [authorization(&"w".repeat(40))];
    for path in REFUSAL_PATHS.iter().copied() {
        for headers in [&[][..], &wrong_headers] {
            let answer = send_request(&service, path, headers, b"{}").await;
            assert_refusal(&answer, path, (401, "unauthenticated", -32058));
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{path:?}");
        }
    }
}

#[tokio::test]
async fn foreign_origins_and_hosts_are_refused_in_the_path_format() {
    let service = Setup::new(&agents()).start().await;
    for path in REFUSAL_PATHS.iter().copied() {
        let headers = [authorization(&service.token), "Origin: https://evil.example".to_owned()];
        let answer = send_request(&service, path, &headers, b"{}").await;
        assert_refusal(&answer, path, (403, "origin-foreign", -32600));
        let version = path.version.map(|version| format!("A2A-Version: {version}\r\n"));
        let bytes = format!(
            "{} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n{}\r\n",
            path.line,
            version.unwrap_or_default()
        );
        let answer = TestResponse::parse(&service.send_raw(bytes.as_bytes()).await).unwrap();
        assert_refusal(&answer, path, (421, "host-unknown", -32600));
    }
}

#[tokio::test]
async fn a_locked_out_caller_is_refused_in_the_path_format() {
    let service = Setup::new(&format!("{}[lockout]\nfailures = 1\n", agents())).start().await;
    let wrong_headers = [authorization(&"w".repeat(40))];
    send_request(&service, REFUSAL_PATHS[0], &wrong_headers, b"{}").await;
    for path in REFUSAL_PATHS.iter().copied() {
        let answer = send_request(&service, path, &wrong_headers, b"{}").await;
        assert_refusal(&answer, path, (429, "locked-out", -32057));
        let wait: u32 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!(wait > 800, "{answer:?}");
    }
}

#[tokio::test]
async fn a_rate_limited_call_is_refused_in_the_path_format() {
    let limit = "a2a.rate_limit = { requests_per_second = 0.001, burst = 1 }\n";
    let service = Setup::new(&format!("{}{limit}", agents())).start().await;
    let valid_headers = [authorization(&service.token)];
    send_request(&service, REFUSAL_PATHS[0], &valid_headers, b"{}").await;
    for path in REFUSAL_PATHS.iter().copied() {
        let answer = send_request(&service, path, &valid_headers, b"{}").await;
        assert_refusal(&answer, path, (429, "rate-limited", -32057));
        assert!(answer.header("retry-after").is_some(), "{answer:?}");
    }
}

/// Paths whose body is read, in a version that is served.
fn paths_with_body() -> impl Iterator<Item = RefusedRequest> {
    let has_body =
        |path: &&RefusedRequest| path.line.starts_with("POST") && path.version != Some("7.0");
    REFUSAL_PATHS.iter().filter(has_body).copied()
}

#[tokio::test]
async fn long_late_and_mistyped_bodies_are_refused_in_the_format() {
    let server_settings = "max_body_bytes = 1024\nbody_timeout = 0.3";
    let service = Setup::with_server_settings(server_settings, &agents()).start().await;
    let authorization = authorization(&service.token);
    for path in paths_with_body() {
        let long = "x".repeat(2000);
        let answer =
            send_request(&service, path, std::slice::from_ref(&authorization), long.as_bytes())
                .await;
        assert_refusal(&answer, path, (413, "body-too-large", -32600));

        let headers = [authorization.clone(), "Content-Type: text/plain".to_owned()];
        let answer = send_request(&service, path, &headers, b"{}").await;
        assert_refusal(&answer, path, (415, "content-type-unsupported", -32005));

        let version = path.version.map(|version| format!("A2A-Version: {version}\r\n"));
        let bytes = format!(
            "{} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{authorization}\r\n{}\
             Content-Type: application/json\r\nContent-Length: 20\r\n\r\n{{",
            path.line,
            version.unwrap_or_default()
        );
        let answer = TestResponse::parse(&service.send_raw(bytes.as_bytes()).await).unwrap();
        assert_refusal(&answer, path, (408, "body-timeout", -32600));
    }
}

#[tokio::test]
async fn unserved_versions_and_paths_are_refused_in_the_path_format() {
    let service = Setup::new(&agents()).start().await;
    let valid_headers = [authorization(&service.token)];
    let call = json!({"jsonrpc": "2.0", "id": null, "method": "SendMessage", "params": {}});
    for version in ["1.1", "2.0", "latest"] {
        let line = "GET /agents/echo/v1/tasks";
        let path = refusal_path(line, Some(version), RefusalFormat::GoogleRpcStatus);
        let answer = send_request(&service, path, &valid_headers, b"").await;
        assert_refusal(&answer, path, (400, "version-unsupported", -32009));
        assert_eq!(answer.json()["error"]["details"][0]["reason"], "VERSION_NOT_SUPPORTED");
        let rpc =
            RefusedRequest { line: "POST /agents/echo/v1", format: RefusalFormat::JsonRpc, ..path };
        let answer = send_request(&service, rpc, &valid_headers, call.to_string().as_bytes()).await;
        assert_refusal(&answer, rpc, (200, "version-unsupported", -32009));
    }
    let old_path = refusal_path("GET /agents/echo/v1/tasks", Some("0.2"), RefusalFormat::V0_3);
    assert_refusal(
        &send_request(&service, old_path, &valid_headers, b"").await,
        old_path,
        (400, "version-unsupported", -32009),
    );

    for (version, format) in
        [(None, RefusalFormat::V0_3), (Some("1.0"), RefusalFormat::GoogleRpcStatus)]
    {
        for line in ["GET /agents/echo/v1/nonsense", "GET /agents/echo/v1/tasks/%ff"] {
            let path = refusal_path(line, version, format);
            assert_refusal(
                &send_request(&service, path, &valid_headers, b"").await,
                path,
                (404, "path-unknown", -32601),
            );
        }
    }
    for version in [None, Some("1.0")] {
        let path = refusal_path("GET /agents/echo/v1", version, RefusalFormat::JsonRpc);
        let answer = send_request(&service, path, &valid_headers, b"").await;
        assert_refusal(&answer, path, (405, "method-not-allowed", -32600));
        assert_eq!(answer.header("allow"), Some("POST"), "{answer:?}");
    }
}

/// What is no path of A2A keeps the document of RFC 9457, whatever version its caller names.
#[tokio::test]
async fn other_paths_are_refused_with_a_problem_document() {
    let service = Setup::with_server_settings("public_card = false", &agents()).start().await;
    for line in [
        "GET /status",
        "GET /api/v1/agents",
        "GET /agents",
        "GET /agents/echo/.well-known/agent-card.json",
        "GET /agents/echo/v1/.well-known/agent-card.json",
    ] {
        for version in [None, Some("1.0")] {
            let path = refusal_path(line, version, RefusalFormat::GoogleRpcStatus);
            let answer = send_request(&service, path, &[], b"").await;
            assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{line}");
            assert_eq!((answer.status, &answer.json()["status"]), (401, &json!(401)), "{line}");
        }
    }
}

#[tokio::test]
async fn an_a2a_content_type_gets_errors_in_the_a2a_format() {
    let service = Setup::new(&agents()).start().await;
    let accept = "Accept: application/a2a+json".to_owned();
    for (headers, status) in
        [(vec![accept.clone()], 401), (vec![authorization(&service.token), accept], 404)]
    {
        let path = refusal_path(
            "GET /agents/echo/v1/tasks/x",
            Some("1.0"),
            RefusalFormat::GoogleRpcStatus,
        );
        let answer = send_request(&service, path, &headers, b"").await;
        let status_and_type = (answer.status, answer.header("content-type"));
        assert_eq!(status_and_type, (status, Some("application/a2a+json")), "{answer:?}");
        assert_eq!(answer.json()["error"]["code"], status, "{answer:?}");
    }
}

#[tokio::test]
async fn results_of_1_0_have_the_a2a_type_by_default() {
    let service = Setup::new(&agents()).start().await;
    let (a2a_type, json_type) = ("application/a2a+json", "application/json");
    let message = json!({"message": {"messageId": "m", "role": "ROLE_USER",
        "parts": [{"text": "x"}]}});
    let send = "POST /agents/echo/v1/message:send";
    let list = "GET /agents/echo/v1/tasks";
    for (line, version, accept, content_type, expected) in [
        (list, "1.0", None, None, a2a_type),
        (list, "1.0", Some("*/*"), None, a2a_type),
        (list, "1.0", Some(json_type), None, json_type),
        (list, "0.3", None, None, json_type),
        (list, "0.3", Some(a2a_type), None, a2a_type),
        (send, "1.0", None, Some(a2a_type), a2a_type),
        (send, "1.0", Some(a2a_type), Some(json_type), a2a_type),
        (send, "1.0", Some(json_type), Some(a2a_type), json_type),
        (send, "1.0", Some("*/*"), Some(json_type), json_type),
    ] {
        let body = if content_type.is_some() { message.to_string() } else { String::new() };
        let headers: Vec<_> = [
            Some(authorization(&service.token)),
            Some(format!("A2A-Version: {version}")),
            accept.map(|accept| format!("Accept: {accept}")),
            content_type.map(|kind| format!("Content-Type: {kind}")),
        ]
        .into_iter()
        .flatten()
        .collect();
        let answer = service.request(line, &headers, body.as_bytes()).await;
        let status_and_type = (answer.status, answer.header("content-type"));
        assert_eq!(status_and_type, (200, Some(expected)), "{line} {headers:?}");
    }
}
