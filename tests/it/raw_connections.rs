//! Connections that are slow, silent, too many, or speak no HTTP.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::{
    ServiceProcess, Setup, fake_agent_config, json_rpc_request_body, message_params, poll_until,
    within_deadline,
};

async fn start_with_short_timeouts() -> ServiceProcess {
    let server_settings = "header_timeout = 0.5\nbody_timeout = 0.5";
    Setup::with_server_settings(server_settings, &fake_agent_config("echo", "echo", ""))
        .start()
        .await
}

/// What comes until the service closes the connection, which it must do by itself.
async fn read_until_close(mut stream: TcpStream) -> String {
    let mut bytes = Vec::new();
    _ = within_deadline("the close", stream.read_to_end(&mut bytes)).await; // A reset is a close.
    String::from_utf8_lossy(&bytes).into_owned()
}

#[tokio::test]
async fn a_silent_connection_is_closed() {
    let service = start_with_short_timeouts().await;
    assert_eq!(read_until_close(service.connect().await).await, "");
}

#[tokio::test]
async fn an_endless_head_is_cut() {
    let service = start_with_short_timeouts().await;
    let mut stream = service.connect().await;
    stream.write_all(b"GET /status HTTP/1.1\r\nHost: te").await.unwrap();
    let answer = read_until_close(stream).await;
    assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408"), "{answer}");
}

#[tokio::test]
async fn an_endless_body_is_answered_with_408() {
    let service = start_with_short_timeouts().await;
    let mut stream = service.connect().await;
    let head = format!(
        "POST /agents/echo/v1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
         Content-Type: application/json\r\nConnection: close\r\nContent-Length: 100\r\n\r\n{{\"json",
        service.token
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let answer = read_until_close(stream).await;
    assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
    assert!(answer.contains("\"body-timeout\""), "{answer}");
}

#[tokio::test]
async fn malformed_http_is_never_a_server_error() {
    let service = start_with_short_timeouts().await;
    let long_request_line = format!("GET /{} HTTP/1.1\r\n\r\n", "a".repeat(1 << 20));
    let many_headers = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(1000));
    for bytes in [
        b"nonsense\r\n\r\n".as_slice(),
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"\0\0\0\0\0\0\0\0",
        b"GET / HTTP/9.9\r\n\r\n",
        b"GET  /  HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nno colon\r\n\r\n",
        b"POST /agents/echo/v1 HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"GET / HTTP/1.1\r\nBad\0Name: x\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\nnonsense nonsense nonsense",
        long_request_line.as_bytes(),
        many_headers.as_bytes(),
    ] {
        let excerpt = String::from_utf8_lossy(bytes.get(..40).unwrap_or(bytes)).into_owned();
        let answer = service.send_raw(bytes).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(!answer.starts_with("HTTP/1.1 5"), "{excerpt}: {answer}");
    }
    assert_eq!(service.send("echo", "still here").await["status"]["state"], "completed");
    assert!(!service.stderr_text().contains("panicked"), "{}", service.stderr_text());
}

#[tokio::test]
async fn a_connection_serves_several_requests() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    let mut stream = service.connect().await;
    for text in ["one", "two", "three"] {
        let body = json_rpc_request_body("message/send", &message_params(text));
        let request = format!(
            "POST /agents/echo/v1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {}\r\n\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            service.token,
            body.len()
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        poll_until("the answer", async || {
            let mut bytes = [0; 4096];
            let length = stream.read(&mut bytes).await.unwrap();
            answer.push_str(&String::from_utf8_lossy(&bytes[..length]));
            answer.contains("\"completed\"").then_some(())
        })
        .await;
        assert!(answer.contains(&format!("\"text\":\"{text}\"")), "{answer}");
    }
}
