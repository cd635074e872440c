//! Output of a program reaches its followers while the program still works.
//!
//! No program here continues before the test has received its output: the program waits for a gate, which the
//! test opens only then. So output that arrives only at the end is a deadlock, which ends by its deadline.

mod lines;
mod messages;
mod reconnects;

use std::process::Stdio;
use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::process::{Child, Command};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::harness::{ServiceClient, ServiceProcess, WAIT_TIMEOUT, within_deadline};

/// Prints three lines to standard output and to standard error: each pair waits for its gate.
const LINES_AGENT: &str = r#"
command = "sh"
args = ["-c", '''
gate() { until [ -e "HERE/$1" ]; do sleep 0.01; done; }
echo 'out 1'; echo 'err 1' >&2; gate go-1
echo 'out 2'; echo 'err 2' >&2; gate go-2
echo 'out 3'; echo 'err 3' >&2
''']
"#;

/// The same in events.
const EVENTS_AGENT: &str = r#"
command = "sh"
output = "events"
args = ["-c", '''
gate() { until [ -e "HERE/$1" ]; do sleep 0.01; done; }
say() { printf '{"type":"text","text":"%s\\n"}\n' "$1"; echo "$2" >&2; }
say 'out 1' 'err 1'; gate go-1
say 'out 2' 'err 2'; gate go-2
say 'out 3' 'err 3'
''']
"#;

/// The same in pieces of a message, after a message that is not the answer, as Claude Code writes them.
const MESSAGES_AGENT: &str = r#"
command = "sh"
output = "claude-stream-json"
args = ["-c", '''
gate() { until [ -e "HERE/$1" ]; do sleep 0.01; done; }
start() { printf '{"type":"stream_event","event":{"type":"message_start","message":{"id":"%s"}}}\n' "$1"; }
say() { printf '{"type":"stream_event","event":{"type":"content_block_delta","delta":{"text":"%s\\n"}}}\n' "$1"; }
start m1; say 'let me look'
echo '{"type":"assistant","message":{"id":"m1","content":[{"type":"tool_use","id":"t","name":"Read"}]}}'
start m2; say 'out 1'; echo 'err 1' >&2; gate go-1
say 'out 2'; echo 'err 2' >&2; gate go-2
say 'out 3'; echo 'err 3' >&2
printf '%s\n' '{"type":"result","is_error":false,"result":"out 1\nout 2\nout 3\n"}'
sleep 0.3
''']
"#;

fn agents_config() -> String {
    format!(
        "[agents.lines]\n{LINES_AGENT}[agents.teller]\n{EVENTS_AGENT}[agents.writer]\n{MESSAGES_AGENT}"
    )
}

/// Bytes as they arrive, from a socket or from a process.
struct TextCollector {
    text: watch::Receiver<String>,
    /// The task that reads; dropping it closes the source.
    reader_tasks: JoinSet<()>,
    /// Held for as long as it is read.
    child: Option<Child>,
}

impl TextCollector {
    fn new(child: Option<Child>) -> (Self, Arc<watch::Sender<String>>) {
        let (sender, text) = watch::channel(String::new());
        (Self { text, reader_tasks: JoinSet::new(), child }, Arc::new(sender))
    }

    fn spawn_reader(
        &mut self,
        mut source: impl AsyncReadExt + Unpin + Send + 'static,
        sender: Arc<watch::Sender<String>>,
    ) {
        self.reader_tasks.spawn(async move {
            let mut bytes = [0; 4096];
            while let Ok(count @ 1..) = source.read(&mut bytes).await {
                sender.send_modify(|text| *text += &String::from_utf8_lossy(&bytes[..count]));
            }
        });
    }

    fn from_socket(stream: TcpStream) -> Self {
        let (mut collector, sender) = Self::new(None);
        collector.spawn_reader(stream, sender);
        collector
    }

    /// A command, both its outputs together.
    fn from_command(service: &ServiceProcess, args: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_algonius"));
        command.args(args).env_clear().envs(service.setup.env_variables());
        command.env("ALGONIUS_URL", format!("http://{}", service.address));
        command.current_dir(service.setup.test_folder()).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let (mut collector, sender) = Self::new(Some(command.spawn().unwrap()));
        let child = collector.child.as_mut().unwrap();
        let (stdout, stderr) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
        collector.spawn_reader(stdout, Arc::clone(&sender));
        collector.spawn_reader(stderr, sender);
        collector
    }

