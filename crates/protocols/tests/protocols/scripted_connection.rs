//! Short scripts for ACP: a connection with an open session, and messages of an agent.

use algonius_protocols::{
    Command, Connection, PromptPart, ProtocolKind, ProtocolStep, RequestAnswer, RequestId,
    SessionKey, SessionStart,
};
use serde_json::{Value, json};

use crate::step_text::step_text;
use crate::timeline::new_connection;

/// Key of the only session.
pub(crate) const SESSION_KEY: SessionKey = SessionKey(0);

/// Connection with the lines that it sent and the other steps in short form.
pub(crate) struct ScriptedConnection {
    pub(crate) connection: Connection,
    pub(crate) sent_messages: Vec<Value>,
    pub(crate) written_bytes: Vec<u8>,
    pub(crate) received_bytes: Vec<u8>,
    pub(crate) step_texts: Vec<String>,
}

impl ScriptedConnection {
    /// Starts a connection whose agent has these capabilities.
    pub(crate) fn start(capabilities: &Value) -> Self {
        let mut script = Self {
            connection: new_connection(ProtocolKind::Acp),
            sent_messages: Vec::new(),
            written_bytes: Vec::new(),
            received_bytes: Vec::new(),
            step_texts: Vec::new(),
        };
        script.run_command(Command::Initialize);
        let result = json!({"protocolVersion": 1, "agentCapabilities": capabilities});
        script.receive_response(&result);
        script.clear_messages_and_steps();
        script
    }

    /// Opens session `s` in a mode, with the result and the response to the request that sets the mode.
    pub(crate) fn with_open_session(mode: Option<&str>) -> Self {
        let mut script = Self::start(&json!({"sessionCapabilities": {"close": {}}}));
        script.run_command(new_session_command(mode));
        script.receive_response(&json!({"sessionId": "s", "modes": {"currentModeId": "auto"}}));
        if mode.is_some() {
            script.receive_response(&json!({}));
        }
        script
    }

    /// Opens a session and starts a turn.
    pub(crate) fn with_running_turn() -> Self {
        let mut script = Self::with_open_session(None);
        script.prompt("go");
        script.clear_messages_and_steps();
        script
    }

    pub(crate) fn prompt(&mut self, text: &str) {
        let parts = vec![PromptPart::Text(text.to_owned())];
        self.run_command(Command::Prompt { session: SESSION_KEY, parts });
    }

    pub(crate) fn answer(&mut self, request: i64, answer: RequestAnswer) {
        let request = RequestId::Number(request);
        self.run_command(Command::Answer { session: SESSION_KEY, request_id: request, answer });
    }

    pub(crate) fn run_command(&mut self, command: Command) {
        let steps = self.connection.handle_command(command);
        self.record_steps(&steps);
    }

    /// Passes a message of the agent.
    pub(crate) fn receive_message(&mut self, message: &Value) {
        self.receive_bytes(format!("{message}\n").as_bytes());
    }

    pub(crate) fn receive_bytes(&mut self, bytes: &[u8]) {
        self.received_bytes.extend_from_slice(bytes);
        let steps = self.connection.handle_output(bytes);
        self.record_steps(&steps);
    }

    /// Passes the response to the latest request of the client.
    pub(crate) fn receive_response(&mut self, result: &Value) {
        let id = self.latest_request_id();
        self.receive_message(&json!({"jsonrpc": "2.0", "id": id, "result": result}));
    }

    pub(crate) fn receive_error_response(&mut self, code: i64, message: &str) {
        let error = json!({"code": code, "message": message});
        let id = self.latest_request_id();
        self.receive_message(&json!({"jsonrpc": "2.0", "id": id, "error": error}));
    }

    pub(crate) fn receive_update(&mut self, update: &Value) {
        self.receive_message(
            &json!({"method": "session/update", "params": {"sessionId": "s", "update": update}}),
        );
    }

    /// Passes a permission request with options of these ids and kinds.
    pub(crate) fn receive_permission_request(
        &mut self,
        id: i64,
        session: &str,
        options: &[(&str, &str)],
    ) {
        let options: Vec<_> = options
            .iter()
            .map(|(id, kind)| json!({"optionId": id, "name": "n", "kind": kind}))
            .collect();
        let call = json!({"toolCallId": "t", "kind": "execute", "rawInput": {"command": "ls"}});
        let params = json!({"sessionId": session, "toolCall": call, "options": options});
        self.receive_message(
            &json!({"id": id, "method": "session/request_permission", "params": params}),
        );
    }

    fn latest_request_id(&self) -> Value {
        let written = String::from_utf8(self.written_bytes.clone()).unwrap();
        let lines = written.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let requests =
            lines.filter(|line| line.get("method").is_some() && line.get("id").is_some());
        requests.map(|request| request["id"].clone()).next_back().unwrap()
    }

    pub(crate) fn record_steps(&mut self, steps: &[ProtocolStep]) {
        for step in steps {
            if let ProtocolStep::Send(line) = step {
                self.written_bytes.extend_from_slice(line);
                self.sent_messages.push(serde_json::from_slice(line).unwrap());
            }
        }
        self.step_texts.extend(steps.iter().filter_map(step_text));
    }

    pub(crate) fn clear_messages_and_steps(&mut self) {
        self.sent_messages.clear();
        self.step_texts.clear();
    }

    /// Returns the latest sent message without its constant members.
    pub(crate) fn last_sent_message(&self) -> Value {
        let mut message = self.sent_messages.last().cloned().unwrap_or_default();
        if let Some(fields) = message.as_object_mut() {
            fields.remove("jsonrpc");
        }
        message
    }

    pub(crate) fn last_step_text(&self) -> &str {
        self.step_texts.last().map_or("", String::as_str)
    }
}

pub(crate) fn new_session_command(mode: Option<&str>) -> Command {
    open_command(SessionStart::New, mode)
}

pub(crate) fn open_command(start: SessionStart, mode: Option<&str>) -> Command {
    let mode = mode.map(str::to_owned);
    let cwd = "/srv/project".to_owned();
    Command::Open { session: SESSION_KEY, start, cwd, mode, model: None, options: Vec::new() }
}
