//! Client of a running fake model.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

use super::dialects::DialectCase;

/// Running fake model.
pub(crate) struct ModelProcess {
    child: Child,
    address: String,
    pub(crate) name_server_address: String,
}

impl ModelProcess {
    pub(crate) fn start(arguments: &[&str]) -> Self {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mock-model"));
        command.args(["--listen", "127.0.0.1:0", "--names", "127.0.0.1:0"]).args(arguments);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut value_after = |mark: &str| {
            let line = lines.next().unwrap().unwrap();
            line.strip_prefix(mark).unwrap_or_else(|| panic!("{line}")).to_owned()
        };
        let (name_server_address, address) =
            (value_after("names on "), value_after("listening on "));
        Self { child, address, name_server_address }
    }

    pub(crate) fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    /// Sends a request; returns the connection for reading the answer.
    pub(crate) fn send_request(&self, line: &str, headers: &str, body: &str) -> TcpStream {
        let mut stream = self.connect();
        let length = body.len();
        let head = format!(
            "{line} HTTP/1.1\r\nHost: model.test\r\nConnection: close\r\nContent-Length: {length}\r\n{headers}\r\n"
        );
        stream.write_all([head.as_bytes(), body.as_bytes()].concat().as_slice()).unwrap();
        stream
    }

    pub(crate) fn request(&self, line: &str, headers: &str, body: &str) -> ModelResponse {
        let mut bytes = Vec::new();
        self.send_request(line, headers, body).read_to_end(&mut bytes).unwrap();
        ModelResponse::parse(&bytes)
    }

    pub(crate) fn send_prompt(&self, dialect: &DialectCase, text: &str) -> ModelResponse {
        let body = (dialect.request_body)(text).to_string();
        self.request(&format!("POST {}", dialect.path), "", &body)
    }

    pub(crate) fn stream_prompt(&self, dialect: &DialectCase, text: &str) -> ModelResponse {
        let mut body = (dialect.request_body)(text);
        body["stream"] = json!(true);
        self.request(&format!("POST {}", dialect.stream_path), "", &body.to_string())
    }

    /// Returns the bytes before the connection was closed in any way.
    pub(crate) fn request_until_close(&self, path: &str, body: &Value) -> ModelResponse {
        let mut bytes = Vec::new();
        let mut stream = self.send_request(&format!("POST {path}"), "", &body.to_string());
        _ = stream.read_to_end(&mut bytes); // A reset ends the answer too.
        ModelResponse::parse(&bytes)
    }

    pub(crate) fn stream_until_close(&self, dialect: &DialectCase, text: &str) -> ModelResponse {
        let mut body = (dialect.request_body)(text);
        body["stream"] = json!(true);
        self.request_until_close(dialect.stream_path, &body)
    }

    pub(crate) fn send_until_close(&self, dialect: &DialectCase, text: &str) -> ModelResponse {
        self.request_until_close(dialect.path, &(dialect.request_body)(text))
    }

    pub(crate) fn request_log(&self) -> Vec<Value> {
        let log = self.request("GET /_mock/log", "", "").json();
        log.as_array().unwrap().clone()
    }
}

impl Drop for ModelProcess {
    fn drop(&mut self) {
        _ = self.child.kill(); // It may have ended.
        _ = self.child.wait();
    }
}

#[derive(Debug)]
pub(crate) struct ModelResponse {
    pub(crate) status: u16,
    pub(crate) head: String,
    pub(crate) body: String,
    /// True if a chunked body was complete.
    pub(crate) is_complete: bool,
}

impl ModelResponse {
    pub(crate) fn parse(bytes: &[u8]) -> Self {
        let text = String::from_utf8_lossy(bytes);
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        let status = head.split(' ').nth(1).unwrap().parse().unwrap();
        let (head, is_chunked) = (head.to_lowercase(), head.contains("chunked"));
        let is_complete = !is_chunked || body.ends_with("0\r\n\r\n");
        let body = if is_chunked { decode_chunks(body) } else { body.to_owned() };
        Self { status, head, body, is_complete }
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    pub(crate) fn value_at(&self, pointer: &str) -> Value {
        self.json().pointer(pointer).cloned().unwrap_or_else(|| panic!("no {pointer} in {self:?}"))
    }

    /// Returns the documents of a stream.
    pub(crate) fn events(&self) -> Vec<Value> {
        let lines = self.body.lines().filter_map(|line| line.strip_prefix("data: "));
        lines.filter_map(|data| serde_json::from_str(data).ok()).collect()
    }

    /// Returns the joined text of a stream.
    pub(crate) fn streamed_text(&self, dialect: &DialectCase) -> String {
        let events = self.events();
        events.iter().filter_map(|event| event.pointer(dialect.piece_pointer)?.as_str()).collect()
    }
}

fn decode_chunks(mut text: &str) -> String {
    let mut decoded = String::new();
    while let Some((size, rest)) = text.split_once("\r\n") {
        let size = usize::from_str_radix(size, 16).unwrap();
        let Some(chunk) = rest.get(..size).filter(|_| size > 0) else { break };
        decoded.push_str(chunk);
        text = rest.get(size + 2..).unwrap_or_default();
    }
    decoded
}
