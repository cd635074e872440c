//! Control protocols of interactive agents as pure state machines: bytes and commands in, steps out.
//!
//! A [`Connection`] speaks with one process of an agent. It has no clock and performs no input or output: the caller
//! passes the output of the process to [`Connection::handle_output`], passes its commands to
//! [`Connection::handle_command`], and performs the returned [`ProtocolStep`]s, above all [`ProtocolStep::Send`].
//!
//! # Replay
//!
//! After a crash of the caller, a new connection restores the state. The caller passes all lines that were ever written
//! to the process to [`Connection::replay_sent_lines`], and then all output of the process to
//! [`Connection::handle_output`]. The second part returns the steps of the first run in their order, with these
//! exceptions:
//!
//! - Lines that were already sent are not sent again. A line that the connection owes and that is not among the sent
//!   lines (the process crashed before it was written) is returned as [`ProtocolStep::Send`] and must be written.
//! - A request that was already answered is returned as [`ProtocolStep::RequestAnswered`] instead of
//!   [`ProtocolStep::Request`], and a [`ProtocolStep::RequestWithdrawn`] of such a request is not repeated.
//! - Steps that a command returned directly (such as [`ProtocolStep::OpenFailed`] for a key in use) are not repeated:
//!   the commands are not replayed.
//!
//! The order between sent and received lines is unknown. The connection therefore matches responses by their ids, and
//! no step depends on the time of a command. Keys of sessions are assigned in the order of the open requests: 0, 1, 2.
//!
//! The settings of an opening (mode, model, options) are sent after the response that opens the session, so a crash can
//! precede them. Between `replay_sent_lines` and `handle_output`, the caller therefore repeats [`Command::Open`] for
//! each session that it regards as open or opening: the connection takes the settings from it, sends those that are
//! missing, and sends no line again. Without that command, the settings that were sent before the first prompt count as
//! all settings of the opening, and the caller must compare the `mode` of [`ProtocolStep::SessionOpened`] with the
//! wanted one.

mod acp;
mod agent_error;
mod agent_requests;
mod app_server;
mod claude_control;
mod connection;
mod json_line;
mod lines;
mod model;
mod protocol;
mod rpc;
mod subject;
mod turns;

pub use connection::{Connection, DEFAULT_MAX_LINE_BYTES};
pub use json_line::{
    LineItem, UnreadableText, has_too_many_values, has_type, may_have_type, read_json_line,
};
pub use model::answer_attachment::{AnswerAttachment, ContentValue};
pub use model::command::{
    ClientInfo, Command, FormAction, PromptPart, ProtocolKind, RequestAnswer, ResourceBody,
    SessionStart,
};
pub use model::ids::{RequestId, SessionKey};
pub use model::step::{
    AgentCapability, AgentInfo, AgentRequest, AgentRequestKind, AnsweredCall, OpenFault,
    PermissionOption, PermissionOptionKind, PlanEntry, ProtocolStep, TextRole, TokenUsage,
    TurnOutcome, UsageCost,
};
pub use model::tool_call::{FileDiff, ToolCall, ToolKind, ToolStatus};
pub use rpc::{is_rpc_message, may_be_rpc_message};
