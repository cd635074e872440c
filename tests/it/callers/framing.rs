//! Requests whose length can be read in two ways: the service refuses them, or at least closes their
//! connection afterwards, so that no client can hide a request in the body of another one.

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::harness::{ServiceProcess, fake_agent_config, within_deadline};

/// A request that is hidden in a body. Its answer would have this request id.
const HIDDEN_REQUEST: &str =
    "GET /health HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: hidden-request\r\n\r\n";

/// Sends these lines of a head, and then a body that hides a request; returns
/// everything that the service sends.
async fn send_hidden_request(service: &ServiceProcess, header_lines: &str, body: &str) -> String {
    let head = format!(
        "POST /agents/echo/v1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\n{header_lines}\r\n",
        service.token
    );
    let mut stream = service.connect().await;
    stream.write_all([head.as_bytes(), body.as_bytes()].concat().as_slice()).await.unwrap();
    let mut answer = Vec::new();
    _ = within_deadline("the end", stream.read_to_end(&mut answer)).await; // A reset ends it too.
    String::from_utf8_lossy(&answer).into_owned()
}

#[tokio::test]
async fn a_request_with_two_lengths_closes_its_connection() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    let chunked_body = format!("0\r\n\r\n{HIDDEN_REQUEST}");
    let content_length = |length: usize| format!("Content-Length: {length}\r\n");
    let transfer_encoding = "Transfer-Encoding: chunked\r\n";
    let full_length = chunked_body.len();
    for header_lines in [
        format!("{}{transfer_encoding}", content_length(full_length)),
        format!("{transfer_encoding}{}", content_length(full_length)),
        format!("{}{transfer_encoding}", content_length(5)),
        format!("{transfer_encoding}{}", content_length(5)),
        format!("{transfer_encoding}{}{}", content_length(5), content_length(full_length)),
        format!("Connection: keep-alive\r\n{}{transfer_encoding}", content_length(full_length)),
        format!("{}transfer-encoding: CHUNKED\r\n", content_length(full_length)),
    ] {
        let answer = send_hidden_request(&service, &header_lines, &chunked_body).await;
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{header_lines:?}: {answer}");
        assert!(!answer.contains("hidden-request"), "{header_lines:?}: {answer}");
        assert!(answer.starts_with("HTTP/1.1 4") || answer.contains("-32700"), "{answer}");
    }
}

#[tokio::test]
async fn an_ambiguous_length_is_refused() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    let body = format!("0\r\n\r\n{HIDDEN_REQUEST}");
    for header_lines in [
        "Content-Length: 5\r\nContent-Length: 6\r\n",
        "Content-Length: 5, 6\r\n",
        "Content-Length: +5\r\n",
        "Content-Length: 0x5\r\n",
        "Content-Length: -1\r\n",
        "Content-Length: 5 \r\nContent-Length : 7\r\n",
        "Content-Length: 99999999999999999999999\r\n",
        "Content-Length:\r\n",
        "Content-Length: 5\r\n 0\r\n",
        "Transfer-Encoding: identity\r\n",
        "Transfer-Encoding: chunked, identity\r\n",
        "Transfer-Encoding: xchunked\r\n",
        "Transfer-Encoding : chunked\r\n",
        "Transfer-Encoding:\x0bchunked\r\n",
        "Transfer-Encoding:\r\n chunked\r\n",
        "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n",
        " Transfer-Encoding: chunked\r\n",
        "X: y\rTransfer-Encoding: chunked\r\n",
        "X: y\x00\r\nTransfer-Encoding: chunked\r\n",
    ] {
        let answer = send_hidden_request(&service, header_lines, &body).await;
        assert_eq!(answer.matches("HTTP/1.1 ").count(), 1, "{header_lines:?}: {answer}");
        assert!(answer.starts_with("HTTP/1.1 400 "), "{header_lines:?}: {answer}");
        assert!(!answer.contains("hidden-request"), "{header_lines:?}: {answer}");
    }
    assert!(!service.stderr_text().contains("panicked"), "{}", service.stderr_text());
}

/// HTTP/1.0 has no chunks, and a chunk whose size is no number ends the connection.
#[tokio::test]
async fn invalid_chunks_close_the_connection() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    let http_1_0_request = format!(
        "POST /agents/echo/v1 HTTP/1.0\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n\
         0\r\n\r\n{HIDDEN_REQUEST}"
    );
    let answer =
        String::from_utf8_lossy(&service.send_raw(http_1_0_request.as_bytes()).await).into_owned();
    assert!(answer.starts_with("HTTP/1.1 400 ") || answer.starts_with("HTTP/1.0 400 "), "{answer}");
    assert!(!answer.contains("hidden-request"), "{answer}");
    for chunks in [
        "5;x=\r\ny\r\n0\r\n\r\n",
        "-1\r\n\r\n",
        "0x5\r\nhello\r\n",
        "5 5\r\nhello\r\n",
        "ffffffffffffffffff\r\n",
    ] {
        let body = format!("{chunks}{HIDDEN_REQUEST}");
        let answer = send_hidden_request(&service, "Transfer-Encoding: chunked\r\n", &body).await;
        assert!(!answer.contains("hidden-request"), "{chunks:?}: {answer}");
        assert!(answer.matches("HTTP/1.1 ").count() <= 1, "{chunks:?}: {answer}");
    }
}
