//! Published state of an execution: the progress for waiters and followers, and the status.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::sync::watch;

use super::attempt::CurrentAttempt;
use crate::model::agent::queue::Queued;
use crate::model::agent::quota::Deferral;
use crate::model::execution::event::TextChannel;
use crate::model::execution::progress::{PartialAnswerLocation, Progress};
use crate::model::execution::{AttemptId, ExecutionState, Outcome};
use crate::model::id::ExecutionId;
use crate::model::observation::status::{ExecutionStatus, Health};

/// State of an execution, as others see it.
pub(super) struct PublishedState {
    state: ExecutionState,
    /// Time of the latest state change.
    since: DateTime<Utc>,
    /// Deadline of the present state.
    deadline: Option<DateTime<Utc>>,
    progress: watch::Sender<Progress>,
}

impl PublishedState {
    /// Creates the part without a publication: the progress already shows the state.
    pub(super) const fn new(
        state: ExecutionState,
        since: DateTime<Utc>,
        progress: watch::Sender<Progress>,
    ) -> Self {
        Self { state, since, deadline: None, progress }
    }

    /// Returns the state.
    pub(super) const fn state(&self) -> ExecutionState {
        self.state
    }

    /// Returns true if the agent is working.
    pub(super) fn is_running(&self) -> bool {
        self.state == ExecutionState::Running
    }

    /// Sets the deadline of the present state.
    pub(super) fn set_deadline(&mut self, now: DateTime<Utc>, delay: Duration) {
        self.deadline =
            TimeDelta::from_std(delay).ok().and_then(|delay| now.checked_add_signed(delay));
    }

    /// Publishes a new state; `channel` contains the partial answer of the attempt, if there is one.
    ///
    /// A question becomes visible once the ledger has recorded it, because waiting callers read it there.
    pub(super) fn publish(
        &mut self,
        state: ExecutionState,
        now: DateTime<Utc>,
        attempt_id: AttemptId,
        channel: Option<TextChannel>,
    ) {
        (self.state, self.since, self.deadline) = (state, now, None);
        self.progress.send_modify(|progress| {
            progress.has_unrecorded_input_request = state == ExecutionState::Waiting;
            progress.awaits_ledger = false;
            if !progress.has_unrecorded_input_request {
                (progress.state, progress.queue_position) = (state, None);
                progress.open_interaction_count = 0;
                progress.partial_answer =
                    partial_answer(state, attempt_id, channel, progress.partial_answer);
            }
        });
    }

    /// Publishes the partial answer of a resumed attempt.
    pub(super) fn publish_resumption(&self, attempt_id: AttemptId, channel: Option<TextChannel>) {
        self.progress.send_modify(|progress| {
            progress.awaits_ledger = false; // An earlier actor may have failed while it waited.
            progress.partial_answer =
                partial_answer(self.state, attempt_id, channel, progress.partial_answer);
        });
    }

    /// Publishes the position of the wait for a resource.
    pub(super) fn publish_queue_position(&self, queued: Queued) {
        self.progress.send_if_modified(|progress| progress.set_queue_position(Some(queued)));
    }

    /// Publishes that the work waits for the ledger, or no longer waits.
    pub(super) fn publish_ledger_wait(&self, awaits_ledger: bool) {
        self.progress.send_if_modified(|progress| {
            std::mem::replace(&mut progress.awaits_ledger, awaits_ledger) != awaits_ledger
        });
    }

    /// Publishes the number of recorded open interactions.
    pub(super) fn publish_interactions(&self, count: u32) {
        self.progress.send_if_modified(|progress| {
            std::mem::replace(&mut progress.open_interaction_count, count) != count
        });
    }

    /// Publishes the number of open questions of members. An equal number wakes the callers too, because one question
    /// may have followed another.
    pub(super) fn publish_member_questions(&self, count: u32) {
        self.progress.send_if_modified(|progress| {
            let last_count = std::mem::replace(&mut progress.open_interaction_count, count);
            (last_count, count) != (0, 0)
        });
    }

    /// Publishes the outcome, which the ledger has recorded.
    pub(super) fn publish_outcome(&self, outcome: Outcome) {
        self.progress.send_modify(|progress| progress.outcome = Some(outcome));
    }

