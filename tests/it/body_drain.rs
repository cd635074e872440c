//! Requests that are refused by their heads: their bodies are heard before the refusal, so that who
//! writes a head and a body in turn is told instead of cut off.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::wait::within_deadline;
use crate::harness::{ServiceProcess, TestResponse, json_rpc_request_body, message_params};

const AGENTS: &str = "[agents.echo]\ncommand = \"cat\"\n";

/// The head of a call without credentials, with a body of so many bytes.
fn request_head(length: usize, headers: &str) -> String {
    format!(
        "POST /agents/echo/v1 HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n{headers}\r\n"
    )
}

/// The next answer on a connection that stays open.
async fn read_answer(stream: &mut TcpStream) -> TestResponse {
    let mut bytes = Vec::new();
    let read_response = async {
        loop {
            let byte = stream.read_u8().await.unwrap();
            bytes.push(byte);
            let answer = TestResponse::parse(&bytes);
            let length = answer
                .as_ref()
                .and_then(|response| response.header("content-length")?.parse().ok());
            if let Some(answer) = answer.filter(|response| Some(response.body.len()) == length) {
                return answer;
            }
        }
    };
    within_deadline("an answer", read_response).await
}

#[tokio::test]
async fn a_refusal_drains_the_body_and_keeps_the_connection() {
    let service = ServiceProcess::start(AGENTS).await;
    let body = json_rpc_request_body("message/send", &message_params("hello"));
    let mut stream = service.connect().await;
    stream.write_all(request_head(body.len(), "").as_bytes()).await.expect("a head");
    for _ in 0..10 {
        // Time enough for a refusal that waits for nothing.
        assert_eq!(service.get("/status").await.status, 200);
    }
    stream.write_all(body.as_bytes()).await.expect("a body");
    assert_eq!(read_answer(&mut stream).await.status, 401);
    let bearer = format!("Authorization: Bearer {}\r\n", service.token);
    let call = request_head(body.len(), &bearer) + &body;
    stream.write_all(call.as_bytes()).await.expect("a second request");
    assert_eq!(read_answer(&mut stream).await.status, 200);
}

#[tokio::test]
async fn an_unread_long_or_stalled_body_closes_the_connection() {
    let service = ServiceProcess::start(AGENTS).await;
    for length in [2 << 20, 10] {
        let mut stream = service.connect().await;
        stream.write_all(request_head(length, "").as_bytes()).await.expect("a head");
        let refused = read_answer(&mut stream).await;
        assert_eq!((refused.status, refused.header("connection")), (401, Some("close")));
    }
}

#[tokio::test]
async fn an_expect_continue_request_is_refused_without_its_body() {
    let service = ServiceProcess::start(AGENTS).await;
    let mut stream = service.connect().await;
    let head = request_head(10, "Expect: 100-continue\r\n");
    stream.write_all(head.as_bytes()).await.expect("a head");
    assert_eq!(read_answer(&mut stream).await.status, 401);
}
