//! One question, asked on every way that the service has: what each answers, as text.

use serde_json::{Value, json};

use super::grpc;
use crate::harness::{ServiceClient, ServiceProcess, TestResponse};

/// The way a question went, and the answer as it is compared.
pub(super) type TransportAnswer = (&'static str, String);

/// What is asked of an agent, by whoever has the token of the client.
#[derive(Clone)]
pub(super) struct ErrorRequest {
    pub(super) agent: String,
    pub(super) client: ServiceClient,
    pub(super) kind: RequestKind,
    /// Further header lines, or metadata of gRPC.
    pub(super) headers: Vec<(&'static str, String)>,
}

#[derive(Clone)]
pub(super) enum RequestKind {
    /// A message with this text.
    Send(String),
    /// One under an id that was used before.
    SendRepeated(String),
    /// One that chooses a variable for itself.
    SendWithOverride(String),
    /// One with a parameter that the agent does not have.
    SendWithParam(String),
    /// One whose end shall be told to an address.
    SendWithPushConfig(String),
    /// None, where one is needed.
    SendWithoutMessage,
    /// A task.
    Get(String),
    /// The end of a task.
    Cancel(String),
}

/// The variable that a message chooses.
pub(super) const ENV_OVERRIDE: (&str, &str) = ("CHOSEN", "by-me");
/// The extension by which it does.
pub(super) const OVERRIDES_EXTENSION_URI: &str = "https://algonius.dev/a2a/ext/overrides/v1";
/// The parameter that a message sets.
pub(super) const UNKNOWN_PARAM: (&str, &str) = ("unknown_param", "by-me");
/// The extension by which it does.
pub(super) const PARAMETERS_EXTENSION_URI: &str = "https://algonius.dev/a2a/ext/parameters/v1";
/// Where its end shall be told.
pub(super) const HOOK_URL: &str = "https://hook.example/told";

impl ErrorRequest {
    pub(super) fn new(service: &ServiceProcess, agent: &str, kind: RequestKind) -> Self {
        Self { agent: agent.to_owned(), client: service.client.clone(), kind, headers: Vec::new() }
    }

    /// A message with a text.
    pub(super) fn new_message(service: &ServiceProcess, agent: &str, text: &str) -> Self {
        Self::new(service, agent, RequestKind::Send(text.to_owned()))
    }

    /// The same from somebody else.
    pub(super) fn with_token(mut self, token: &str) -> Self {
        token.clone_into(&mut self.client.token);
        self
    }

    /// The same with a header.
    pub(super) fn with_header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }

    /// Asks on every way, one after the other.
    pub(super) async fn send_over_all_transports(
        &self,
        service: &ServiceProcess,
    ) -> Vec<TransportAnswer> {
        let mut answers = self.send_over_http().await;
        answers.push(("gRPC 0.3", grpc::send_v0_3(self).await));
        answers.push(("gRPC 1.0", grpc::send_v1_0(self).await));
        if let Some(command_args) = self.command_args() {
            answers.push(("command line", self.send_over_cli(service, command_args).await));
        }
        answers
    }

    async fn send_over_http(&self) -> Vec<TransportAnswer> {
        vec![
            ("JSON-RPC 0.3", self.send_json_rpc("0.3").await),
            ("JSON-RPC 1.0", self.send_json_rpc("1.0").await),
            ("HTTP+JSON 0.3", self.send_rest("0.3").await),
            ("HTTP+JSON 1.0", self.send_rest("1.0").await),
        ]
    }

    async fn send_json_rpc(&self, version: &'static str) -> String {
        let (method, params) = match (&self.kind, version) {
            (RequestKind::Get(id), "0.3") => ("tasks/get", json!({"id": id})),
            (RequestKind::Get(id), _) => ("GetTask", json!({"id": id})),
            (RequestKind::Cancel(id), "0.3") => ("tasks/cancel", json!({"id": id})),
            (RequestKind::Cancel(id), _) => ("CancelTask", json!({"id": id})),
            (_, "0.3") => ("message/send", self.message_params_0_3()),
            _ => ("SendMessage", self.message_params_1_0()),
        };
        let body = crate::harness::json_rpc_request_body(method, &params);
        let line = format!("POST /agents/{}/v1", self.agent);
        response_text(&self.post(&line, version, body.as_bytes()).await)
    }

    async fn send_rest(&self, version: &'static str) -> String {
        let base = format!("/agents/{}/v1", self.agent);
        let (line, body) = match (&self.kind, version) {
            (RequestKind::Get(id), _) => (format!("GET {base}/tasks/{id}"), String::new()),
            (RequestKind::Cancel(id), _) => {
                (format!("POST {base}/tasks/{id}:cancel"), String::new())
            }
            (_, "0.3") => (format!("POST {base}/message:send"), self.rest_body_0_3().to_string()),
            _ => (format!("POST {base}/message:send"), self.message_params_1_0().to_string()),
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
    pub(super) fn message_text(&self) -> Option<&str> {
        match &self.kind {
            RequestKind::Send(text)
            | RequestKind::SendRepeated(text)
            | RequestKind::SendWithOverride(text)
            | RequestKind::SendWithParam(text)
            | RequestKind::SendWithPushConfig(text) => Some(text),
            RequestKind::SendWithoutMessage | RequestKind::Get(_) | RequestKind::Cancel(_) => None,
        }
    }

    /// The id of the message: always the same, or always another.
    pub(super) fn fixed_or_new_message_id(&self) -> String {
        match self.kind {
            RequestKind::SendRepeated(_) => "used-before".to_owned(),
            _ => uuid::Uuid::new_v4().to_string(),
        }
    }

    fn metadata(&self) -> Value {
        match self.kind {
            RequestKind::SendWithOverride(_) => {
                json!({OVERRIDES_EXTENSION_URI: {"environment": {ENV_OVERRIDE.0: ENV_OVERRIDE.1}}})
            }
            RequestKind::SendWithParam(_) => {
                json!({PARAMETERS_EXTENSION_URI: {UNKNOWN_PARAM.0: UNKNOWN_PARAM.1}})
            }
            _ => json!({}),
        }
    }

    fn message_params_0_3(&self) -> Value {
        let Some(text) = self.message_text() else { return json!({}) };
        let (id, metadata) = (self.fixed_or_new_message_id(), self.metadata());
        let message = json!({"kind": "message", "role": "user", "messageId": id,
            "parts": [{"kind": "text", "text": text}], "metadata": metadata});
        let push_configuration =
            json!({"pushNotificationConfig": {"url": HOOK_URL}, "blocking": true});
        self.add_push_config_if_requested(json!({"message": message}), push_configuration)
    }

    fn rest_body_0_3(&self) -> Value {
        let Some(text) = self.message_text() else { return json!({}) };
        let (id, metadata) = (self.fixed_or_new_message_id(), self.metadata());
        let message = json!({"role": "ROLE_USER", "messageId": id,
            "content": [{"text": text}], "metadata": metadata});
        let push_configuration = json!({"pushNotification": {"url": HOOK_URL}, "blocking": true});
        self.add_push_config_if_requested(json!({"request": message}), push_configuration)
    }

    fn message_params_1_0(&self) -> Value {
        let Some(text) = self.message_text() else { return json!({}) };
        let (id, metadata) = (self.fixed_or_new_message_id(), self.metadata());
        let message = json!({"role": "ROLE_USER", "messageId": id,
            "parts": [{"text": text}], "metadata": metadata});
        let push_configuration = json!({"taskPushNotificationConfig": {"url": HOOK_URL}});
        self.add_push_config_if_requested(json!({"message": message}), push_configuration)
    }

    fn add_push_config_if_requested(&self, mut params: Value, configuration: Value) -> Value {
        if matches!(self.kind, RequestKind::SendWithPushConfig(_)) {
            params["configuration"] = configuration;
        }
        params
    }

    /// How people ask it, where they can.
    fn command_args(&self) -> Option<Vec<String>> {
        let to_args = |words: &[&str]| Some(words.iter().map(|word| (*word).to_owned()).collect());
        let agent = &self.agent;
        let override_arg = format!("{}={}", ENV_OVERRIDE.0, ENV_OVERRIDE.1);
        match &self.kind {
            _ if !self.headers.is_empty() => None,
            RequestKind::SendWithoutMessage | RequestKind::SendWithPushConfig(_) => None,
            RequestKind::Send(text) => to_args(&["send", agent, text]),
            RequestKind::SendRepeated(text) => {
                to_args(&["send", agent, text, "--message-id", "used-before"])
            }
            RequestKind::SendWithOverride(text) => {
                to_args(&["send", agent, text, "--env", &override_arg])
            }
            RequestKind::SendWithParam(text) => {
                let param_arg = format!("{}={}", UNKNOWN_PARAM.0, UNKNOWN_PARAM.1);
                to_args(&["send", agent, text, "--param", &param_arg])
            }
            RequestKind::Get(id) => to_args(&["tasks", "show", id]),
            RequestKind::Cancel(id) => to_args(&["tasks", "cancel", id]),
        }
    }

    async fn send_over_cli(&self, service: &ServiceProcess, command_args: Vec<String>) -> String {
        let file = service.setup.test_folder().join("asker.token");
        std::fs::write(&file, &self.client.token).unwrap();
        let file = file.display().to_string();
        let token_args = ["--json", "--token-file", &file];
        let args: Vec<_> = command_args.iter().map(String::as_str).chain(token_args).collect();
        let output = service.run_command(&args, "").await;
        let answer = match (&self.kind, output.exit_code) {
            // All that is known of it; what went wrong is one member.
            (RequestKind::Get(_), Some(0)) => {
                let record: Value = serde_json::from_str(&output.stdout).unwrap();
                pretty_json(&record["error"])
            }
            _ => pretty_json(&serde_json::from_str(&output.stderr).unwrap_or_default()),
        };
        format!("exit {}\n{answer}", output.exit_code.unwrap_or(-1))
    }
}

/// The headers of an answer that a client acts by.
const COMPARED_HEADERS: [&str; 4] = ["content-type", "retry-after", "www-authenticate", "allow"];

/// An answer: its status, the headers that matter and its document; of a task, how it stands.
pub(super) fn response_text(answer: &TestResponse) -> String {
    let headers = COMPARED_HEADERS.iter().filter_map(|name| Some((name, answer.header(name)?)));
    let headers: String = headers.map(|(name, value)| format!("{name}: {value}\n")).collect();
    let document = answer.json();
    let pointers = ["/result/task/status", "/result/status", "/task/status", "/status"];
    let status = pointers.iter().find_map(|pointer| document.pointer(pointer));
    let status = status.filter(|status| status.get("state").is_some());
    format!("HTTP {}\n{headers}{}", answer.status, pretty_json(status.unwrap_or(&document)))
}

/// A document on many lines, its members in the order of the alphabet.
pub(super) fn pretty_json(document: &Value) -> String {
    serde_json::to_string_pretty(document).unwrap()
}
