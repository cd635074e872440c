//! Steps that a connection returns.

use std::collections::BTreeSet;

use serde_json::Value;

use super::answer_attachment::AnswerAttachment;
use super::ids::{RequestId, SessionKey};
use super::tool_call::ToolCall;

/// Result of a command or of output of the agent, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum ProtocolStep {
    /// Complete line, with its line feed, to write to the standard input of the process.
    Send(Vec<u8>),
    /// Answer of the agent to `initialize`.
    Initialized(AgentInfo),
    /// Failure of `initialize`. Openings that wait for it fail too.
    InitializeFailed {
        /// Kind of the fault.
        fault: OpenFault,
        /// Text of the agent.
        message: String,
    },
    /// Session that is open with all its settings confirmed.
    SessionOpened {
        /// Session of the caller.
        session: SessionKey,
        /// Native id of the conversation.
        native_id: String,
        /// Ids of the modes that the agent offers.
        modes: Vec<String>,
        /// Current mode, confirmed by the agent if the caller wanted one.
        mode: Option<String>,
        /// Current model, if reported.
        model: Option<String>,
    },
    /// Native id of a conversation that was not known when the session opened, or that changed.
    SessionIdentified {
        /// Session of the caller.
        session: SessionKey,
        /// Native id of the conversation.
        native_id: String,
    },
    /// Session that was not opened. Its key is free again.
    OpenFailed {
        /// Session of the caller.
        session: SessionKey,
        /// Kind of the fault.
        fault: OpenFault,
        /// Text of the agent, or a description.
        message: String,
    },
    /// Session that is closed. Its key is free again.
    SessionClosed {
        /// Session of the caller.
        session: SessionKey,
    },
    /// Piece of text of the agent.
    Text {
        /// Session of the caller.
        session: SessionKey,
        /// Id of the message that the text belongs to. Another id begins another message.
        message_id: Option<String>,
        /// Purpose of the text.
        role: TextRole,
        /// Text to append.
        text: String,
    },
    /// Part of the answer that is no piece of its text, such as an image.
    Content {
        /// Session of the caller.
        session: SessionKey,
        /// The part.
        content: Box<AnswerAttachment>,
    },
    /// Tool call that began or changed, with all that is known about it.
    Tool {
        /// Session of the caller.
        session: SessionKey,
        /// State of the call.
        call: Box<ToolCall>,
        /// True if this is the first step of this call in its turn.
        is_new: bool,
    },
    /// Complete new plan of the agent.
    Plan {
        /// Session of the caller.
        session: SessionKey,
        /// Entries in their order.
        entries: Vec<PlanEntry>,
    },
    /// Usage during a turn.
    Usage {
        /// Session of the caller.
        session: SessionKey,
        /// Numbers as the agent counts them.
        usage: TokenUsage,
    },
    /// Mode that changed after the opening.
    ModeChanged {
        /// Session of the caller.
        session: SessionKey,
        /// Id of the new mode.
        mode: String,
    },
    /// Model that changed after the opening.
    ModelChanged {
        /// Session of the caller.
        session: SessionKey,
        /// Id of the new model.
        model: String,
    },
    /// Shortened history of the conversation.
    HistoryCompacted {
        /// Session of the caller.
        session: SessionKey,
    },
    /// Warning of the agent, or a setting that it refused.
    Warning {
        /// Session of the caller.
        session: SessionKey,
        /// Text of the warning.
        text: String,
    },
    /// Request of the agent. The turn waits until [`crate::Command::Answer`].
    Request {
        /// Session of the caller.
        session: SessionKey,
        /// Content of the request.
        request: Box<AgentRequest>,
    },
    /// Request that needs no answer: the answer is among the replayed lines, or the turn is being cancelled.
    RequestAnswered {
        /// Session of the caller.
        session: SessionKey,
        /// Id of the request.
        request_id: RequestId,
        /// Tool call of a permission request; `None` for other requests.
        call: Option<AnsweredCall>,
    },
    /// Request that is no longer open: the agent withdrew it, ended its turn, or used its id again.
    RequestWithdrawn {
        /// Session of the caller.
        session: SessionKey,
        /// Id of the request.
        request_id: RequestId,
    },
    /// End of a turn.
    TurnEnded {
        /// Session of the caller.
        session: SessionKey,
        /// Cause of the end.
        outcome: TurnOutcome,
        /// Usage of the turn, if reported.
        usage: Option<TokenUsage>,
    },
    /// Message of the agent that breaks the protocol, or a command that does not fit the state. The connection remains
    /// usable.
    ProtocolError {
        /// Description without content of the message.
        message: String,
    },
    /// Part of an answer that cannot be read. The turn continues, and cannot be completed.
    ContentLost {
        /// Clause that follows "the message".
        reason: String,
        /// Text as the agent wrote it.
        text: String,
    },
    /// Message of the agent that cannot be read. It may have been a part of an answer, or the response that the caller
    /// waits for, so the turn cannot be completed.
    MessageLost {
        /// Clause that follows "the line".
        reason: String,
        /// Text as the agent wrote it; empty if it was too long to be kept.
        text: String,
    },
}

impl ProtocolStep {
    /// Returns the step that reports a fault of the protocol.
    pub(crate) fn protocol_error(message: impl Into<String>) -> Self {
        Self::ProtocolError { message: message.into() }
    }
}