    /// Publishes a question, a deferral or a suspension, which the ledger has recorded.
    pub(super) fn publish_stop_reason(&self, deferred: Option<Deferral>, is_suspended: bool) {
        if is_suspended {
            self.progress.send_modify(|progress| progress.is_suspended = true);
        }
        if self.state == ExecutionState::Waiting {
            self.progress.send_modify(|progress| progress.state = ExecutionState::Waiting);
        }
        if let Some(deferred) = deferred {
            self.progress.send_modify(|progress| progress.deferral = Some(deferred));
        }
    }

    /// Returns true if the outcome is published.
    pub(super) fn has_outcome(&self) -> bool {
        self.progress.borrow().outcome.is_some()
    }

    /// Returns the status of the execution with its present attempt.
    pub(super) fn status(&self, id: ExecutionId, attempt: &CurrentAttempt) -> ExecutionStatus {
        let progress = self.progress.borrow();
        ExecutionStatus {
            id,
            health: Health::Alive,
            state: Some(self.state),
            since: Some(self.since),
            queued: progress.queue_position,
            followers: progress.followers.count(),
            attempt_id: Some(attempt.attempt_id()),
            pid: attempt.pid(),
            usage: attempt.usage_reading().filter(|_| self.is_running()),
            deadline: self.deadline,
        }
    }
}

/// Returns the partial answer in a state, if there is one. Within an attempt it begins where the published one does.
fn partial_answer(
    state: ExecutionState,
    attempt_id: AttemptId,
    channel: Option<TextChannel>,
    published: Option<PartialAnswerLocation>,
) -> Option<PartialAnswerLocation> {
    let is_at_work = matches!(state, ExecutionState::Starting | ExecutionState::Running);
    let channel = channel.filter(|_| is_at_work)?;
    let start_offset = published
        .filter(|published| published.attempt_id == attempt_id)
        .map_or(0, |published| published.start_offset);
    Some(PartialAnswerLocation { attempt_id, channel, start_offset })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CHANNEL: Option<TextChannel> = Some(TextChannel::Stdout);

    fn new_published_state() -> (PublishedState, watch::Receiver<Progress>) {
        let (progress, progress_receiver) = watch::channel(Progress::for_new_execution());
        (
            PublishedState::new(ExecutionState::Idle, DateTime::UNIX_EPOCH, progress),
            progress_receiver,
        )
    }

    #[test]
    fn a_question_is_visible_once_it_is_recorded() {
        let (mut published, progress_receiver) = new_published_state();
        let now = DateTime::UNIX_EPOCH;
        published.publish(ExecutionState::Running, now, AttemptId::FIRST, None);
        published.publish(ExecutionState::Waiting, now, AttemptId::FIRST, None);
        assert!(
            progress_receiver.borrow().state == ExecutionState::Running
                && progress_receiver.borrow().has_unrecorded_input_request
        );
        published.publish_stop_reason(None, false);
        assert_eq!(progress_receiver.borrow().state, ExecutionState::Waiting);
    }

    #[test]
    fn a_deadline_belongs_to_one_state() {
        let (mut published, _seen) = new_published_state();
        let now = DateTime::UNIX_EPOCH;
        published.set_deadline(now, Duration::from_secs(3));
        assert_eq!(published.deadline, Some(now + TimeDelta::seconds(3)));
        published.publish(ExecutionState::Starting, now, AttemptId::FIRST, None);
        assert_eq!(published.deadline, None);
        published.set_deadline(now, Duration::MAX);
        assert_eq!(published.deadline, None, "the time is beyond the calendar");
    }

    #[test]
    fn an_answer_continues_within_an_attempt_only() {
        let known = partial_answer(ExecutionState::Running, AttemptId::FIRST, CHANNEL, None)
            .map(|known| PartialAnswerLocation { start_offset: 9, ..known });
        let start_offset_of = |state, attempt_id| {
            partial_answer(state, attempt_id, CHANNEL, known).map(|known| known.start_offset)
        };
        let second = AttemptId { attempt: 2, ..AttemptId::FIRST };
        assert_eq!(start_offset_of(ExecutionState::Running, AttemptId::FIRST), Some(9));
        assert_eq!(start_offset_of(ExecutionState::Starting, second), Some(0));
        assert_eq!(start_offset_of(ExecutionState::Failed, AttemptId::FIRST), None);
        assert_eq!(partial_answer(ExecutionState::Running, AttemptId::FIRST, None, known), None);
    }
}
