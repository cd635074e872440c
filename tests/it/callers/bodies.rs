//! Bodies that arrive at the same time: the memory for them is bounded, for each caller and for all.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::harness::client::{completed_outcome, task_outcome};
use crate::harness::{ServiceProcess, Setup, TestResponse, fake_agent_config, within_deadline};

/// Nearly as long as a body may be. A caller has memory for eight of them.
const BODY_BYTES: usize = 4_000_000;
const OPEN_BODY_COUNT: usize = 10;

/// Sends all of a body but its last byte. Gives the answer where the service did not wait for that byte.
async fn send_incomplete_body(
    service: &ServiceProcess,
    token: &str,
) -> (TcpStream, Option<TestResponse>) {
    let head = format!(
        "POST /agents/echo/v1 HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {token}\r\n\
         Content-Type: application/json\r\nContent-Length: {BODY_BYTES}\r\n\r\n"
    );
    let mut stream = service.connect().await;
    stream.write_all(head.as_bytes()).await.unwrap();
    let blanks = vec![b' '; BODY_BYTES - 1];
    // A service that refuses closes the connection before it has everything.
    _ = within_deadline("the body", stream.write_all(&blanks)).await;
    let mut bytes = vec![0; 1 << 16];
    let first_read =
        tokio::time::timeout(std::time::Duration::from_millis(300), stream.read(&mut bytes));
    let answer = match first_read.await {
        Ok(Ok(read)) => TestResponse::parse(&bytes[..read]),
        Ok(Err(_)) | Err(_) => None,
    };
    (stream, answer)
}

#[tokio::test]
async fn bodies_of_one_caller_leave_memory_to_the_others() {
    let text = fake_agent_config("echo", "echo", "")
        + "[tokens.narrow]\ntoken_file = 'narrow.token'\nscopes = ['read']\nagents = ['echo']\n";
    let setup = Setup::new(&text);
    let token = "0123456789abcdef0123456789abcdef";
    let file = setup.config_sibling_path("narrow.token");
    std::fs::write(&file, token).unwrap();
    std::fs::set_permissions(&file, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    let service = setup.start().await;
    let mut open_streams = Vec::new();
    let mut refusals = Vec::new();
    for _ in 0..OPEN_BODY_COUNT {
        let (stream, answer) = send_incomplete_body(&service, token).await;
        open_streams.push(stream);
        refusals.extend(answer);
    }
    assert!(
        !refusals.is_empty() && refusals.len() < OPEN_BODY_COUNT,
        "{} of {OPEN_BODY_COUNT}",
        refusals.len()
    );
    for answer in &refusals {
        assert_eq!(answer.status, 503, "{}", answer.body);
        assert!(answer.body.contains("too many request bodies"), "{}", answer.body);
    }
    // Another caller is served meanwhile, and this one once its bodies are gone.
    assert_eq!(task_outcome(&service.send("echo", "hello").await), completed_outcome("hello"));
    drop(open_streams);
    let (_stream, answer) = send_incomplete_body(&service, token).await;
    assert!(answer.is_none_or(|answer| answer.status != 503));
}