/// Name and capabilities of an agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentInfo {
    /// Name, empty if not reported.
    pub name: String,
    /// Version, empty if not reported.
    pub version: String,
    /// Capabilities that the agent declares.
    pub capabilities: BTreeSet<AgentCapability>,
}

impl AgentInfo {
    /// Returns whether the agent declares the capability.
    #[must_use]
    pub fn has_capability(&self, capability: AgentCapability) -> bool {
        self.capabilities.contains(&capability)
    }
}

/// Ability that an agent declares.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AgentCapability {
    /// Opens a stored conversation and repeats its history.
    Load,
    /// Opens a stored conversation without its history.
    Resume,
    /// Closes a session while the process continues.
    Close,
    /// Accepts [`crate::PromptPart::Resource`].
    EmbeddedContext,
    /// Accepts [`crate::PromptPart::Image`].
    Image,
    /// Accepts [`crate::PromptPart::Audio`].
    Audio,
}

/// Kind of fault of an opening.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenFault {
    /// The agent does not know the conversation.
    UnknownSession,
    /// The agent has no valid credentials.
    Authentication,
    /// The agent did not confirm the mode.
    ModeNotConfirmed {
        /// Mode of the request.
        requested: String,
    },
    /// Any other fault.
    Other,
}

/// Purpose of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TextRole {
    /// Answer to the prompt.
    Answer,
    /// Reasoning.
    Thought,
}

/// Entry of a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanEntry {
    /// Text of the entry.
    pub content: String,
    /// Priority in the words of the agent.
    pub priority: Option<String>,
    /// Status in the words of the agent: `pending`, `in_progress` or `completed`.
    pub status: String,
}

/// Numbers about usage. Agents differ in whether they count per turn or per session.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TokenUsage {
    /// Tokens of the input.
    pub input: Option<u64>,
    /// Tokens of the output.
    pub output: Option<u64>,
    /// Tokens of the input that a cache provided.
    pub cached: Option<u64>,
    /// Tokens of reasoning.
    pub reasoning: Option<u64>,
    /// Tokens in the context window.
    pub context: Option<u64>,
    /// Size of the context window in tokens.
    pub context_size: Option<u64>,
    /// Cost so far.
    pub cost: Option<UsageCost>,
}

impl TokenUsage {
    /// Returns the usage if it has a number.
    pub(crate) fn into_non_empty(self) -> Option<Self> {
        (self != Self::default()).then_some(self)
    }
}

/// Amount of money.
#[derive(Debug, Clone, PartialEq)]
pub struct UsageCost {
    /// Amount in units of the currency.
    pub amount: f64,
    /// Code of the currency, such as `USD`.
    pub currency: String,
}

/// Request of the agent.
#[derive(Debug, Clone, PartialEq)]
pub struct AgentRequest {
    /// Id of the request.
    pub id: RequestId,
    /// Content of the request.
    pub kind: AgentRequestKind,
}

/// Content of a request.
#[derive(Debug, Clone, PartialEq)]
pub enum AgentRequestKind {
    /// Permission for a tool call.
    Permission {
        /// Tool call to permit.
        call: ToolCall,
        /// Options of the agent, for display. The answer never selects one of kind `allow_always`.
        options: Vec<PermissionOption>,
    },
    /// Form to fill in.
    Form {
        /// Question to the user.
        message: String,
        /// JSON schema of the values.
        schema: Value,
        /// Tool call that needs the values.
        call_id: Option<String>,
    },
}

/// Tool call whose permission request has an answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnsweredCall {
    /// Id of the call within its session.
    pub id: String,
    /// True if the answer allows the call.
    pub is_allowed: bool,
}

impl AnsweredCall {
    /// Returns the call of a request with this answer; `None` if the request is not about a tool call.
    pub(crate) fn from_request_kind(kind: &AgentRequestKind, is_allowed: bool) -> Option<Self> {
        match kind {
            AgentRequestKind::Permission { call, .. } => {
                Some(Self { id: call.id.clone(), is_allowed })
            }
            AgentRequestKind::Form { .. } => None,
        }
    }
}

/// Option of a permission request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PermissionOption {
    /// Id of the option.
    pub id: String,
    /// Name for display.
    pub name: String,
    /// Effect of the option.
    pub kind: PermissionOptionKind,
}

/// Effect of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PermissionOptionKind {
    /// Allows this call.
    AllowOnce,
    /// Allows this call and later ones. Never selected.
    AllowAlways,
    /// Denies this call.
    RejectOnce,
    /// Denies this call and later ones. Never selected.
    RejectAlways,
    /// Unknown effect. Never selected.
    Unknown,
}

/// Cause of the end of a turn.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TurnOutcome {
    /// The agent finished its answer.
    EndTurn,
    /// The model reached its limit of tokens.
    MaxTokens,
    /// The agent reached its limit of requests to the model.
    MaxTurnRequests,
    /// The agent refused to answer.
    Refusal,
    /// The turn was cancelled, by the caller or by the agent.
    Cancelled,
    /// The agent reported an error.
    Failed {
        /// Code of the error; 0 if there is none.
        code: i64,
        /// Text of the error.
        message: String,
        /// True if the credentials of the agent are missing or invalid.
        is_authentication_error: bool,
    },
    /// The process ended or closed the session during the turn.
    Lost,
}
