//! Recorded transcripts as timelines: the commands that make the adapter act as the recorded client did.

use std::collections::HashMap;
use std::path::PathBuf;

use algonius_protocols::{
    Command, FormAction, PromptPart, ProtocolKind, RequestAnswer, RequestId, SessionKey,
    SessionStart,
};
use serde_json::{Value, json};

use crate::timeline::TimelineEvent;

/// Message of a transcript; `is_from_client` if the client sent it.
pub(crate) struct TranscriptMessage {
    pub(crate) is_from_client: bool,
    pub(crate) value: Value,
}

pub(crate) fn transcript_folder(kind: ProtocolKind) -> PathBuf {
    let name = match kind {
        ProtocolKind::Acp => "acp",
        ProtocolKind::ClaudeControl => "claude-control",
        ProtocolKind::CodexAppServer => "codex-app-server",
    };
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/transcripts").join(name)
}

pub(crate) fn read_transcript(kind: ProtocolKind, name: &str) -> Vec<TranscriptMessage> {
    let text =
        std::fs::read_to_string(transcript_folder(kind).join(format!("{name}.jsonl"))).unwrap();
    let message = |line: &str| {
        let line: Value = serde_json::from_str(line).unwrap();
        TranscriptMessage { is_from_client: line["dir"] == "->", value: line["msg"].clone() }
    };
    text.lines().map(message).collect()
}

/// Translation of the messages of one transcript.
struct TimelineBuilder<'m> {
    messages: &'m [TranscriptMessage],
    opened_session_count: u32,
    keys_by_native_id: HashMap<String, SessionKey>,
    /// Requests of the agent by id.
    agent_requests: HashMap<String, &'m Value>,
    /// Sessions whose turn the client cancelled: it answers their requests without a command.
    is_turn_cancelled: bool,
}

/// Returns the timeline of a transcript.
pub(crate) fn transcript_events(messages: &[TranscriptMessage]) -> Vec<TimelineEvent> {
    let mut builder = TimelineBuilder {
        messages,
        opened_session_count: 0,
        keys_by_native_id: HashMap::new(),
        agent_requests: HashMap::new(),
        is_turn_cancelled: false,
    };
    let mut events = Vec::new();
    for (index, message) in messages.iter().enumerate() {
        if message.is_from_client && message.value.get("type").is_some() {
            events.extend(
                claude_control_commands(&message.value).into_iter().map(TimelineEvent::Client),
            );
        } else if message.is_from_client {
            events.extend(
                builder.translate_message(index, &message.value).map(TimelineEvent::Client),
            );
        } else {
            builder.record_agent_request(&message.value);
            events.push(TimelineEvent::Agent(format!("{}\n", message.value).into_bytes()));
        }
    }
    events
}

impl<'m> TimelineBuilder<'m> {
    fn record_agent_request(&mut self, message: &'m Value) {
        if message.get("method").is_some() {
            self.agent_requests.insert(message["id"].to_string(), message);
        }
    }

    fn translate_message(&mut self, index: usize, message: &Value) -> Option<Command> {
        let params = &message["params"];
        let string_field = |name: &str| params[name].as_str().map(str::to_owned);
        let native_id = string_field("sessionId").or_else(|| string_field("threadId"));
        match message["method"].as_str() {
            Some("initialize") => Some(Command::Initialize),
            Some("session/new" | "session/load" | "session/resume" | "thread/start") => {
                let session = SessionKey(self.opened_session_count);
                self.opened_session_count += 1;
                let id = native_id.unwrap_or_else(|| self.opened_session_id(message));
                self.keys_by_native_id.insert(id.clone(), session);
                let is_new = string_field("sessionId").is_none();
                let start =
                    if is_new { SessionStart::New } else { SessionStart::Resume { native_id: id } };
                let mode = string_field("sandbox").or_else(|| self.find_opening_mode(index));
                let cwd = string_field("cwd")?;
                Some(Command::Open { session, start, cwd, mode, model: None, options: Vec::new() })
            }
            Some("session/set_mode") => {
                let is_before_first_prompt = !self
                    .messages
                    .iter()
                    .take(index)
                    .any(|it| it.value["method"] == "session/prompt");
                let session = *self.keys_by_native_id.get(&native_id?)?;
                (!is_before_first_prompt)
                    .then_some(Command::SetMode { session, mode: string_field("modeId")? })
            }
            Some("session/prompt" | "turn/start") => {
                self.is_turn_cancelled = false;
                let blocks = params.get("prompt").or_else(|| params.get("input"))?;
                let parts = blocks.as_array()?.iter();
                let parts =
                    parts.map(|it| PromptPart::Text(it["text"].as_str().unwrap().to_owned()));
                let session = *self.keys_by_native_id.get(&native_id?)?;
                Some(Command::Prompt { session, parts: parts.collect() })
            }
            Some("session/cancel" | "turn/interrupt") => {
                self.is_turn_cancelled = true;
                Some(Command::Cancel { session: *self.keys_by_native_id.get(&native_id?)? })
            }
            Some("session/close") => {
                Some(Command::Close { session: *self.keys_by_native_id.get(&native_id?)? })
            }
            Some("initialized") => None,
            Some(other) => panic!("{other} is not translated"),
            None => self.to_answer_command(message),
        }
    }

