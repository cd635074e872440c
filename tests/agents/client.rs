//! Client of the service: A2A over a new connection for each request.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

/// Time limit that suffices for a slow agent on a slow machine.
const WAIT_TIMEOUT: Duration = Duration::from_secs(400);

/// Polling interval for changes without a notification.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Address and token of one service.
pub(crate) struct AgentClient {
    pub(crate) address: String,
    pub(crate) token: String,
}

impl AgentClient {
    /// Sends a text and waits for the end; returns the task.
    pub(crate) fn send(&self, agent: &str, text: &str) -> Value {
        self.call(agent, "message/send", &send_params(text, true))
    }

    /// Sends a text with a file, and waits for the end.
    pub(crate) fn send_with_file(&self, agent: &str, text: &str, file: Value) -> Value {
        let mut params = send_params(text, true);
        let parts = params["message"]["parts"].as_array_mut().expect("a list");
        parts.push(json!({"kind": "file", "file": file}));
        self.call(agent, "message/send", &params)
    }

    /// Sends a text in an existing conversation, and waits for the end.
    pub(crate) fn send_in_context(&self, agent: &str, text: &str, context: &str) -> Value {
        let mut params = send_params(text, true);
        params["message"]["contextId"] = json!(context);
        self.call(agent, "message/send", &params)
    }

    /// Sends a text and follows its task to the end: returns each event with its time after the request.
    pub(crate) fn send_and_follow(&self, agent: &str, text: &str) -> Vec<(Duration, Value)> {
        let params = send_params(text, true);
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": "message/stream", "params": params});
        let (body, token) = (body.to_string(), &self.token);
        let mut stream = TcpStream::connect(&self.address).expect("a connection");
        stream.set_read_timeout(Some(WAIT_TIMEOUT)).expect("a socket");
        let head = format!(
            "POST /agents/{agent}/v1 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\
             Authorization: Bearer {token}\r\nContent-Type: application/json\r\n\
             Accept: text/event-stream\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        let started_at = Instant::now();
        stream.write_all(head.as_bytes()).expect("a request");
        let mut events = Vec::new();
        for line in BufReader::new(stream).lines() {
            let line = line.unwrap_or_else(|error| panic!("message/stream: {error}"));
            let Some(data) = line.strip_prefix("data:") else { continue };
            let mut event: Value = serde_json::from_str(data).expect("an event");
            assert!(event["error"].is_null(), "message/stream: {event}");
            events.push((started_at.elapsed(), event["result"].take()));
        }
        events
    }

    /// Sends a text to a task, and returns the task once it has ended or waits.
    pub(crate) fn reply(&self, agent: &str, task_id: &str, text: &str) -> Value {
        let mut params = send_params(text, true);
        params["message"]["taskId"] = json!(task_id);
        self.call(agent, "message/send", &params)
    }

    /// Sends a text without waiting; returns the id of the task.
    pub(crate) fn start_task(&self, agent: &str, text: &str) -> String {
        let task = self.call(agent, "message/send", &send_params(text, false));
        task["id"].as_str().expect("a task has an id").to_owned()
    }

    /// Returns the present task.
    pub(crate) fn task(&self, agent: &str, id: &str) -> Value {
        self.call(agent, "tasks/get", &json!({"id": id}))
    }

    pub(crate) fn cancel(&self, agent: &str, id: &str) -> Value {
        self.call(agent, "tasks/cancel", &json!({"id": id}))
    }

    /// Returns the execution behind a task.
    pub(crate) fn execution(&self, task: &Value) -> Value {
        let id = task["id"].as_str().expect("a task has an id");
        let text = self.request("GET", &format!("/api/v1/executions/{id}"), "");
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text}"))
    }

