//! Fake model beside the agents, and its log of their requests.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

use crate::client::send_request;

/// Address of the model. The namespace belongs to the agents alone, so the port is free.
pub(crate) const MODEL_ADDRESS: &str = "127.0.0.1:4010";
const NAME_SERVER_ADDRESS: &str = "127.0.0.1:53";

/// Running model. It is killed when it is dropped.
pub(crate) struct FakeModel {
    child: Child,
    key: String,
}

impl FakeModel {
    /// Starts a model that accepts this key only.
    pub(crate) fn start(key: &str) -> Self {
        let executable = std::env::current_exe().expect("this executable");
        let mut command = Command::new(algonius_fakes::mock_model_path(&executable));
        command.args(["--listen", MODEL_ADDRESS, "--names", NAME_SERVER_ADDRESS, "--key", key]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("the model");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let is_listening =
            lines.any(|line| line.is_ok_and(|line| line.starts_with("listening on ")));
        assert!(is_listening, "the model did not start");
        Self { child, key: key.to_owned() }
    }

    /// Returns the requests with this in the text.
    pub(crate) fn requests_containing(&self, text: &str) -> Vec<Value> {
        let log: Vec<Value> =
            serde_json::from_str(&send_request(MODEL_ADDRESS, "GET /_mock/log", "", ""))
                .expect("a log");
        let contains_text =
            |line: &Value| line["text"].as_str().is_some_and(|logged| logged.contains(text));
        log.into_iter().filter(contains_text).collect()
    }

    /// Waits for a request with this in the text.
    pub(crate) fn wait_for_request(&self, text: &str) {
        send_request(MODEL_ADDRESS, "POST /_mock/wait", "", text);
    }

    /// Sends a request to the model, as an agent would.
    pub(crate) fn send_prompt(&self, text: &str) {
        let body = json!({"model": "mock-1", "messages": [{"role": "user", "content": text}]});
        let headers =
            format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", self.key);
        send_request(MODEL_ADDRESS, "POST /v1/chat/completions", &headers, &body.to_string());
    }

    /// Returns the names that were looked up, with their counts.
    pub(crate) fn host_name_query_counts(&self) -> Vec<String> {
        let names: Value =
            serde_json::from_str(&send_request(MODEL_ADDRESS, "GET /_mock/names", "", ""))
                .expect("an object of names");
        let names = names.as_object().into_iter().flatten();
        names.map(|(name, count)| format!("{name} ×{count}")).collect()
    }
}

impl Drop for FakeModel {
    fn drop(&mut self) {
        _ = self.child.kill(); // It may have ended.
        _ = self.child.wait();
    }
}
