//! Simulated model on loopback, and its log of the requests.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Running model. It is killed when it is dropped.
pub(crate) struct MockModel {
    child: Child,
    address: String,
}

impl MockModel {
    /// Starts a model on a free port.
    pub(crate) fn start(options: &[&str]) -> Self {
        let executable = std::env::current_exe().unwrap();
        let mut command = Command::new(algonius_fakes::mock_model_path(&executable));
        command.args(["--listen", "127.0.0.1:0"]).args(options);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address =
            lines.find_map(|line| line.ok()?.strip_prefix("listening on ").map(str::to_owned));
        Self { child, address: address.unwrap() }
    }

    /// Returns the base address of the interface for chat completions.
    pub(crate) fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// Returns the requests so far.
    pub(crate) async fn fetch_requests(&self) -> Vec<Value> {
        serde_json::from_str(&self.request("GET /_mock/log", "").await).unwrap()
    }

    /// Waits for a request with this in the text.
    pub(crate) async fn wait_for_request(&self, text: &str) {
        self.request("POST /_mock/wait", text).await;
    }

    /// Directs the model through these turns, for requests without directions of their own.
    pub(crate) async fn set_script(&self, turns: &[Value]) {
        let turns = format!("turns={}", Value::from(turns));
        self.request("POST /_mock/script", &turns).await;
    }

    async fn request(&self, method_and_path: &str, body: &str) -> String {
        let mut connection = TcpStream::connect(&self.address).await.unwrap();
        let length = body.len();
        let request = format!(
            "{method_and_path} HTTP/1.1\r\nHost: model\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        );
        connection.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        connection.read_to_string(&mut response).await.unwrap();
        let (_, body) = response.split_once("\r\n\r\n").unwrap();
        body.to_owned()
    }
}

impl Drop for MockModel {
    fn drop(&mut self) {
        _ = self.child.kill(); // It may have ended.
        _ = self.child.wait();
    }
}

/// Returns a request that directs the model through these turns.
pub(crate) fn prompt_with_turns(text: &str, turns: &[Value]) -> String {
    format!("{text} [[mock turns={}]]", Value::from(turns))
}

/// Returns a turn with calls: names and arguments.
pub(crate) fn turn_with_calls(calls: &[(&str, Value)]) -> Value {
    let call = |(name, args): &(&str, Value)| json!({"name": name, "args": args});
    json!({"calls": calls.iter().map(call).collect::<Vec<_>>()})
}

/// Returns the turn with the answer.
pub(crate) fn final_answer_turn(answer: &str) -> Value {
    turn_with_calls(&[("final_answer", json!({"answer": answer}))])
}
