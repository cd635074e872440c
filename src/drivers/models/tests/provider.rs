//! Provider on loopback that gives scripted responses, one for each connection.

use std::collections::VecDeque;
use std::net::SocketAddr;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use super::Duration;

/// Maximum duration of a test step.
pub(super) const STEP_TIMEOUT: Duration = Duration::from_secs(30);

/// Response to one request.
#[derive(Clone)]
pub(super) enum ScriptedResponse {
    /// This response as it is on the wire, then the end of the connection.
    RawResponse(String),
    /// A body without an end.
    Endless,
    /// No response, on an open connection.
    Silence,
}

impl ScriptedResponse {
    /// Returns a response with this status, further header lines and a body.
    pub(super) fn status(status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        Self::RawResponse(format!(
            "HTTP/1.1 {status} Scripted\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
        ))
    }

    /// Returns a success with this document.
    pub(super) fn document(document: &Value) -> Self {
        Self::status(200, "content-type: application/json\r\n", &document.to_string())
    }

    /// Returns a success with this text as the reply of the model.
    pub(super) fn text(text: &str) -> Self {
        Self::document(&json!({"choices": [{"message": {"content": text}}]}))
    }
}

/// Request that the provider received.
pub(super) struct ReceivedProviderRequest {
    pub(super) head: String,
    body: Vec<u8>,
}

impl ReceivedProviderRequest {
    pub(super) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap()
    }
}

/// Running provider. The last response is repeated.
pub(super) struct ScriptedProvider {
    address: SocketAddr,
    requests: mpsc::UnboundedReceiver<ReceivedProviderRequest>,
    /// Notifies of each endless or absent reply whose connection the client has closed.
    closed_connections: mpsc::UnboundedReceiver<()>,
    server_join_handle: JoinHandle<()>,
}

impl ScriptedProvider {
    pub(super) async fn start(responses: impl IntoIterator<Item = ScriptedResponse>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = mpsc::unbounded_channel();
        let (close_notifier, closed_connections) = mpsc::unbounded_channel();
        let mut responses: VecDeque<_> = responses.into_iter().collect();
        let server_join_handle = tokio::spawn(async move {
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                // A client may close a connection before its request, at the end of a time limit.
                let Some(received) = read_request(&mut stream).await else { continue };
                _ = sender.send(received);
                let is_last = responses.len() == 1;
                let response =
                    if is_last { responses.front().cloned() } else { responses.pop_front() };
                match response.unwrap() {
                    ScriptedResponse::RawResponse(response) => {
                        _ = stream.write_all(response.as_bytes()).await;
                    }
                    ScriptedResponse::Endless => {
                        write_endless_body(stream).await;
                        _ = close_notifier.send(());
                    }
                    ScriptedResponse::Silence => {
                        tokio::spawn(wait_for_close(stream, close_notifier.clone()));
                    }
                }
            }
        });
        Self { address, requests, closed_connections, server_join_handle }
    }

    pub(super) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    pub(super) async fn next_request(&mut self) -> ReceivedProviderRequest {
        timeout(STEP_TIMEOUT, self.requests.recv()).await.unwrap().unwrap()
    }

    /// Returns the number of requests that were received and not read by the test.
    pub(super) fn drain_request_count(&mut self) -> usize {
        std::iter::from_fn(|| self.requests.try_recv().ok()).count()
    }

    /// Waits until the client has closed the connection of an endless body.
    pub(super) async fn wait_for_closed_connection(&mut self) {
        timeout(STEP_TIMEOUT, self.closed_connections.recv()).await.unwrap().unwrap();
    }
}

impl Drop for ScriptedProvider {
    fn drop(&mut self) {
        self.server_join_handle.abort();
    }
}

/// Reads one request; returns `None` if the connection ends before.
pub(super) async fn read_request(stream: &mut TcpStream) -> Option<ReceivedProviderRequest> {
    let mut stream = BufReader::new(stream);
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let length = head.lines().find_map(|line| {
        let (name, value) = line.split_once(": ")?;
        name.eq_ignore_ascii_case("content-length").then(|| value.parse().unwrap())
    });
    let mut body = vec![0; length?];
    stream.read_exact(&mut body).await.ok()?;
    Some(ReceivedProviderRequest { head, body })
}

async fn write_endless_body(mut stream: TcpStream) {
    let mut bytes = b"HTTP/1.1 200 OK\r\n\r\n{".to_vec();
    while stream.write_all(&bytes).await.is_ok() {
        bytes = vec![b' '; 64 << 10];
    }
}

/// Waits until the client closes the connection, and notifies of it. The client sends nothing more, so the read ends
/// then.
async fn wait_for_close(mut stream: TcpStream, close_notifier: mpsc::UnboundedSender<()>) {
    _ = stream.read(&mut [0]).await;
    _ = close_notifier.send(());
}
