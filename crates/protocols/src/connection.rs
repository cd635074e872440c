//! Connection with one process, independent of the protocol.

use serde_json::Value;

use crate::acp::AcpConnection;
use crate::app_server::AppServerConnection;
use crate::claude_control::ControlConnection;
use crate::json_line::{LineItem, UnreadableText, has_type, may_have_type, read_json_line};
use crate::lines::{LineBuffer, ReceivedLine};
use crate::model::command::{ClientInfo, Command, ProtocolKind};
use crate::model::step::{OpenFault, ProtocolStep, TurnOutcome};
use crate::protocol::Protocol;
use crate::rpc::{is_rpc_message, may_be_rpc_message};

/// Types of the messages of claude-control whose loss changes a turn.
const TURN_MESSAGE_TYPES: [&str; 5] =
    ["assistant", "result", "control_request", "control_response", "control_cancel_request"];

/// Greatest length of a received line in bytes, unless [`Connection::with_max_line_bytes`] changes it.
pub const DEFAULT_MAX_LINE_BYTES: usize = 16 * 1024 * 1024;

/// Connection with one process of an agent, which can hold several sessions.
#[derive(Debug)]
pub struct Connection {
    received_lines: LineBuffer,
    /// Sent lines of a replay have no limit: the connection wrote them itself.
    replayed_lines: LineBuffer,
    state_machine: ProtocolStateMachine,
    has_replayed_prompt: bool,
    has_replayed_cancel: bool,
    has_ended: bool,
}

/// State machine of a protocol.
#[derive(Debug)]
enum ProtocolStateMachine {
    Acp(Box<AcpConnection>),
    ClaudeControl(Box<ControlConnection>),
    CodexAppServer(Box<AppServerConnection>),
}

impl Connection {
    /// Creates a connection with a process that has received nothing.
    #[must_use]
    pub fn new(kind: ProtocolKind, client_info: ClientInfo) -> Self {
        let state_machine = match kind {
            ProtocolKind::Acp => {
                ProtocolStateMachine::Acp(Box::new(AcpConnection::new(client_info)))
            }
            ProtocolKind::ClaudeControl => ProtocolStateMachine::ClaudeControl(Box::default()),
            ProtocolKind::CodexAppServer => ProtocolStateMachine::CodexAppServer(Box::new(
                AppServerConnection::new(client_info),
            )),
        };
        Self {
            received_lines: LineBuffer::new(DEFAULT_MAX_LINE_BYTES),
            replayed_lines: LineBuffer::new(usize::MAX),
            state_machine,
            has_replayed_prompt: false,
            has_replayed_cancel: false,
            has_ended: false,
        }
    }

    /// Changes the greatest length of a received line. A longer line is skipped and reported as
    /// [`ProtocolStep::MessageLost`].
    #[must_use]
    pub fn with_max_line_bytes(mut self, bytes: usize) -> Self {
        self.received_lines = LineBuffer::new(bytes);
        self
    }

    /// Handles output of the process, cut into pieces of any size.
    pub fn handle_output(&mut self, bytes: &[u8]) -> Vec<ProtocolStep> {
        if self.has_ended {
            return Vec::new();
        }
        let mut steps = Vec::new();
        for line in self.received_lines.push(bytes) {
            match line {
                ReceivedLine::Complete(line) => steps.extend(self.handle_line(&line)),
                ReceivedLine::TooLong { max_bytes } => {
                    let reason = format!("is longer than {max_bytes} bytes");
                    steps.push(ProtocolStep::MessageLost { reason, text: String::new() });
                }
            }
        }
        steps
    }

    /// Handles a command.
    pub fn handle_command(&mut self, command: Command) -> Vec<ProtocolStep> {
        if self.has_ended {
            refusal_steps(command)
        } else {
            self.protocol().handle_command(command)
        }
    }

    /// Records lines that were written to the process before a crash of the caller, in pieces of any size. An
    /// incomplete last line is ignored. Must precede [`Self::handle_output`] and [`Self::handle_command`]; see the
    /// documentation of the crate.
    pub fn replay_sent_lines(&mut self, bytes: &[u8]) {
        for line in self.replayed_lines.push(bytes) {
            if let ReceivedLine::Complete(line) = line {
                self.has_replayed_prompt |= is_prompt(&line);
                self.has_replayed_cancel |= is_cancel(&line);
                self.protocol().replay_sent_line(&line);
            }
        }
    }

