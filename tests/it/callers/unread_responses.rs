//! Clients of HTTP/2 that permit no data, on connections that are otherwise alive: their responses hold little memory,
//! and their connections end.

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::Instant;

use crate::harness::client::{completed_outcome, task_id, task_outcome};
use crate::harness::processes::{peak_memory_bytes, reset_peak_and_read_rss};
use crate::harness::{
    ServiceProcess, Setup, fake_agent_config, json_rpc_request_body, poll_until, within_deadline,
};

const MIB: u64 = 1 << 20;

/// The start of every connection of HTTP/2.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Settings with an initial window of zero for each stream.
const CLOSED_WINDOW_SETTINGS: &[u8] = &[0, 0, 6, 4, 0, 0, 0, 0, 0, 0, 4, 0, 0, 0, 0];

/// Types and flags of frames.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const WINDOW_UPDATE: u8 = 8;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;

const NARROW_TOKEN: &str = "0123456789abcdef0123456789abcdef";

/// An agent that prints 4 MB, and a second caller.
const PRINTER_AGENT: &str = r#"
[agents.printer]
command = "sh"
args = ["-c", "yes 'to and fro' | head -c 4000000"]
[tokens.narrow]
token_env = 'NARROW'
scopes = ["read", "run"]
"#;

/// Frame of HTTP/2.
struct Frame {
    kind: u8,
    flags: u8,
    stream: u32,
    payload: Vec<u8>,
}

impl Frame {
    fn to_bytes(&self) -> Vec<u8> {
        let length = u32::try_from(self.payload.len()).unwrap().to_be_bytes();
        [&length[1..], &[self.kind, self.flags], &self.stream.to_be_bytes(), &self.payload].concat()
    }
}

/// Client that permits only the data that a test requests.
struct Http2Client {
    stream: TcpStream,
    last_stream: Option<u32>,
}

impl Http2Client {
    async fn connect(service: &ServiceProcess) -> Self {
        let mut stream = service.connect().await;
        stream.write_all(&[PREFACE, CLOSED_WINDOW_SETTINGS].concat()).await.unwrap();
        Self { stream, last_stream: None }
    }

    async fn send_frame(&mut self, (kind, flags): (u8, u8), stream: u32, payload: &[u8]) {
        let frame = Frame { kind, flags, stream, payload: payload.to_vec() };
        self.stream.write_all(&frame.to_bytes()).await.unwrap();
    }

    /// Sends a request and returns the number of its stream.
    async fn request(&mut self, headers: &[(&str, &str)], body: Option<&str>) -> u32 {
        let stream = self.last_stream.map_or(1, |last| last + 2);
        self.last_stream = Some(stream);
        let fields: Vec<u8> =
            headers.iter().flat_map(|(name, value)| header_field(name, value)).collect();
        let end = if body.is_some() { 0 } else { END_STREAM };
        self.send_frame((HEADERS, END_HEADERS | end), stream, &fields).await;
        if let Some(body) = body {
            self.send_frame((DATA, END_STREAM), stream, body.as_bytes()).await;
        }
        stream
    }

    async fn get(&mut self, path: &str) -> u32 {
        let headers =
            [(":method", "GET"), (":path", path), (":scheme", "http"), (":authority", "localhost")];
        self.request(&headers, None).await
    }

    /// Requests a task of the second caller.
    async fn get_task(&mut self, task: &str) -> u32 {
        let authorization = format!("Bearer {NARROW_TOKEN}");
        let headers = [
            (":method", "POST"),
            (":path", "/agents/printer/v1"),
            (":scheme", "http"),
            (":authority", "localhost"),
            ("authorization", &authorization),
            ("content-type", "application/json"),
        ];
        let body = json_rpc_request_body("tasks/get", &json!({"id": task}));
        self.request(&headers, Some(&body)).await
    }

    async fn open_window(&mut self, stream: u32, bytes: u32) {
        self.send_frame((WINDOW_UPDATE, 0), stream, &bytes.to_be_bytes()).await;
    }

    /// Reads the next frame and acknowledges it where the protocol demands that. Returns `None` at the end of the
    /// connection.
    async fn next_frame(&mut self) -> Option<Frame> {
        let mut head = [0; 9];
        self.stream.read_exact(&mut head).await.ok()?;
        let length = u32::from_be_bytes([0, head[0], head[1], head[2]]);
        let mut payload = vec![0; usize::try_from(length).unwrap()];
        self.stream.read_exact(&mut payload).await.ok()?;
        let stream = u32::from_be_bytes([head[5], head[6], head[7], head[8]]);
        let frame = Frame { kind: head[3], flags: head[4], stream, payload };
        if matches!(frame.kind, SETTINGS | PING) && frame.flags & ACK == 0 {
            let payload = if frame.kind == PING { frame.payload.clone() } else { Vec::new() };
            let answer = Frame { kind: frame.kind, flags: ACK, stream: 0, payload };
            _ = self.stream.write_all(&answer.to_bytes()).await; // The connection may end.
        }
        Some(frame)
    }

    /// Reads the body of a stream to its end.
    async fn read_body(&mut self, stream: u32) -> Vec<u8> {
        let mut body = Vec::new();
        loop {
            let frame = within_deadline("a frame", self.next_frame()).await.unwrap();
            if frame.stream == stream && frame.kind == DATA {
                body.extend_from_slice(&frame.payload);
                if frame.flags & END_STREAM != 0 {
                    return body;
                }
            }
        }
    }
}

