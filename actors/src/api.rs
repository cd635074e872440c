//! Interface of the supervision tree for the rest of the service: one handle for each capability.

mod approvals;
mod schedules;
pub mod supervision_tree;
mod tree_inspector;

pub use self::schedules::{STATISTICS_DAYS, ScheduleAdmin};
pub use self::tree_inspector::TreeInspector;
pub(crate) use self::tree_inspector::{STATUS_TIMEOUT, call_with_timeout};
pub use crate::gateway::reader::{ExecutionReader, RunTree, TreeHop};
pub use crate::gateway::request_handle_cell::RequestHandleCell;
pub use crate::gateway::requests::{RequestHandle, SubmitReply};
pub use crate::gateway::subscription::{Subscription, SubscriptionItem};
pub use approvals::{AnswerReply, CallerAnswer, InteractionHandle};

/// Handles of a started supervision tree. Clones are cheap.
#[derive(Clone)]
pub struct Api {
    /// Submits, cancels, retries and removes executions, and waits for their ends.
    pub requests: RequestHandle,
    /// Reads executions.
    pub reader: ExecutionReader,
    /// Reads and answers the questions of agents.
    pub interactions: InteractionHandle,
    /// Reads and changes schedules.
    pub schedules: ScheduleAdmin,
    /// Shows the state of the tree.
    pub tree: TreeInspector,
}
