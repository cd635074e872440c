//! One question, asked on every way that the service has: what each answers, as text.

use serde_json::{Value, json};

use super::grpc;
use crate::harness::{Service, ServiceClient, TestResponse};

/// The way a question went, and the answer as it is compared.
pub(super) type TransportAnswer = (&'static str, String);

/// What is asked of an agent, by whoever has the token of the client.
#[derive(Clone)]
pub(super) struct ErrorRequest {
    pub(super) agent: String,
    pub(super) client: ServiceClient,
    pub(super) what: What,
    /// Further header lines, or metadata of gRPC.
    pub(super) headers: Vec<(&'static str, String)>,
}

#[derive(Clone)]
pub(super) enum What {
    /// A message with this text.
    Send(String),
    /// One under an id that was used before.
    Repeated(String),
    /// One that chooses a variable for itself.
    WithOverride(String),
    /// One whose end shall be told to an address.
    WithPushConfig(String),
    /// None, where one is needed.
    Nothing,
    /// A task.
    Get(String),
    /// The end of a task.
    Cancel(String),
}

/// The variable that a message chooses.
pub(super) const CHOICE: (&str, &str) = ("CHOSEN", "by-me");
/// The extension by which it does.
pub(super) const EXTENSION: &str = "https://algonius.dev/a2a/ext/overrides/v1";
/// Where its end shall be told.
pub(super) const HOOK_URL: &str = "https://hook.example/told";

impl ErrorRequest {
    pub(super) fn new(service: &Service, agent: &str, what: What) -> Self {
        Self { agent: agent.to_owned(), client: service.client.clone(), what, headers: Vec::new() }
    }

    /// A message with a text.
    pub(super) fn send(service: &Service, agent: &str, text: &str) -> Self {
        Self::new(service, agent, What::Send(text.to_owned()))
    }

    /// The same from somebody else.
    pub(super) fn with(mut self, token: &str) -> Self {
        token.clone_into(&mut self.client.token);
        self
    }

    /// The same with a header.
    pub(super) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Asks on every way, one after the other.
    pub(super) async fn everywhere(&self, service: &Service) -> Vec<TransportAnswer> {
        let mut told = self.over_http().await;
        told.push(("gRPC 0.3", grpc::send_v0_3(self).await));
        told.push(("gRPC 1.0", grpc::send_v1_0(self).await));
        if let Some(words) = self.words() {
            told.push(("command line", self.over_cli(service, words).await));
        }
        told
    }

    async fn over_http(&self) -> Vec<TransportAnswer> {
        vec![
            ("JSON-RPC 0.3", self.rpc("0.3").await),
            ("JSON-RPC 1.0", self.rpc("1.0").await),
            ("HTTP+JSON 0.3", self.rest("0.3").await),
            ("HTTP+JSON 1.0", self.rest("1.0").await),
        ]
    }

    async fn rpc(&self, version: &'static str) -> String {
        let (method, params) = match (&self.what, version) {
            (What::Get(id), "0.3") => ("tasks/get", json!({"id": id})),
            (What::Get(id), _) => ("GetTask", json!({"id": id})),
            (What::Cancel(id), "0.3") => ("tasks/cancel", json!({"id": id})),
            (What::Cancel(id), _) => ("CancelTask", json!({"id": id})),
            (_, "0.3") => ("message/send", self.old_message()),
            _ => ("SendMessage", self.new_message()),
        };
        let body = crate::harness::json_rpc_call(method, &params);
        let line = format!("POST /agents/{}/v1", self.agent);
        response_text(&self.post(&line, version, body.as_bytes()).await)
    }

    async fn rest(&self, version: &'static str) -> String {
        let base = format!("/agents/{}/v1", self.agent);
        let (line, body) = match (&self.what, version) {
            (What::Get(id), _) => (format!("GET {base}/tasks/{id}"), String::new()),
            (What::Cancel(id), _) => (format!("POST {base}/tasks/{id}:cancel"), String::new()),
            (_, "0.3") => (format!("POST {base}/message:send"), self.old_body().to_string()),
            _ => (format!("POST {base}/message:send"), self.new_message().to_string()),
        };
        response_text(&self.post(&line, version, body.as_bytes()).await)
    }

    async fn post(&self, line: &str, version: &str, body: &[u8]) -> TestResponse {
        let mut headers = vec![
            format!("Authorization: Bearer {}", self.client.token),
            "Content-Type: application/json".to_owned(),
        ];
        if !self.headers.iter().any(|(name, _)| *name == "a2a-version") {
            headers.push(format!("A2A-Version: {version}"));
        }
        headers.extend(self.headers.iter().map(|(name, value)| format!("{name}: {value}")));
        self.client.request(line, &headers, body).await
    }

    /// The text, where there is a message.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.what {
            What::Send(text)
            | What::Repeated(text)
            | What::WithOverride(text)
            | What::WithPushConfig(text) => Some(text),
            What::Nothing | What::Get(_) | What::Cancel(_) => None,
        }
    }

    /// The id of the message: always the same, or always another.
    pub(super) fn message_id(&self) -> String {
        match self.what {
            What::Repeated(_) => "used-before".to_owned(),
            _ => uuid::Uuid::new_v4().to_string(),
        }
    }

    fn metadata(&self) -> Value {
        match self.what {
            What::WithOverride(_) => json!({EXTENSION: {"environment": {CHOICE.0: CHOICE.1}}}),
            _ => json!({}),
        }
    }

    fn old_message(&self) -> Value {
        let Some(text) = self.text() else { return json!({}) };
        let (id, metadata) = (self.message_id(), self.metadata());
        let message = json!({"kind": "message", "role": "user", "messageId": id,
            "parts": [{"kind": "text", "text": text}], "metadata": metadata});
        let push = json!({"pushNotificationConfig": {"url": HOOK_URL}, "blocking": true});
        self.configured(json!({"message": message}), push)
    }

    fn old_body(&self) -> Value {
        let Some(text) = self.text() else { return json!({}) };
        let (id, metadata) = (self.message_id(), self.metadata());
        let message = json!({"role": "ROLE_USER", "messageId": id,
            "content": [{"text": text}], "metadata": metadata});
        let push = json!({"pushNotification": {"url": HOOK_URL}, "blocking": true});
        self.configured(json!({"request": message}), push)
    }

    fn new_message(&self) -> Value {
        let Some(text) = self.text() else { return json!({}) };
        let (id, metadata) = (self.message_id(), self.metadata());
        let message = json!({"role": "ROLE_USER", "messageId": id,
            "parts": [{"text": text}], "metadata": metadata});
        let push = json!({"taskPushNotificationConfig": {"url": HOOK_URL}});
        self.configured(json!({"message": message}), push)
    }

    fn configured(&self, mut params: Value, push: Value) -> Value {
        if matches!(self.what, What::WithPushConfig(_)) {
            params["configuration"] = push;
        }
        params
    }

    /// How people ask it, where they can.
    fn words(&self) -> Option<Vec<String>> {
        let words = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
        let agent = &self.agent;
        let choice = format!("{}={}", CHOICE.0, CHOICE.1);
        match &self.what {
            _ if !self.headers.is_empty() => None,
            What::Nothing | What::WithPushConfig(_) => None,
            What::Send(text) => words(&["send", agent, text]),
            What::Repeated(text) => words(&["send", agent, text, "--message-id", "used-before"]),
            What::WithOverride(text) => words(&["send", agent, text, "--env", &choice]),
            What::Get(id) => words(&["tasks", "show", id]),
            What::Cancel(id) => words(&["tasks", "cancel", id]),
        }
    }

    async fn over_cli(&self, service: &Service, words: Vec<String>) -> String {
        let file = service.setup.here().join("asker.token");
        std::fs::write(&file, &self.client.token).unwrap();
        let file = file.display().to_string();
        let own = ["--json", "--token-file", &file];
        let words: Vec<_> = words.iter().map(String::as_str).chain(own).collect();
        let output = service.command(&words, "").await;
        let said = match (&self.what, output.code) {
            // All that is known of it; what went wrong is one member.
            (What::Get(_), Some(0)) => {
                let record: Value = serde_json::from_str(&output.stdout).unwrap();
                pretty(&record["error"])
            }
            _ => pretty(&serde_json::from_str(&output.stderr).unwrap_or_default()),
        };
        format!("exit {}\n{said}", output.code.unwrap_or(-1))
    }
}

/// The headers of an answer that a client acts by.
const HEADERS: [&str; 4] = ["content-type", "retry-after", "www-authenticate", "allow"];

/// An answer: its status, the headers that matter and its document; of a task, how it stands.
pub(super) fn response_text(answer: &TestResponse) -> String {
    let headers = HEADERS.iter().filter_map(|name| Some((name, answer.header(name)?)));
    let headers: String = headers.map(|(name, value)| format!("{name}: {value}\n")).collect();
    let document = answer.json();
    let places = ["/result/task/status", "/result/status", "/task/status", "/status"];
    let standing = places.iter().find_map(|place| document.pointer(place));
    let standing = standing.filter(|status| status.get("state").is_some());
    format!("HTTP {}\n{headers}{}", answer.status, pretty(standing.unwrap_or(&document)))
}

/// A document on many lines, its members in the order of the alphabet.
pub(super) fn pretty(document: &Value) -> String {
    serde_json::to_string_pretty(document).unwrap()
}
