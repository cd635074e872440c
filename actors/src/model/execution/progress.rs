//! Progress of an execution, as published to its waiters.

use std::fmt;
use std::sync::Arc;

use super::event::TextChannel;
use super::followers::Followers;
use super::{AttemptId, ExecutionState, Outcome};
use crate::model::agent::queue::Queued;
use crate::model::agent::quota::Deferral;

/// Raw text of an answer, with all secrets. The text stays in memory only, while a reference exists, and is for the
/// owner of the execution alone.
#[derive(Clone, PartialEq, Eq)]
pub struct RawAnswer {
    /// Attempt that produced the text.
    pub attempt_id: AttemptId,
    /// Text, as far as the output limits keep it.
    pub text: Arc<str>,
}

impl fmt::Debug for RawAnswer {
    /// Omits the text.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RawAnswer").field("attempt_id", &self.attempt_id).finish_non_exhaustive()
    }
}

/// Growing text that becomes the answer of an attempt if the attempt succeeds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PartialAnswerLocation {
    /// Attempt that produces the text.
    pub attempt_id: AttemptId,
    /// Channel of the text.
    pub channel: TextChannel,
    /// First byte of the answer in that text. A later message superseded the text before this byte.
    pub start_offset: u64,
}

/// Progress of an execution, as published to its waiters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    /// State of the execution.
    pub state: ExecutionState,
    /// True if the agent has requested input and the ledger has not yet recorded the request.
    pub has_unrecorded_input_request: bool,
    /// True if the work cannot continue until the ledger has recorded its last step.
    pub awaits_ledger: bool,
    /// Number of open interactions that the ledger has recorded: the work waits for answers.
    pub open_interaction_count: u32,
    /// Position in the queue and its reason, while the execution waits to start.
    pub queue_position: Option<Queued>,
    /// Deferral of the execution; set once the ledger has recorded it, when the actor of the execution ends.
    pub deferral: Option<Deferral>,
    /// True if the work is suspended until the next start of the service, and the actor of the execution ends.
    pub is_suspended: bool,
    /// Outcome; set once the ledger has recorded it.
    pub outcome: Option<Outcome>,
    /// Counter that grows with every record of the execution in the ledger.
    pub revision: u64,
    /// Raw text of the answer, if the owner may receive it.
    pub raw_answer: Option<RawAnswer>,
    /// Growing answer of the present attempt, if it can be shown.
    pub partial_answer: Option<PartialAnswerLocation>,
    /// Followers of the execution.
    pub followers: Followers,
}

impl Progress {
    /// Returns the progress of an accepted execution that has not started.
    #[must_use]
    pub fn for_new_execution() -> Self {
        Self {
            state: ExecutionState::Idle,
            has_unrecorded_input_request: false,
            awaits_ledger: false,
            open_interaction_count: 0,
            queue_position: None,
            deferral: None,
            is_suspended: false,
            outcome: None,
            revision: 0,
            raw_answer: None,
            partial_answer: None,
            followers: Followers::default(),
        }
    }

    /// Returns true if the work has ended, or has stopped for a question or a step, and the ledger has not yet recorded
    /// it.
    #[must_use]
    pub const fn has_unrecorded_stop(&self) -> bool {
        match self.state {
            ExecutionState::Cleanup => self.outcome.is_none(),
            ExecutionState::Waiting => false,
            _ => self.has_unrecorded_input_request || self.awaits_ledger,
        }
    }

    /// Returns true if no other actor follows in this process: the execution has ended or is suspended.
    #[must_use]
    pub const fn needs_no_actor(&self) -> bool {
        self.outcome.is_some() || self.is_suspended
    }

    /// Sets the queue position, or clears it. Returns true if the position changed.
    pub fn set_queue_position(&mut self, queued: Option<Queued>) -> bool {
        let has_changed = self.queue_position != queued;
        self.queue_position = queued;
        has_changed
    }

    /// Moves the start of the partial answer to this byte of a channel. Returns true if this is a change for followers.
    pub fn set_answer_start(&mut self, channel: TextChannel, from: u64) -> bool {
        let partial_answer =
            self.partial_answer.as_mut().filter(|partial_answer| partial_answer.channel == channel);
        partial_answer.is_some_and(|partial_answer| {
            std::mem::replace(&mut partial_answer.start_offset, from) != from
        })
    }

    /// Counts a new record in the ledger.
    pub const fn advance_revision(&mut self) {
        self.revision += 1;
    }
}
