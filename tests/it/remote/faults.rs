//! Remote agents that cannot be reached, refuse the call, or answer with something else.

use std::net::SocketAddr;

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpSocket};

use super::{WORKER_AGENT, remote_agent_config, remote_agents_config};
use crate::harness::client::{failed_outcome, task_outcome};
use crate::harness::{ServiceProcess, Setup};

/// Answers each connection with these bytes.
async fn start_stub_server(answer: &'static str) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut bytes = [0; 65536];
            _ = stream.read(&mut bytes).await;
            _ = stream.write_all(answer.as_bytes()).await;
        }
    });
    address
}

async fn run_against_stub_server(answer: &'static str) -> (Value, Value) {
    let url = format!("http://{}", start_stub_server(answer).await);
    let caller = ServiceProcess::start(&remote_agent_config("far", &url, "")).await;
    let id = caller.start_task("far", "hello").await;
    let task = crate::harness::poll_until("an end or a deferral", async || {
        let task = caller.fetch_task("far", &id).await;
        let has_metadata = task.pointer("/status/message/metadata").is_some();
        has_metadata.then_some(task)
    })
    .await;
    (task, caller.fetch_execution(&id).await)
}

#[tokio::test]
async fn a_wrong_remote_token_is_reported_as_not_authenticated() {
    let worker_service = ServiceProcess::start(WORKER_AGENT).await;
    for remote_agent in super::REMOTE_AGENTS {
        // Each in a service of its own: the account of a refused credential is closed for the others.
        let setup = Setup::new(&remote_agents_config(&worker_service, "worker", "WRONG"));
        let caller = setup.env("WRONG", "no-token-of-the-other-service-0001").start().await;
        let task = caller.send(remote_agent.0, "hello").await;
        assert_eq!(
            task_outcome(&task),
            failed_outcome("not-authenticated"),
            "{}: {task}",
            remote_agent.0
        );
    }
    assert_eq!(worker_service.setup.read_file("log"), "");
}

#[tokio::test]
async fn an_unreachable_remote_agent_is_a_transient_failure() {
    // A socket that is bound and does not listen refuses connections, and no other program gets its port.
    let socket = TcpSocket::new_v4().unwrap();
    socket.bind(([127, 0, 0, 1], 0).into()).unwrap();
    let url = format!("http://{}", socket.local_addr().unwrap());
    let caller = ServiceProcess::start(&remote_agent_config("far", &url, "")).await;
    let task = caller.send("far", "hello").await;
    assert_eq!(task_outcome(&task), failed_outcome("agent-transient"), "{task}");
    let text = task.pointer("/status/message/parts/0/text").unwrap().as_str().unwrap();
    assert!(text.contains("cannot be reached") && !text.contains("127.0.0.1"), "{text}");
}

#[tokio::test]
async fn a_remote_answer_that_is_not_a2a_is_a_permanent_failure() {
    for (answer, cause) in [
        (
            "HTTP/1.1 200 OK\r\nContent-Type: text/html; a=b\r\nContent-Length: 4\r\n\r\nhome",
            "(HTTP 200, text/html) is not JSON",
        ),
        (
            "HTTP/1.1 202 OK\r\nContent-Length: 0\r\n\r\n",
            "(HTTP 202, without a media type) is empty",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\ndata: x\n\n",
            "an event in the stream of the remote agent is not JSON",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n",
            "ended before it named a task",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"result\":{}}",
            "is not A2A: ",
        ),
        (
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{\"a\":1}",
            "is not A2A: it has neither `result` nor `error`",
        ),
        (
            "HTTP/1.1 404 No\r\nContent-Type: application/json\r\nContent-Length: 16\r\n\r\n{\"error\":\"gone\"}",
            "refused (HTTP 404): gone",
        ),
        (
            "HTTP/1.1 307 Moved\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n",
            "refused (HTTP 307)",
        ),
    ] {
        let (task, _) = run_against_stub_server(answer).await;
        assert_eq!(task_outcome(&task), failed_outcome("agent-permanent"), "{answer}: {task}");
        let text = task.pointer("/status/message/parts/0/text").unwrap().as_str().unwrap();
        assert!(text.contains(cause), "{answer}: {text}");
    }
}

#[tokio::test]
async fn a_remote_rate_limit_is_respected() {
    let (task, execution) = run_against_stub_server(
        "HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3600\r\nContent-Length: 0\r\n\r\n",
    )
    .await;
    let text = task.to_string() + &execution.to_string();
    assert!(text.contains("rate-limit") && text.contains("\"until\""), "{text}");
}

#[tokio::test]
async fn a_stream_that_breaks_before_its_first_event_is_transient() {
    let head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nContent-Length: 100\r\n\r\n";
    let (task, _) = run_against_stub_server(head).await;
    assert_eq!(task_outcome(&task), failed_outcome("agent-transient"), "{task}");
    let text = task.pointer("/status/message/parts/0/text").unwrap().as_str().unwrap();
    assert!(text.contains("cannot be reached: "), "{text}");
}
