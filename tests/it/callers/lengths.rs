//! Bodies that are too long: refused by their head or where they grow beyond the limit, at once and readably.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{
    ServiceProcess, Setup, TestResponse, fake_agent_config, json_rpc_request_body, message_params,
    within_deadline,
};

/// Length of a body that the service refuses here.
const LONG_BODY_BYTES: usize = 99_000_000;

/// Every kind of path that accepts a body.
const BODY_PATHS: &[&str] = &[
    "/agents/echo/v1",
    "/agents/echo/v1/message:send",
    "/api/v1/executions",
    "/api/v1/tokens",
    "/api/v1/reload",
];

/// A service that waits for a missing body longer than any wait of a test.
async fn start_service() -> ServiceProcess {
    Setup::with_server_settings("body_timeout = 600", &fake_agent_config("echo", "echo", ""))
        .start()
        .await
}

/// Head of a request with these further lines.
fn request_head(service: &ServiceProcess, path: &str, header_lines: &str) -> String {
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\n{header_lines}\r\n",
        service.token
    )
}

/// Returns everything that the service sends until it closes the connection.
async fn read_to_end(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    within_deadline("the end", stream.read_to_end(&mut bytes)).await.unwrap();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sends a head without a body and reads the answer.
async fn send_head(service: &ServiceProcess, head: &str) -> TestResponse {
    let mut stream = service.connect().await;
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut bytes = vec![0; 1 << 16];
    let length = within_deadline("the answer", stream.read(&mut bytes)).await.unwrap();
    TestResponse::parse(&bytes[..length]).unwrap()
}

#[tokio::test]
async fn a_declared_length_over_the_limit_is_refused_by_the_head() {
    let service = start_service().await;
    for path in BODY_PATHS {
        for expect_header in ["", "Expect: 100-continue\r\n"] {
            let header_lines = format!("Content-Length: {LONG_BODY_BYTES}\r\n{expect_header}");
            let response = send_head(&service, &request_head(&service, path, &header_lines)).await;
            // A path that reads no body sends its usual answer.
            let expected = if path.ends_with("reload") { 200 } else { 413 };
            assert_eq!(response.status, expected, "{path} {expect_header:?}");
            if expected == 413 {
                assert_eq!(
                    response.header("connection"),
                    Some("close"),
                    "{path} {expect_header:?}"
                );
                assert!(response.body.contains("body-too-large"), "{}", response.body);
            }
        }
    }
}

#[tokio::test]
async fn a_caller_without_a_token_is_not_invited_to_send() {
    let service = start_service().await;
    for path in BODY_PATHS {
        let header_lines = format!("Content-Length: {LONG_BODY_BYTES}\r\nExpect: 100-continue\r\n");
        let head = request_head(&service, path, &header_lines).replace(&service.token, "x");
        // Each path is one wrong token; the fifth is blocked with the next one.
        assert_eq!(send_head(&service, &head).await.status, 401, "{path}");
    }
}

/// The client reads nothing before it has written everything.
#[tokio::test]
async fn a_refusal_reaches_a_client_that_sends_its_whole_body() {
    let service = start_service().await;
    let chunk = vec![b'x'; 1 << 20];
    for token in [service.token.as_str(), "wrong"] {
        let mut stream = service.connect().await;
        let head = request_head(
            &service,
            BODY_PATHS[0],
            &format!("Content-Length: {LONG_BODY_BYTES}\r\n"),
        );
        let head = head.replace(&service.token, token);
        stream.write_all(head.as_bytes()).await.unwrap();
        let mut remaining = LONG_BODY_BYTES;
        while remaining > 0 {
            let count = remaining.min(chunk.len());
            within_deadline("writing", stream.write_all(&chunk[..count])).await.unwrap();
            remaining -= count;
        }
        let expected = if token == "wrong" { 401 } else { 413 };
        let answer = read_to_end(&mut stream).await;
        assert!(answer.starts_with(&format!("HTTP/1.1 {expected} ")), "{answer}");
    }
}

#[tokio::test]
async fn a_chunked_body_is_refused_where_it_grows_over_the_limit() {
    let service = start_service().await;
    let chunk = [format!("{:x}\r\n", 1 << 20).as_bytes(), &vec![b'x'; 1 << 20], b"\r\n"].concat();
    for (chunk_count, is_incomplete) in [(5, true), (30, false)] {
        let mut stream = service.connect().await;
        let head = request_head(&service, BODY_PATHS[0], "Transfer-Encoding: chunked\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        for _ in 0..chunk_count {
            within_deadline("writing", stream.write_all(&chunk)).await.unwrap();
        }
        if !is_incomplete {
            stream.write_all(b"0\r\n\r\n").await.unwrap();
        }
        let answer = read_to_end(&mut stream).await;
        assert!(answer.starts_with("HTTP/1.1 413 "), "{answer}");
        assert!(answer.contains("connection: close"), "{answer}");
    }
}

#[tokio::test]
async fn a_body_within_the_limit_is_still_invited() {
    let service = start_service().await;
    let body = json_rpc_request_body("message/send", &message_params("hello"));
    let header_lines = format!("Content-Length: {}\r\nExpect: 100-continue\r\n", body.len());
    let mut stream = service.connect().await;
    stream
        .write_all(request_head(&service, BODY_PATHS[0], &header_lines).as_bytes())
        .await
        .unwrap();
    let mut interim_response = [0; 25];
    within_deadline("an invitation", stream.read_exact(&mut interim_response)).await.unwrap();
    assert_eq!(&interim_response, b"HTTP/1.1 100 Continue\r\n\r\n");
    stream.write_all(body.as_bytes()).await.unwrap();
    let mut answer = [0; 12];
    within_deadline("an answer", stream.read_exact(&mut answer)).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 200");
}
