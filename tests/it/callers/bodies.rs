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
    (agent, credential): (&str, &str),
) -> (TcpStream, Option<TestResponse>) {
    let head = format!(
        "POST /agents/{agent}/v1 HTTP/1.1\r\nHost: localhost\r\n{credential}\
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

/// Sends the last byte of a body; returns the status of the answer.
async fn complete_body((mut stream, answer): (TcpStream, Option<TestResponse>)) -> u16 {
    assert!(answer.is_none(), "{answer:?}");
    stream.write_all(b" ").await.unwrap();
    let mut bytes = vec![0; 1 << 16];
    let read = within_deadline("an answer", stream.read(&mut bytes)).await.unwrap();
    TestResponse::parse(&bytes[..read]).unwrap().status
}

/// Sends more bodies than one caller may, in turn with each credential. Some are refused, and the others stay open.
async fn expect_some_bodies_refused(
    service: &ServiceProcess,
    agent: &str,
    credentials: &[String],
) -> Vec<TcpStream> {
    let mut open_streams = Vec::new();
    let mut refusals = Vec::new();
    for credential in credentials.iter().cycle().take(OPEN_BODY_COUNT) {
        let (stream, answer) = send_incomplete_body(service, (agent, credential)).await;
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
    open_streams
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
    // Spellings of one token are one caller.
    let forms = ["Bearer ", "bearer ", "BEARER  "];
    let credentials = forms.map(|form| format!("Authorization: {form}{token}\r\n"));
    let open_streams = expect_some_bodies_refused(&service, "echo", &credentials).await;
    // Another caller is served meanwhile, and this one once its bodies are gone.
    assert_eq!(task_outcome(&service.send("echo", "hello").await), completed_outcome("hello"));
    drop(open_streams);
    let stream = send_incomplete_body(&service, ("echo", &credentials[0])).await;
    assert_eq!(complete_body(stream).await, 200, "an error of JSON-RPC");
}

#[tokio::test]
async fn bodies_without_credentials_leave_memory_to_holders_of_keys() {
    let text = fake_agent_config("open", "echo", "auth = { type = 'none', insecure = true }\n")
        + &fake_agent_config(
            "keyed",
            "echo",
            "auth = { type = 'api_key', header = 'X-Key', token_env = 'KEY' }\n",
        );
    let key = "fedcba9876543210fedcba9876543210";
    let service = Setup::new(&text).env("KEY", key).start().await;
    let _open_streams = expect_some_bodies_refused(&service, "open", &[String::new()]).await;
    let credential = format!("X-Key: {key}\r\n");
    let stream = send_incomplete_body(&service, ("keyed", &credential)).await;
    assert_eq!(complete_body(stream).await, 200, "an error of JSON-RPC");
}
