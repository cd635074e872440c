//! Commands that the caller gives to a connection.

use serde_json::Value;

use super::ids::{RequestId, SessionKey};

/// Control protocol of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ProtocolKind {
    /// Agent Client Protocol, version 1: JSON-RPC over lines, several sessions per process.
    Acp,
    /// Stream of JSON messages with control requests, as Claude Code speaks it: one session per process.
    ClaudeControl,
    /// JSON-RPC of `codex app-server`, without a `jsonrpc` member: several sessions per process.
    CodexAppServer,
}

/// Name and version of the caller, as `initialize` reports them to the agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ClientInfo {
    /// Name of the program.
    pub name: String,
    /// Version of the program.
    pub version: String,
}

/// Command of the caller.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Starts the protocol. Must be the first command of a connection.
    Initialize,
    /// Opens a session. The result is [`crate::ProtocolStep::SessionOpened`] or [`crate::ProtocolStep::OpenFailed`].
    Open {
        /// Key of the new session. A key that is in use fails the opening.
        session: SessionKey,
        /// New conversation, or one that the agent continues.
        start: SessionStart,
        /// Working folder of the session.
        cwd: String,
        /// Mode of the session. If the agent does not confirm the mode, the opening fails.
        mode: Option<String>,
        /// Model of the session.
        model: Option<String>,
        /// Options of the agent, as pairs of id and value. ACP sets them in this order after mode and model.
        /// `codex app-server` takes them as fields of the open request. claude-control has none.
        options: Vec<(String, String)>,
    },
    /// Starts a turn. Exactly one [`crate::ProtocolStep::TurnEnded`] follows, unless a turn is in progress already.
    Prompt {
        /// Session of the turn.
        session: SessionKey,
        /// Content of the prompt.
        parts: Vec<PromptPart>,
    },
    /// Answers a request of the agent. A second answer to one request is ignored.
    Answer {
        /// Session of the request.
        session: SessionKey,
        /// Id of the request, from [`crate::AgentRequest`].
        request_id: RequestId,
        /// Answer to the request.
        answer: RequestAnswer,
    },
    /// Cancels the turn of a session, and answers all its open requests with `cancelled` at once.
    Cancel {
        /// Session of the turn.
        session: SessionKey,
    },
    /// Changes the mode of an open session.
    SetMode {
        /// Session to change.
        session: SessionKey,
        /// Id of the mode.
        mode: String,
    },
    /// Changes the model of an open session.
    SetModel {
        /// Session to change.
        session: SessionKey,
        /// Id of the model.
        model: String,
    },
    /// Closes a session. [`crate::ProtocolStep::SessionClosed`] follows, at once if the agent cannot close sessions.
    Close {
        /// Session to close.
        session: SessionKey,
    },
}

/// Way to open a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionStart {
    /// New conversation.
    New,
    /// Conversation that the agent has stored.
    Resume {
        /// Native id of the conversation, from [`crate::ProtocolStep::SessionOpened`].
        native_id: String,
    },
}

impl SessionStart {
    /// Returns the native id of the stored conversation; `None` for a new one.
    #[must_use]
    pub(crate) fn into_resumed_id(self) -> Option<String> {
        match self {
            Self::New => None,
            Self::Resume { native_id } => Some(native_id),
        }
    }
}

/// Part of a prompt. The caller sends only kinds that the agent accepts; see [`crate::AgentCapability`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PromptPart {
    /// Text.
    Text(String),
    /// Reference to a file or page.
    ResourceLink {
        /// Address of the resource.
        uri: String,
        /// Name of the resource.
        name: String,
        /// Media type.
        mime: Option<String>,
    },
    /// Embedded file.
    Resource {
        /// Address of the resource.
        uri: String,
        /// Media type.
        mime: Option<String>,
        /// Content of the file.
        body: ResourceBody,
    },
    /// Image.
    Image {
        /// Media type.
        mime: String,
        /// Bytes in base64.
        base64: String,
    },
    /// Recorded sound.
    Audio {
        /// Media type.
        mime: String,
        /// Bytes in base64.
        base64: String,
    },
}

/// Content of an embedded file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ResourceBody {
    /// Text.
    Text(String),
    /// Bytes in base64.
    Base64(String),
}

/// Answer to a request of the agent.
#[derive(Debug, Clone, PartialEq)]
pub enum RequestAnswer {
    /// Allows one tool call, once. If the agent offers no option of that kind, the call is denied.
    Allow,
    /// Denies the tool call, or declines the form.
    Deny {
        /// Reason for the agent. Protocols without a field for it drop it.
        message: Option<String>,
    },
    /// Cancels the request.
    Cancel,
    /// Answers a form. Invalid for a permission request, which then stays open.
    Form {
        /// Values, or their refusal.
        action: FormAction,
    },
}

/// Answer to a form.
#[derive(Debug, Clone, PartialEq)]
pub enum FormAction {
    /// Values of the fields, as a JSON object.
    Accept(Value),
    /// Refusal.
    Decline,
    /// Dismissal without an answer.
    Cancel,
}
