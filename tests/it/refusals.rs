//! Integration tests of refusals before dispatch: each is written in the format of the path by which the request
//! came, in the words of its version, and status and body agree.

use serde_json::{Value, json};

use crate::harness::{ServiceProcess, Setup, TestResponse, fake_agent_config};

/// A path of A2A, the version that its caller names, and the format of its errors.
#[derive(Debug, Clone, Copy)]
struct RefusedRequest {
    request_line: &'static str,
    version: Option<&'static str>,
    format: RefusalFormat,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RefusalFormat {
    JsonRpc,
    RestV0_3,
    GoogleRpcStatus,
}

const fn refused_request(
    request_line: &'static str,
    version: Option<&'static str>,
    format: RefusalFormat,
) -> RefusedRequest {
    RefusedRequest { request_line, version, format }
}

/// Every kind of path in every version: none, each that is served, and others.
const REFUSED_REQUESTS: &[RefusedRequest] = &[
    refused_request("POST /agents/echo/v1", None, RefusalFormat::JsonRpc),
    refused_request("POST /agents/echo/v1/", Some("0.3"), RefusalFormat::JsonRpc),
    refused_request("POST /agents/echo/v1", Some("1.0"), RefusalFormat::JsonRpc),
    refused_request("POST /agents/echo/v1", Some("7.0"), RefusalFormat::JsonRpc),
    refused_request("POST /bots/echo/v1", Some("1.0"), RefusalFormat::JsonRpc),
    refused_request("POST /agents/echo/v1/message:send", None, RefusalFormat::RestV0_3),
    refused_request("POST /agents/echo/v1/message:stream", Some("0.3.0"), RefusalFormat::RestV0_3),
    refused_request("GET /agents/echo/v1/tasks/x", Some("0.3"), RefusalFormat::RestV0_3),
    refused_request(
        "POST /agents/echo/v1/message:send",
        Some("1.0"),
        RefusalFormat::GoogleRpcStatus,
    ),
    refused_request(
        "POST /agents/echo/v1/message:stream",
        Some("1.0.1"),
        RefusalFormat::GoogleRpcStatus,
    ),
    refused_request("GET /agents/echo/v1/tasks/x", Some("1.0"), RefusalFormat::GoogleRpcStatus),
    refused_request(
        "GET /agents/echo/v1/extendedAgentCard",
        Some("1.1"),
        RefusalFormat::GoogleRpcStatus,
    ),
    refused_request(
        "DELETE /bots/echo/v1/tasks/x/pushNotificationConfigs/y",
        Some("1.0"),
        RefusalFormat::GoogleRpcStatus,
    ),
];

async fn send_request(
    service: &ServiceProcess,
    request: RefusedRequest,
    extra_headers: &[String],
    body: &[u8],
) -> TestResponse {
    let version = request.version.map(|version| format!("A2A-Version: {version}"));
    let has_type = extra_headers.iter().any(|line| line.starts_with("Content-Type:"));
    let default_type = "Content-Type: application/json".to_owned();
    let headers: Vec<_> = extra_headers
        .iter()
        .cloned()
        .chain(version)
        .chain((!has_type).then_some(default_type))
        .collect();
    service.request(request.request_line, &headers, body).await
}

/// Sees that a refusal has this status, code and numeric code, in the format of its path.
fn assert_refusal(
    answer: &TestResponse,
    request: RefusedRequest,
    (status, code, numeric_code): (u16, &str, i64),
) {
    let context = format!("{request:?} {answer:?}");
    assert_eq!((answer.status, answer.error_code().as_str()), (status, code), "{context}");
    assert_eq!(answer.header("content-type"), Some("application/json"), "{context}");
    let document = answer.json();
    let error = &document["error"];
    let message = error["message"].as_str();
    assert!(message.is_some_and(|words| !words.is_empty()), "{context}");
    let details = match request.format {
        RefusalFormat::JsonRpc => {
            assert_eq!((&document["jsonrpc"], &document["id"]), (&json!("2.0"), &Value::Null));
            assert_eq!(error["code"], numeric_code, "{context}");
            &error["data"]
        }
        RefusalFormat::RestV0_3 | RefusalFormat::GoogleRpcStatus => {
            assert_eq!(error["code"], status, "{context}");
            assert!(error["status"].is_string(), "{context}");
            &error["details"]
        }
    };
    assert_eq!(details[0]["@type"], "type.googleapis.com/google.rpc.ErrorInfo", "{context}");
    assert_eq!(details.as_array().map(Vec::len), Some(1), "{context}");
    if request.format == RefusalFormat::RestV0_3 {
        assert_eq!(
            (&document["code"], &document["message"]),
            (&json!(numeric_code), &error["message"])
        );
        assert_eq!(document["data"], details[0]["metadata"], "{context}");
    } else {
        let members: Vec<_> = document.as_object().unwrap().keys().collect();
        let expected_count = if request.format == RefusalFormat::JsonRpc { 3 } else { 1 };
        assert_eq!(members.len(), expected_count, "{context}");
    }
}

fn authorization(token: &str) -> String {
    format!("Authorization: Bearer {token}")
}

fn echo_agent_config() -> String {
    fake_agent_config("echo", "echo", "a2a.base_path = '/bots/echo'")
}

#[tokio::test]
async fn unauthenticated_requests_are_refused_in_the_path_format() {
    let setup = Setup::new(&format!("{}[lockout]\nfailures = 100\n", echo_agent_config()));
    let service = setup.start().await;
    let wrong_headers = [authorization(&"w".repeat(40))];
    for request in REFUSED_REQUESTS.iter().copied() {
        for headers in [&[][..], &wrong_headers] {
            let answer = send_request(&service, request, headers, b"{}").await;
            assert_refusal(&answer, request, (401, "unauthenticated", -32058));
            assert_eq!(answer.header("www-authenticate"), Some("Bearer"), "{request:?}");
        }
    }
}

#[tokio::test]
async fn foreign_origins_and_hosts_are_refused_in_the_path_format() {
    let service = Setup::new(&echo_agent_config()).start().await;
    for request in REFUSED_REQUESTS.iter().copied() {
        let headers = [authorization(&service.token), "Origin: https://evil.example".to_owned()];
        let answer = send_request(&service, request, &headers, b"{}").await;
        assert_refusal(&answer, request, (403, "origin-foreign", -32600));
        let version = request.version.map(|version| format!("A2A-Version: {version}\r\n"));
        let bytes = format!(
            "{} HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n{}\r\n",
            request.request_line,
            version.unwrap_or_default()
        );
        let answer = TestResponse::parse(&service.send_raw(bytes.as_bytes()).await).unwrap();
        assert_refusal(&answer, request, (421, "host-unknown", -32600));
    }
}

#[tokio::test]
async fn a_locked_out_caller_is_refused_in_the_path_format() {
    let service =
        Setup::new(&format!("{}[lockout]\nfailures = 1\n", echo_agent_config())).start().await;
    let wrong_headers = [authorization(&"w".repeat(40))];
    send_request(&service, REFUSED_REQUESTS[0], &wrong_headers, b"{}").await;
    for request in REFUSED_REQUESTS.iter().copied() {
        let answer = send_request(&service, request, &wrong_headers, b"{}").await;
        assert_refusal(&answer, request, (429, "locked-out", -32057));
        let retry_after_seconds: u32 = answer.header("retry-after").unwrap().parse().unwrap();
        assert!(retry_after_seconds > 800, "{answer:?}");
    }
}

#[tokio::test]
async fn a_rate_limited_call_is_refused_in_the_path_format() {
    let limit = "a2a.rate_limit = { requests_per_second = 0.001, burst = 1 }\n";
    let service = Setup::new(&format!("{}{limit}", echo_agent_config())).start().await;
    let valid_headers = [authorization(&service.token)];
    send_request(&service, REFUSED_REQUESTS[0], &valid_headers, b"{}").await;
    for request in REFUSED_REQUESTS.iter().copied() {
        let answer = send_request(&service, request, &valid_headers, b"{}").await;
        assert_refusal(&answer, request, (429, "rate-limited", -32057));
        assert!(answer.header("retry-after").is_some(), "{answer:?}");
    }
}

/// Paths whose body is read, in a version that is served.
fn requests_with_body() -> impl Iterator<Item = RefusedRequest> {
    let has_body = |request: &&RefusedRequest| {
        request.request_line.starts_with("POST") && request.version != Some("7.0")
    };
    REFUSED_REQUESTS.iter().filter(has_body).copied()
}

#[tokio::test]
async fn long_late_and_mistyped_bodies_are_refused_in_the_format() {
    let server_settings = "max_body_bytes = 1024\nbody_timeout = 0.3";
    let service = Setup::with_server_settings(server_settings, &echo_agent_config()).start().await;
    let authorization = authorization(&service.token);
    for request in requests_with_body() {
        let long_body = "x".repeat(2000);
        let answer = send_request(
            &service,
            request,
            std::slice::from_ref(&authorization),
            long_body.as_bytes(),
        )
        .await;
        assert_refusal(&answer, request, (413, "body-too-large", -32600));

        let headers = [authorization.clone(), "Content-Type: text/plain".to_owned()];
        let answer = send_request(&service, request, &headers, b"{}").await;
        assert_refusal(&answer, request, (415, "content-type-unsupported", -32005));

        let version = request.version.map(|version| format!("A2A-Version: {version}\r\n"));
        let bytes = format!(
            "{} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{authorization}\r\n{}\
             Content-Type: application/json\r\nContent-Length: 20\r\n\r\n{{",
            request.request_line,
            version.unwrap_or_default()
        );
        let answer = TestResponse::parse(&service.send_raw(bytes.as_bytes()).await).unwrap();
        assert_refusal(&answer, request, (408, "body-timeout", -32600));
    }
}

#[tokio::test]
async fn unserved_versions_and_paths_are_refused_in_the_path_format() {
    let service = Setup::new(&echo_agent_config()).start().await;
    let valid_headers = [authorization(&service.token)];
    let rpc_body = json!({"jsonrpc": "2.0", "id": null, "method": "SendMessage", "params": {}});
    for version in ["1.1", "2.0", "latest"] {
        let line = "GET /agents/echo/v1/tasks";
        let request = refused_request(line, Some(version), RefusalFormat::GoogleRpcStatus);
        let answer = send_request(&service, request, &valid_headers, b"").await;
        assert_refusal(&answer, request, (400, "version-unsupported", -32009));
        assert_eq!(answer.json()["error"]["details"][0]["reason"], "VERSION_NOT_SUPPORTED");
        let rpc_request = RefusedRequest {
            request_line: "POST /agents/echo/v1",
            format: RefusalFormat::JsonRpc,
            ..request
        };
        let answer =
            send_request(&service, rpc_request, &valid_headers, rpc_body.to_string().as_bytes())
                .await;
        assert_refusal(&answer, rpc_request, (200, "version-unsupported", -32009));
    }
    let old_request =
        refused_request("GET /agents/echo/v1/tasks", Some("0.2"), RefusalFormat::RestV0_3);
    assert_refusal(
        &send_request(&service, old_request, &valid_headers, b"").await,
        old_request,
        (400, "version-unsupported", -32009),
    );

    for (version, format) in
        [(None, RefusalFormat::RestV0_3), (Some("1.0"), RefusalFormat::GoogleRpcStatus)]
    {
        for line in ["GET /agents/echo/v1/nonsense", "GET /agents/echo/v1/tasks/%ff"] {
            let request = refused_request(line, version, format);
            assert_refusal(
                &send_request(&service, request, &valid_headers, b"").await,
                request,
                (404, "path-unknown", -32601),
            );
        }
    }
    for version in [None, Some("1.0")] {
        let request = refused_request("GET /agents/echo/v1", version, RefusalFormat::JsonRpc);
        let answer = send_request(&service, request, &valid_headers, b"").await;
        assert_refusal(&answer, request, (405, "method-not-allowed", -32600));
        assert_eq!(answer.header("allow"), Some("POST"), "{answer:?}");
    }
}

/// What is no path of A2A keeps the document of RFC 9457, whatever version its caller names.
#[tokio::test]
async fn other_paths_are_refused_with_a_problem_document() {
    let service =
        Setup::with_server_settings("public_card = false", &echo_agent_config()).start().await;
    for line in [
        "GET /status",
        "GET /api/v1/agents",
        "GET /agents",
        "GET /agents/echo/.well-known/agent-card.json",
        "GET /agents/echo/v1/.well-known/agent-card.json",
    ] {
        for version in [None, Some("1.0")] {
            let request = refused_request(line, version, RefusalFormat::GoogleRpcStatus);
            let answer = send_request(&service, request, &[], b"").await;
            assert_eq!(answer.header("content-type"), Some("application/problem+json"), "{line}");
            assert_eq!((answer.status, &answer.json()["status"]), (401, &json!(401)), "{line}");
        }
    }
}

#[tokio::test]
async fn an_a2a_content_type_gets_errors_in_the_a2a_format() {
    let service = Setup::new(&echo_agent_config()).start().await;
    let accept_header = "Accept: application/a2a+json".to_owned();
    for (headers, status) in [
        (vec![accept_header.clone()], 401),
        (vec![authorization(&service.token), accept_header], 404),
    ] {
        let request = refused_request(
            "GET /agents/echo/v1/tasks/x",
            Some("1.0"),
            RefusalFormat::GoogleRpcStatus,
        );
        let answer = send_request(&service, request, &headers, b"").await;
        let status_and_type = (answer.status, answer.header("content-type"));
        assert_eq!(status_and_type, (status, Some("application/a2a+json")), "{answer:?}");
        assert_eq!(answer.json()["error"]["code"], status, "{answer:?}");
    }
}

#[tokio::test]
async fn results_of_1_0_have_the_a2a_type_by_default() {
    let service = Setup::new(&echo_agent_config()).start().await;
    let (a2a_type, json_type) = ("application/a2a+json", "application/json");
    let message = json!({"message": {"messageId": "m", "role": "ROLE_USER",
        "parts": [{"text": "x"}]}});
    let send_request_line = "POST /agents/echo/v1/message:send";
    let list_request_line = "GET /agents/echo/v1/tasks";
    for (line, version, accept, content_type, expected) in [
        (list_request_line, "1.0", None, None, a2a_type),
        (list_request_line, "1.0", Some("*/*"), None, a2a_type),
        (list_request_line, "1.0", Some(json_type), None, json_type),
        (list_request_line, "0.3", None, None, json_type),
        (list_request_line, "0.3", Some(a2a_type), None, a2a_type),
        (send_request_line, "1.0", None, Some(a2a_type), a2a_type),
        (send_request_line, "1.0", Some(a2a_type), Some(json_type), a2a_type),
        (send_request_line, "1.0", Some(json_type), Some(a2a_type), json_type),
        (send_request_line, "1.0", Some("*/*"), Some(json_type), json_type),
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
