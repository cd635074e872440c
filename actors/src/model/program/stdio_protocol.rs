//! Protocol between the service and a running program whose standard input stays open.

use std::collections::BTreeMap;
use std::time::Duration;

use regex::Regex;
use serde_json::{Map, Value};

/// Messages to a program, and the condition that ends its answer.
///
/// The texts in each `Value` are templates: an expanded value stays within its text.
#[derive(Debug, Clone, PartialEq)]
pub enum StdioProtocol {
    /// JSON-RPC 2.0 calls.
    Rpc(Box<RpcSpec>),
    /// Alternating messages and answers.
    Turns(Box<TurnSpec>),
    /// Protocol of an interactive agent, with sessions and questions.
    Interactive(Box<InteractiveSpec>),
}

impl StdioProtocol {
    /// Returns the settings of an interactive agent, if this is one.
    #[must_use]
    pub const fn interactive_spec(&self) -> Option<&InteractiveSpec> {
        match self {
            Self::Interactive(spec) => Some(spec),
            Self::Rpc(_) | Self::Turns(_) => None,
        }
    }

    /// Returns the templates that are filled in when a process starts, and in no later message.
    #[must_use]
    pub fn start_templates(&self) -> Vec<&str> {
        match self {
            Self::Rpc(spec) => {
                let calls = spec.initialize.iter().chain(&spec.initialized);
                calls.flat_map(|call| string_values(&call.params)).collect()
            }
            Self::Turns(_) | Self::Interactive(_) => Vec::new(),
        }
    }

    /// Returns the templates that are filled in for each message.
    #[must_use]
    pub fn message_templates(&self) -> Vec<&str> {
        match self {
            Self::Rpc(spec) => {
                let calls = [&spec.submit].into_iter().chain(&spec.cancel);
                calls.flat_map(|call| string_values(&call.params)).collect()
            }
            Self::Turns(spec) => {
                let messages = [&spec.message].into_iter().chain(&spec.interrupt);
                let template_texts = messages.map(|message| match message {
                    MessageTemplate::Text(text) => vec![text.as_str()],
                    MessageTemplate::Json(document) => string_values(document),
                });
                template_texts.flatten().collect()
            }
            Self::Interactive(_) => Vec::new(),
        }
    }
}

/// Returns all texts of a document, without the names of members.
fn string_values(document: &Value) -> Vec<&str> {
    match document {
        Value::String(text) => vec![text],
        Value::Array(items) => items.iter().flat_map(string_values).collect(),
        Value::Object(members) => members.values().flat_map(string_values).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => Vec::new(),
    }
}

/// Protocol of an interactive agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InteractiveProtocol {
    /// Agent Client Protocol, version 1.
    Acp,
    /// Control requests of Claude Code.
    ClaudeControl,
    /// JSON-RPC of `codex app-server`.
    CodexAppServer,
}

impl InteractiveProtocol {
    /// Every protocol.
    pub const ALL: &[Self] = &[Self::Acp, Self::ClaudeControl, Self::CodexAppServer];

    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Acp => "acp",
            Self::ClaudeControl => "claude-control",
            Self::CodexAppServer => "codex-app-server",
        }
    }
}

/// Settings of an interactive agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InteractiveSpec {
    /// Protocol of the agent.
    pub protocol: InteractiveProtocol,
    /// Mode that the service sets in each session, and that the agent must confirm.
    pub mode: Option<String>,
    /// Options that the service sets in each session, by their id.
    pub options: BTreeMap<String, String>,
}

/// Framing of JSON-RPC messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Framing {
    /// One message per line.
    #[default]
    Lines,
    /// A header with the length precedes each message, as in the Language Server Protocol.
    ContentLength,
}