    /// Returns the id in the response to a request that opens a session.
    fn opened_session_id(&self, request: &Value) -> String {
        let is_response = |it: &&TranscriptMessage| {
            !it.is_from_client
                && it.value["id"] == request["id"]
                && it.value.get("method").is_none()
        };
        let result = &self.messages.iter().find(is_response).unwrap().value["result"];
        let id = result["sessionId"].as_str().or(result["thread"]["id"].as_str());
        id.unwrap().to_owned()
    }

    /// Returns the mode that the client sets before its first prompt.
    fn find_opening_mode(&self, index: usize) -> Option<String> {
        let mut client_messages = self.messages.iter().skip(index).filter(|it| it.is_from_client);
        let next_message = client_messages.find(|it| {
            it.value["method"] != "session/new" && it.value["method"] != "session/resume"
        })?;
        let mode = &next_message.value["params"]["modeId"];
        mode.as_str()
            .filter(|_| next_message.value["method"] == "session/set_mode")
            .map(str::to_owned)
    }

    fn to_answer_command(&self, message: &Value) -> Option<Command> {
        let request = self.agent_requests.get(&message["id"].to_string())?;
        let params = &request["params"];
        let native_id = params["sessionId"].as_str().or(params["threadId"].as_str())?;
        let answer = match request["method"].as_str()? {
            "elicitation/create" => RequestAnswer::Form { action: FormAction::Decline },
            "session/request_permission" => {
                let outcome = &message["result"]["outcome"];
                let options = params["options"].as_array()?;
                let option = options.iter().find(|it| it["optionId"] == outcome["optionId"]);
                match option.map(|option| option["kind"].as_str().unwrap()) {
                    Some("allow_once") => RequestAnswer::Allow,
                    Some("reject_once") => RequestAnswer::Deny { message: None },
                    Some(other) => panic!("{other} was selected"),
                    None if self.is_turn_cancelled => return None,
                    None => RequestAnswer::Cancel,
                }
            }
            "item/commandExecution/requestApproval" => {
                match message["result"]["decision"].as_str()? {
                    "accept" => RequestAnswer::Allow,
                    _ => RequestAnswer::Deny { message: None },
                }
            }
            _ => return None,
        };
        let request_id = match message["id"].as_i64() {
            Some(number) => RequestId::Number(number),
            None => RequestId::Text(message["id"].as_str()?.to_owned()),
        };
        Some(Command::Answer {
            session: *self.keys_by_native_id.get(native_id)?,
            request_id,
            answer,
        })
    }
}

/// Returns the commands of a line of claude-control. The session has no line of its own.
fn claude_control_commands(message: &Value) -> Vec<Command> {
    let session = SessionKey(0);
    let string_at = |path: &str| message.pointer(path).and_then(Value::as_str).map(str::to_owned);
    match string_at("/type").unwrap().as_str() {
        "control_request" => {
            let (start, cwd, options) = (SessionStart::New, String::new(), Vec::new());
            let open = Command::Open { session, start, cwd, mode: None, model: None, options };
            vec![Command::Initialize, open]
        }
        "user" => {
            let parts = vec![PromptPart::Text(string_at("/message/content/0/text").unwrap())];
            vec![Command::Prompt { session, parts }]
        }
        _ => {
            let request_id = RequestId::Text(string_at("/response/request_id").unwrap());
            let is_allowed = string_at("/response/response/behavior").as_deref() == Some("allow");
            let answer = if is_allowed {
                RequestAnswer::Allow
            } else {
                RequestAnswer::Deny { message: None }
            };
            vec![Command::Answer { session, request_id, answer }]
        }
    }
}

/// Returns the part of a client's message that must not differ between the recorded client and the adapter.
pub(crate) fn normalize_client_message(message: &Value) -> Value {
    let mut value = message.clone();
    match value["method"].as_str() {
        Some("initialize") => {
            value["params"] = json!(value["params"].get("protocolVersion"));
        }
        // The adapter prefers `resume`; the recorded client tried `load`.
        Some("session/load") => value["method"] = json!("session/resume"),
        _ => {}
    }
    if let Some(error) = value.get_mut("error") {
        *error = error["code"].clone();
    }
    value
}