/// Field of a head: a literal that is not indexed, with a name and a value below 2^14 bytes.
fn header_field(name: &str, value: &str) -> Vec<u8> {
    let text = |text: &str| {
        let length = text.len();
        let prefix = match length {
            0..127 => vec![u8::try_from(length).unwrap()],
            127..255 => vec![127, u8::try_from(length - 127).unwrap()],
            _ => panic!("a long text"),
        };
        [prefix, text.as_bytes().to_vec()].concat()
    };
    [vec![0], text(name), text(value)].concat()
}

/// Starts a service with a task of the second caller.
async fn start_printer_service(server_settings: &str) -> (ServiceProcess, String) {
    let agents = [PRINTER_AGENT, &fake_agent_config("echo", "echo", "")].concat();
    let setup = Setup::with_server_settings(server_settings, &agents).env("NARROW", NARROW_TOKEN);
    let service = setup.start().await;
    let task = service.client_with_token(NARROW_TOKEN).send("printer", "print").await;
    (service, task_id(&task))
}

#[tokio::test(flavor = "multi_thread")]
async fn unread_answers_of_one_caller_hold_little_memory() {
    const STREAM_COUNT: usize = 100;
    let (service, task) = start_printer_service("write_timeout = 600").await;
    let initial_bytes = reset_peak_and_read_rss(service.pid());
    let mut client = Http2Client::connect(&service).await;
    for _ in 0..STREAM_COUNT {
        client.get_task(&task).await;
    }
    let mut statuses = Vec::new();
    while statuses.len() < STREAM_COUNT {
        let frame = within_deadline("the heads", client.next_frame()).await.expect("no end");
        if frame.kind == HEADERS {
            statuses.push(frame.payload.first().copied());
        }
    }
    let growth_bytes = peak_memory_bytes(service.pid()).saturating_sub(initial_bytes);
    assert!(growth_bytes < 256 * MIB, "grew by {} MiB", growth_bytes / MIB);
    // 0x88 is the field `:status: 200`; the others were refused.
    let answered = statuses.iter().filter(|status| **status == Some(0x88)).count();
    assert!((30..40).contains(&answered), "{answered} of {STREAM_COUNT}");
    // Other callers have memory of their own, and this one is served again after its answers are gone.
    let (_, text) = task_outcome(&service.send("printer", "print").await);
    assert_eq!(text.len(), 4_000_000);
    let narrow_client = service.client_with_token(NARROW_TOKEN);
    let refusal = narrow_client.call("printer", "tasks/get", &json!({"id": task})).await;
    assert_eq!((refusal.status, refusal.error_code().as_str()), (503, "pressure"), "{refusal:?}");
    drop(client);
    poll_until("memory for an answer", async || {
        let answer = narrow_client.call("printer", "tasks/get", &json!({"id": task})).await;
        (answer.body.len() > 4_000_000).then_some(())
    })
    .await;
}

#[tokio::test]
async fn a_client_with_closed_windows_is_disconnected() {
    let (service, task) = start_printer_service("write_timeout = 1").await;
    let started_at = Instant::now();
    let mut clients = Vec::new();
    let refused_call = [
        (":method", "POST"),
        (":path", "/agents/echo/v1"),
        (":scheme", "http"),
        (":authority", "localhost"),
    ];
    for path in [None, Some("/errors"), Some("/health"), Some("refused")] {
        let mut client = Http2Client::connect(&service).await;
        let stream = match path {
            Some("refused") => client.request(&refused_call, Some("{}")).await,
            Some(path) => client.get(path).await,
            None => client.get_task(&task).await,
        };
        // One byte is permitted and the rest is not, also of a response that is shorter than a piece.
        client.open_window(stream, 1).await;
        clients.push(client);
    }
    for client in &mut clients {
        let end = async { while client.next_frame().await.is_some() {} };
        within_deadline("the end of the connection", end).await;
    }
    // R-149: A client of HTTP/2 that permits no data for `write_timeout` is disconnected, also if it answers pings
    assert!(started_at.elapsed() >= std::time::Duration::from_secs(1));
    assert_eq!(task_outcome(&service.send("echo", "hello").await), completed_outcome("hello"));
}

#[tokio::test]
async fn a_client_that_reads_some_streams_stays_connected() {
    // Much longer than the pause between two bodies, also on a busy machine.
    let setup =
        Setup::with_server_settings("write_timeout = 2", &fake_agent_config("echo", "echo", ""));
    let service = setup.start().await;
    let expected_page = service.get("/errors").await.body;
    let mut client = Http2Client::connect(&service).await;
    let unread_stream = client.get("/errors").await;
    let deadline = Instant::now() + std::time::Duration::from_secs(5);
    while Instant::now() < deadline {
        let stream = client.get("/health").await;
        client.open_window(stream, 1000).await;
        assert!(!client.read_body(stream).await.is_empty());
        // Longer than the write timeout in all, and shorter between two bodies.
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
    }
    client.open_window(unread_stream, 1_000_000).await;
    let page = client.read_body(unread_stream).await;
    assert_eq!(String::from_utf8(page).unwrap(), expected_page);
}

#[tokio::test]
async fn a_body_over_http2_is_whole() {
    let (service, task) = start_printer_service("").await;
    let mut client = Http2Client::connect(&service).await;
    client.open_window(0, 100_000_000).await;
    let stream = client.get_task(&task).await;
    // Windows that end within pieces and between them.
    for window in [1, 16_383, 1, 65_535, 100_000_000] {
        client.open_window(stream, window).await;
    }
    let body = client.read_body(stream).await;
    let document: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let narrow_client = service.client_with_token(NARROW_TOKEN);
    let expected = narrow_client.expect_result("printer", "tasks/get", &json!({"id": task})).await;
    assert!(document["result"] == expected, "{} bytes", body.len());
}
