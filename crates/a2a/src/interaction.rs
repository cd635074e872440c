//! Interactions on the wire: the published pause of a task, and the answers that a message can contain.
//!
//! A2A has no standard for questions about tool calls. Callers therefore find each pause in three forms, and may answer
//! in any of them: metadata under [`INTERACTIONS`], metadata under [`HUMAN_IN_THE_LOOP`], and the data parts of the
//! Agent Development Kit.

mod decision;
mod kagent;
mod message;
mod own;
mod pause;
mod reply;
mod resolve;
#[cfg(test)]
mod tests;

pub use self::message::replies;
pub use self::pause::{Pause, pause};
pub use self::reply::{InteractionReply, Replies, ReplyAnswer, ReplyFault};
pub use self::resolve::{ResolvedReply, resolve};

/// Extension of this service for open interactions and answers to them.
pub const INTERACTIONS: &str = "https://algonius.dev/a2a/ext/interactions/v1";

/// Extension of kagent for approvals of tool calls and questions to people.
pub const HUMAN_IN_THE_LOOP: &str = "https://kagent.dev/extensions/hitl/v1";

/// Name of the function call with which the Agent Development Kit requests a confirmation.
const CONFIRMATION: &str = "adk_request_confirmation";