    /// Returns when this was received.
    async fn wait_for_text(&mut self, expected: &str) {
        let contains_expected = |text: &String| text.contains(expected);
        let received = timeout(WAIT_TIMEOUT, self.text.wait_for(contains_expected))
            .await
            .map(|result| result.is_ok());
        let text = self.text();
        assert_eq!(
            received,
            Ok(true),
            "{expected:?} did not come; an error is the deadline:\n{text}"
        );
    }

    /// Returns at the end, with all that was received.
    async fn wait_for_end(mut self) -> String {
        while within_deadline("the end", self.text.changed()).await.is_ok() {}
        self.text()
    }

    fn text(&self) -> String {
        self.text.borrow().clone()
    }
}

/// Opens each gate after the line before it was received, which proves that each line arrives before the
/// program prints the next one.
async fn receive_lines_and_open_gates(
    service: &ServiceProcess,
    mut follower: TextCollector,
    channels: &[&str],
) -> TextCollector {
    for line in 1..=3 {
        for channel in channels {
            follower.wait_for_text(&format!("{channel} {line}")).await;
        }
        service.setup.open_gate(&format!("go-{line}"));
    }
    follower
}

/// A stream of server-sent events over HTTP.
async fn open_api_stream(
    client: &ServiceClient,
    path: &str,
    last_event_id: Option<&str>,
) -> TcpStream {
    let mut stream = client.connect().await;
    let last_event_header =
        last_event_id.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
    let request = format!(
        "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{last_event_header}\
         Authorization: Bearer {}\r\nAccept: text/event-stream\r\n\r\n",
        client.token
    );
    within_deadline("writing", stream.write_all(request.as_bytes())).await.unwrap();
    stream
}

/// A stream of A2A over HTTP+JSON, which names the extension for standard error.
async fn open_rest_message_stream(client: &ServiceClient, agent: &str, version: &str) -> TcpStream {
    let message_id = uuid::Uuid::new_v4().to_string();
    let parts = if version == "1.0" { "parts" } else { "content" };
    let body = json!({"message": {"messageId": message_id, "role": "ROLE_USER",
        parts: [{"text": "hello"}]}});
    let body = body.to_string();
    let mut stream = client.connect().await;
    let request = format!(
        "POST /agents/{agent}/v1/message:stream HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
         Authorization: Bearer {}\r\nContent-Type: application/json\r\nA2A-Version: {version}\r\n\
         A2A-Extensions: https://algonius.dev/a2a/ext/stderr/v1\r\nContent-Length: {}\r\n\r\n{body}",
        client.token,
        body.len()
    );
    within_deadline("writing", stream.write_all(request.as_bytes())).await.unwrap();
    stream
}

/// Returns the events of a stream so far: the position after each, its name, and its document.
fn parse_events(text: &str) -> Vec<(String, String, Value)> {
    let (mut events, mut position, mut name) = (Vec::new(), String::new(), String::new());
    for line in text.lines() {
        if let Some(text) = line.strip_prefix("id: ") {
            text.clone_into(&mut position);
        } else if let Some(text) = line.strip_prefix("event: ") {
            text.clone_into(&mut name);
        } else if let Some(text) = line.strip_prefix("data: ") {
            // The last may not be whole yet.
            if let Ok(document) = serde_json::from_str(text) {
                events.push((position.clone(), std::mem::take(&mut name), document));
            }
        }
    }
    events
}

/// The artifact that a client puts together of the updates of a stream of 0.3 on JSON-RPC, and whether its
/// last piece came.
fn assemble_artifact(text: &str) -> (String, bool) {
    let (mut full_text, mut has_last_chunk) = (String::new(), false);
    for (_, _, document) in parse_events(text) {
        let update = &document["result"];
        if update["kind"] == "artifact-update" {
            assert!(!has_last_chunk, "something follows the last piece: {update}");
            if update["append"] != true {
                full_text.clear();
            }
            for part in update["artifact"]["parts"].as_array().unwrap() {
                full_text += part["text"].as_str().unwrap();
            }
            has_last_chunk = update["lastChunk"] == true;
        }
    }
    (full_text, has_last_chunk)
}

/// Returns the text of a channel of the first attempt in an event stream of the API.
fn channel_text(text: &str, channel: &str) -> String {
    let mut full_text = String::new();
    for (_, name, document) in parse_events(text) {
        if name == "text" && document["channel"] == channel {
            assert_eq!(document["from"], full_text.len(), "a gap, or a byte twice: {document}");
            full_text += document["text"].as_str().unwrap();
            assert_eq!(document["to"], full_text.len());
        }
    }
    full_text
}