/// Calls of a program that speaks JSON-RPC.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcSpec {
    /// Framing of the messages.
    pub framing: Framing,
    /// Call before all others.
    pub initialize: Option<RpcCall>,
    /// Notification after the answer to `initialize`.
    pub initialized: Option<RpcCall>,
    /// Call that submits the input.
    pub submit: RpcCall,
    /// Notification that cancels a call.
    pub cancel: Option<RpcCall>,
    /// Location of the answer in the result, as an RFC 6901 pointer.
    pub result_pointer: String,
    /// Location of the program's session id in a result.
    pub session_pointer: Option<String>,
    /// Location of the usage counters in the result.
    pub usage_pointer: Option<String>,
    /// Notifications that carry information, by method. Other notifications are ignored.
    pub notifications: BTreeMap<String, NotificationRule>,
    /// Error codes of transient failures.
    pub transient_codes: Vec<i64>,
}

/// JSON-RPC call or notification.
#[derive(Debug, Clone, PartialEq)]
pub struct RpcCall {
    /// Method name.
    pub method: String,
    /// Template of the parameters.
    pub params: Value,
}

/// Information that a notification carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotificationRule {
    /// Kind of the information.
    pub kind: NotificationKind,
    /// Location of the information in the parameters.
    pub pointer: String,
}

/// Kind of information in a notification.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotificationKind {
    /// Next piece of the answer.
    Text,
    /// Progress message.
    Status,
    /// Usage counters.
    Usage,
    /// Session id of the program.
    Session,
}

/// Turn protocol of a program that reads one message after the other.
#[derive(Debug, Clone, PartialEq)]
pub struct TurnSpec {
    /// Template of a message.
    pub message: MessageTemplate,
    /// Condition that ends an answer.
    pub end: TurnEnd,
    /// Message that makes the program abort an answer; without it, the service stops the program.
    pub interrupt: Option<MessageTemplate>,
    /// True if the program echoes each message before its answer, as line editors do.
    pub echoes_messages: bool,
}

/// Template of a message to a program.
#[derive(Debug, Clone, PartialEq)]
pub enum MessageTemplate {
    /// Text template.
    Text(String),
    /// Template of a JSON document, which is written on one line.
    Json(Value),
}

impl MessageTemplate {
    /// Template that writes the input on one line.
    pub const LINE_TEMPLATE: &str = "{{ input }}\n";

    /// Returns the default message template.
    #[must_use]
    pub fn default_template() -> Self {
        Self::Text(Self::LINE_TEMPLATE.to_owned())
    }

    /// Returns true if this is the default template, which writes the input on one line.
    #[must_use]
    pub fn is_default_template(&self) -> bool {
        matches!(self, Self::Text(text) if text == Self::LINE_TEMPLATE)
    }
}

/// Condition that ends an answer.
#[derive(Debug, Clone)]
pub enum TurnEnd {
    /// This line, which is not part of the answer.
    Line(String),
    /// A line that matches this pattern; the line is not part of the answer.
    Regex(Regex),
    /// A line that is a JSON object with at least these members. The line is also parsed like any other line.
    Json(Map<String, Value>),
    /// A prompt without a line end, after which the program waits. The prompt is not part of the answer.
    Prompt(ReadyPrompt),
}

/// Prompt with which a program shows that it is ready for the next command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadyPrompt {
    /// Text of the prompt, such as `calc> `.
    pub text: String,
    /// True if the program also prints the prompt before the first message, after its banner.
    pub is_printed_at_startup: bool,
}

impl TurnEnd {
    /// Returns the configuration key of this condition.
    #[must_use]
    pub const fn config_key(&self) -> &'static str {
        match self {
            Self::Line(_) => "end_line",
            Self::Regex(_) => "end_regex",
            Self::Json(_) => "end_json",
            Self::Prompt(_) => "prompt",
        }
    }
}

impl PartialEq for TurnEnd {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Line(one), Self::Line(other)) => one == other,
            (Self::Regex(one), Self::Regex(other)) => one.as_str() == other.as_str(),
            (Self::Json(one), Self::Json(other)) => one == other,
            (Self::Prompt(one), Self::Prompt(other)) => one == other,
            _ => false,
        }
    }
}

/// Pooling of programs between the messages of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolSettings {
    /// Time for which an idle program is pooled after its last answer.
    pub idle_timeout: Duration,
    /// Maximum number of pooled programs; the program that is idle for longest is stopped first.
    pub max_programs: usize,
}
