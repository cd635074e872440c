//! Interactions on the wire: the published pause of a task, and the answers that a message can contain.
//!
//! A2A has no standard for questions about tool calls. Callers therefore find each pause in three forms, and may answer
//! in any of them: metadata under [`INTERACTIONS_EXTENSION`], metadata under [`HUMAN_IN_THE_LOOP_EXTENSION`], and the
//! data parts of the Agent Development Kit.

mod decision;
mod kagent;
mod message_replies;
mod pause;
mod reply;
mod resolve;
mod service_extension;
#[cfg(test)]
mod tests;

pub use self::message_replies::read_replies;
pub use self::pause::{PauseMessage, pause_message};
pub use self::reply::{InteractionReply, Replies, ReplyContent, ReplyFault};
pub use self::resolve::{ResolvedReply, resolve_replies};

/// Extension of this service for open interactions and answers to them.
pub const INTERACTIONS_EXTENSION: &str = "https://algonius.dev/a2a/ext/interactions/v1";

/// Extension of kagent for approvals of tool calls and questions to people.
pub const HUMAN_IN_THE_LOOP_EXTENSION: &str = "https://kagent.dev/extensions/hitl/v1";

/// Name of the function call with which the Agent Development Kit requests a confirmation.
const CONFIRMATION_FUNCTION: &str = "adk_request_confirmation";