    /// Returns whether a prompt is among the replayed lines, so that the caller does not send its message again.
    #[must_use]
    pub const fn has_replayed_prompt(&self) -> bool {
        self.has_replayed_prompt
    }

    /// Returns whether a cancellation is among the replayed lines, so that the caller does not cancel its turn again.
    #[must_use]
    pub const fn has_replayed_cancel(&self) -> bool {
        self.has_replayed_cancel
    }

    /// Handles the end of the output. A last line without a line feed is handled; then open turns end with
    /// [`crate::TurnOutcome::Lost`], and openings fail. Later output is ignored and later commands fail.
    pub fn handle_end_of_output(&mut self) -> Vec<ProtocolStep> {
        if self.has_ended {
            return Vec::new();
        }
        let last_line = self.received_lines.take_last_line();
        let mut steps = last_line.map_or_else(Vec::new, |line| self.handle_line(&line));
        steps.retain(|step| !matches!(step, ProtocolStep::Send(_)));
        steps.extend(self.protocol().handle_end_of_output());
        self.has_ended = true;
        steps
    }

    fn handle_line(&mut self, line: &[u8]) -> Vec<ProtocolStep> {
        let handle_item = |item| match item {
            LineItem::Object(message) => self.protocol().receive(message),
            LineItem::UnreadableText(unread) => vec![self.unreadable_text_step(unread)],
        };
        read_json_line(line).into_iter().flat_map(handle_item).collect()
    }

    /// Returns the step for text of the agent that is no message.
    fn unreadable_text_step(&self, unreadable_text: UnreadableText) -> ProtocolStep {
        let may_be_message = match self.state_machine {
            ProtocolStateMachine::ClaudeControl(_) => {
                let is_message = |object: &Value| has_type(object, &TURN_MESSAGE_TYPES);
                unreadable_text
                    .may_be_message(is_message, |text| may_have_type(text, &TURN_MESSAGE_TYPES))
            }
            ProtocolStateMachine::Acp(_) | ProtocolStateMachine::CodexAppServer(_) => {
                unreadable_text.may_be_message(is_rpc_message, may_be_rpc_message)
            }
        };
        let UnreadableText { reason, text } = unreadable_text;
        if may_be_message {
            return ProtocolStep::MessageLost { reason: reason.to_owned(), text };
        }
        ProtocolStep::protocol_error(format!("a line {reason}"))
    }

    fn protocol(&mut self) -> &mut dyn Protocol {
        match &mut self.state_machine {
            ProtocolStateMachine::Acp(machine) => machine.as_mut(),
            ProtocolStateMachine::ClaudeControl(machine) => machine.as_mut(),
            ProtocolStateMachine::CodexAppServer(machine) => machine.as_mut(),
        }
    }
}

/// Returns whether a sent line is a prompt of one of the protocols, whose requests have distinct names.
fn is_prompt(line: &[u8]) -> bool {
    let message: Value = serde_json::from_slice(line).unwrap_or_default();
    let string_field = |name: &str| message.get(name).and_then(Value::as_str);
    matches!(string_field("method"), Some("session/prompt" | "turn/start"))
        || string_field("type") == Some("user")
}

/// Returns whether a sent line cancels a turn in one of the protocols, whose requests have distinct names.
fn is_cancel(line: &[u8]) -> bool {
    let message: Value = serde_json::from_slice(line).unwrap_or_default();
    let string_at = |path: &str| message.pointer(path).and_then(Value::as_str);
    matches!(string_at("/method"), Some("session/cancel" | "turn/interrupt"))
        || string_at("/request/subtype") == Some("interrupt")
}

/// Returns the steps of a command for a process that has ended.
fn refusal_steps(command: Command) -> Vec<ProtocolStep> {
    let message = "the process has ended".to_owned();
    match command {
        Command::Open { session, .. } => {
            vec![ProtocolStep::OpenFailed { session, fault: OpenFault::Other, message }]
        }
        Command::Prompt { session, .. } => {
            vec![ProtocolStep::TurnEnded { session, outcome: TurnOutcome::Lost, usage: None }]
        }
        Command::Close { session } => vec![ProtocolStep::SessionClosed { session }],
        Command::Initialize => {
            vec![ProtocolStep::InitializeFailed { fault: OpenFault::Other, message }]
        }
        Command::Answer { .. }
        | Command::Cancel { .. }
        | Command::SetMode { .. }
        | Command::SetModel { .. } => Vec::new(),
    }
}