    /// Returns an agent.
    pub(crate) fn agent(&self, id: &str) -> Value {
        let text = self.request("GET", &format!("/api/v1/agents/{id}"), "");
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text}"))
    }

    /// Waits for the first event of a kind in the history of an execution, and returns it.
    #[expect(
        clippy::disallowed_methods,
        reason = "an execution that is deferred has no stream to follow"
    )]
    pub(crate) fn wait_for_event(&self, id: &str, kind: &str) -> Value {
        for _ in 0..WAIT_TIMEOUT.as_millis() / POLL_INTERVAL.as_millis() {
            let execution = self.execution(&json!({"id": id}));
            let events = execution["events"].as_array().unwrap_or_else(|| panic!("{execution}"));
            if let Some(event) = events.iter().find(|event| event["data"]["kind"] == kind) {
                return event.clone();
            }
            assert!(execution["outcome"].is_null(), "it ended without {kind}: {execution}");
            std::thread::sleep(POLL_INTERVAL); // Between two readings; the loop ends at the deadline.
        }
        panic!("{id}: no event {kind} in {WAIT_TIMEOUT:?}")
    }

    /// Waits for the open question of a task, and returns it.
    #[expect(clippy::disallowed_methods, reason = "a stream would end with the question")]
    pub(crate) fn wait_for_question(&self, id: &str) -> Value {
        for _ in 0..WAIT_TIMEOUT.as_millis() / POLL_INTERVAL.as_millis() {
            let text = self.request("GET", &format!("/api/v1/interactions?execution={id}"), "");
            let list: Value = serde_json::from_str(&text).expect("a list");
            if let Some(question) = list["interactions"].get(0) {
                return question.clone();
            }
            let execution = self.execution(&json!({"id": id}));
            assert!(execution["outcome"].is_null(), "it ended without a question: {execution}");
            std::thread::sleep(POLL_INTERVAL); // Between two readings; the loop ends at the deadline.
        }
        panic!("{id}: no question in {WAIT_TIMEOUT:?}")
    }

    /// Answers a question, and returns it.
    pub(crate) fn answer_question(&self, id: &str, answer: &Value) -> Value {
        let path = format!("/api/v1/interactions/{id}/answer");
        let text = self.request("POST", &path, &answer.to_string());
        serde_json::from_str(&text).unwrap_or_else(|_| panic!("no JSON: {text}"))
    }

    /// Returns the verdicts about the tool calls of a task.
    pub(crate) fn decisions(&self, id: &str) -> Vec<Value> {
        let path = format!("/api/v1/permission-decisions?execution={id}");
        let list: Value = serde_json::from_str(&self.request("GET", &path, "")).expect("a list");
        list["decisions"].as_array().unwrap_or_else(|| panic!("{list}")).clone()
    }

    /// Follows a task to its end, and returns it.
    #[expect(clippy::disallowed_methods, reason = "a stream would end with a question")]
    pub(crate) fn wait_for_end(&self, agent: &str, id: &str) -> Value {
        for _ in 0..WAIT_TIMEOUT.as_millis() / POLL_INTERVAL.as_millis() {
            let task = self.task(agent, id);
            if !matches!(&*task_state_and_code(&task).0, "submitted" | "working" | "input-required")
            {
                return task;
            }
            std::thread::sleep(POLL_INTERVAL); // Between two readings; the loop ends at the deadline.
        }
        panic!("{id}: no end in {WAIT_TIMEOUT:?}")
    }

    /// Waits for the version of an agent's program, and returns the facts about the program.
    #[expect(clippy::disallowed_methods, reason = "nobody tells when a program was asked")]
    pub(crate) fn wait_for_program(&self, agent: &str) -> Value {
        for _ in 0..WAIT_TIMEOUT.as_millis() / POLL_INTERVAL.as_millis() {
            let status: Value =
                serde_json::from_str(&self.request("GET", "/status", "")).expect("a status");
            let agents = status["agents"].as_array().expect("agents").iter();
            let mut program =
                agents.filter(|known| known["id"] == agent).map(|known| &known["program"]);
            let is_inspected =
                |program: &&Value| !(program["version"].is_null() && program["warning"].is_null());
            if let Some(program) = program.find(is_inspected) {
                return program.clone();
            }
            std::thread::sleep(POLL_INTERVAL); // Between two readings; the loop ends at the deadline.
        }
        panic!("{agent}: its program was not asked for its version in {WAIT_TIMEOUT:?}")
    }

    /// Makes one JSON-RPC call that must succeed; returns its result.
    fn call(&self, agent: &str, method: &str, params: &Value) -> Value {
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let text = self.request("POST", &format!("/agents/{agent}/v1"), &body.to_string());
        let mut document: Value =
            serde_json::from_str(&text).unwrap_or_else(|_| panic!("{method}: no JSON: {text}"));
        assert!(document["error"].is_null(), "{method}: {document}");
        document["result"].take()
    }

    fn request(&self, method: &str, path: &str, body: &str) -> String {
        let headers =
            format!("Authorization: Bearer {}\r\nContent-Type: application/json\r\n", self.token);
        send_request(&self.address, &format!("{method} {path}"), &headers, body)
    }
}

/// Sends one request, and returns the body of its answer.
pub(crate) fn send_request(address: &str, request_line: &str, headers: &str, body: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(WAIT_TIMEOUT)).expect("a socket");
    let length = body.len();
    let head = format!(
        "{request_line} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n"
    );
    stream.write_all([head.as_bytes(), body.as_bytes()].concat().as_slice()).expect("a request");
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap_or_else(|error| panic!("{request_line}: {error}"));
    let text = String::from_utf8(bytes).expect("text");
    text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{request_line}: {text}")).1.to_owned()
}

/// Returns the parameters of `message/send`.
fn send_params(text: &str, is_blocking: bool) -> Value {
    let id = uuid::Uuid::new_v4().to_string();
    let parts = json!([{"kind": "text", "text": text}]);
    json!({
        "message": {"kind": "message", "role": "user", "messageId": id, "parts": parts},
        "configuration": {"blocking": is_blocking},
    })
}

/// Returns the state of a task, and the code of its failure.
pub(crate) fn task_state_and_code(task: &Value) -> (String, String) {
    let text = |pointer: &str| {
        task.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    (text("/status/state"), text("/status/message/metadata/code"))
}

/// Returns the answer of a task.
pub(crate) fn answer_text(task: &Value) -> String {
    let text = task.pointer("/artifacts/0/parts/0/text").and_then(Value::as_str);
    text.unwrap_or_default().to_owned()
}
