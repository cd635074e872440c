//! Interface of the supervision tree for the rest of the service: one handle for each capability.

mod approvals;
mod schedules;
pub mod supervision_tree;
mod tree;

pub use self::schedules::{STATISTICS_DAYS, ScheduleAdmin};
pub use self::tree::TreeView;
pub(crate) use self::tree::{STATUS_TIMEOUT, call};
pub use crate::gateway::reader::{Reader, RunTree, TreeHop};
pub use crate::gateway::requests::{Requests, SubmitReply};
pub use crate::gateway::requests_slot::RequestsSlot;
pub use crate::gateway::subscription::{Subscription, SubscriptionItem};
pub use approvals::{AnswerReply, Approvals, CallerAnswer};

/// Handles of a started supervision tree. Clones are cheap.
#[derive(Clone)]
pub struct Api {
    /// Submits, cancels, retries and removes executions, and waits for their ends.
    pub requests: Requests,
    /// Reads executions.
    pub reader: Reader,
    /// Reads and answers the questions of agents.
    pub approvals: Approvals,
    /// Reads and changes schedules.
    pub schedules: ScheduleAdmin,
    /// Shows the state of the tree.
    pub tree: TreeView,
}
