//! Subscription to an execution: every event once, in order, without a gap, until it ends or requests input.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use tokio::sync::watch;
use tokio::time::timeout;

use crate::gateway::reader::ExecutionReader;
use crate::gateway::requests::{END_RECORD_TIMEOUT, stop_not_recorded_failure};
use crate::model::agent::queue::Queued;
use crate::model::execution::event::Event;
use crate::model::execution::followers::FollowerGuard;
use crate::model::execution::progress::{PartialAnswerLocation, Progress};
use crate::model::execution::record::ExecutionRecord;
use crate::model::failure::Failure;

/// Pause before the next search for an execution that lost its actor.
const ACTOR_LOOKUP_PAUSE: Duration = Duration::from_millis(50);
/// Interval of the checks whether a question was answered.
const QUESTION_CHECK_INTERVAL: Duration = Duration::from_millis(250);

/// Number of events that are read at once: a slow follower holds no more of them.
const EVENT_BATCH_SIZE: u32 = 500;

/// Next item of a subscription.
#[derive(Debug, Clone, PartialEq)]
pub enum SubscriptionItem {
    /// An event was recorded.
    Event(Event),
    /// The execution waits at this queue position now. Positions are not recorded.
    Queued(Queued),
    /// The program wrote text: the ledger may have more text than before. Only a follower of text receives this item,
    /// with the record as it was just before.
    TextAvailable(Box<ExecutionRecord>),
    /// No further event follows without an action: the execution has ended, or requests input.
    EndOrQuestion(Box<ExecutionRecord>),
}

/// Follower that reads events from the ledger and waits for more. It does not affect the execution.
pub struct Subscription {
    reader: ExecutionReader,
    record: ExecutionRecord,
    last_event_number: u64,
    unreported_events: VecDeque<Event>,
    progress: Option<watch::Receiver<Progress>>,
    /// True if the actor was searched for.
    has_searched_for_actor: bool,
    is_over: bool,
    goes_past_questions: bool,
    /// Turn of the latest reported question.
    reported_question_turn: Option<u32>,
    /// Latest reported queue position.
    reported_position: Option<Queued>,
    /// State of a follower of text; `None` for a follower that does not follow text.
    text_follow_state: Option<TextFollowState>,
}

/// Progress of a follower of text.
#[derive(Debug, Default)]
struct TextFollowState {
    /// Number of the latest record about which this follower was notified. `None` at first, because all earlier text is
    /// new to the follower.
    notified_revision: Option<u64>,
    /// Guard that causes text to be written as soon as it may be shown.
    follower_guard: Option<FollowerGuard>,
}

impl Subscription {
    /// Creates a follower that starts after the given event. The progress is known to callers that submitted the
    /// request.
    #[must_use]
    pub const fn new(
        reader: ExecutionReader,
        record: ExecutionRecord,
        after: u64,
        progress: Option<watch::Receiver<Progress>>,
    ) -> Self {
        Self {
            reader,
            record,
            last_event_number: after,
            unreported_events: VecDeque::new(),
            progress,
            has_searched_for_actor: false,
            is_over: false,
            goes_past_questions: false,
            reported_question_turn: None,
            reported_position: None,
            text_follow_state: None,
        }
    }

    /// Follows text too: the output of the program is written to the ledger soon, and the follower is
    /// notified of it ([`SubscriptionItem::TextAvailable`]).
    #[must_use]
    pub fn with_text(mut self) -> Self {
        self.text_follow_state = Some(TextFollowState::default());
        self
    }

    /// Returns the location of the answer that grows during the present attempt, if there is one.
    #[must_use]
    pub fn partial_answer_location(&self) -> Option<PartialAnswerLocation> {
        self.progress.as_ref().and_then(|progress| progress.borrow().partial_answer)
    }

    /// Sets the known queue position: only another one is reported.
    #[must_use]
    pub const fn with_reported_position(mut self, queued: Option<Queued>) -> Self {
        self.reported_position = queued;
        self
    }

    /// Follows the execution past questions, up to its end: a question is reported once, and the events after
    /// its answer follow. Ends early when the service stops.
    #[must_use]
    pub const fn continue_past_questions(mut self) -> Self {
        self.goes_past_questions = true;
        self
    }

    /// Returns the number of the latest reported event.
    #[must_use]
    pub const fn last_event_number(&self) -> u64 {
        self.last_event_number
    }

    /// Returns the next item; `None` after the final one.
    ///
    /// # Errors
    /// Returns an error if the ledger could not be read, or does not record the end.
    pub async fn next(&mut self) -> Result<Option<SubscriptionItem>, Failure> {
        loop {
            if let Some(event) = self.unreported_events.pop_front() {
                self.last_event_number = event.number;
                return Ok(Some(SubscriptionItem::Event(event)));
            }
            if self.is_over {
                return Ok(None);
            }
            // The record is read first: if it shows the end, no event follows the ones read after it.
            let record = self.reader.reread(&self.record).await?;
            self.unreported_events = self
                .reader
                .next_events(&record, self.last_event_number, EVENT_BATCH_SIZE)
                .await?
                .into();
            if !self.unreported_events.is_empty() {
                continue;
            }
            // A process that waits for an answer continues by itself, so a follower that passes questions only waits.
            let is_paused = record.has_open_interactions() && !self.goes_past_questions;
            let (requests_input, turn) =
                (record.awaits_answer() || is_paused, record.attempt_id.turn);
            if record.outcome.is_none() && !requests_input {
                if self.take_new_text_flag() {
                    return Ok(Some(SubscriptionItem::TextAvailable(Box::new(record))));
                }
                if !self.has_new_position() {
                    self.wait_or_find_actor().await?;
                }
                if self.has_new_position()
                    && let Some(queued) = self.take_position()
                {
                    return Ok(Some(SubscriptionItem::Queued(queued)));
                }
            } else if requests_input
                && self.goes_past_questions
                && self.reported_question_turn == Some(turn)
            {
                self.is_over = *self.reader.gateway_handle.draining.borrow();
                tokio::time::sleep(QUESTION_CHECK_INTERVAL).await;
            } else {
                self.reported_question_turn = Some(turn);
                self.is_over = !(requests_input && self.goes_past_questions);
                return Ok(Some(SubscriptionItem::EndOrQuestion(Box::new(record))));
            }
        }
    }

    /// Returns true if the queue position differs from the reported one.
    fn has_new_position(&self) -> bool {
        self.progress
            .as_ref()
            .is_some_and(|progress| progress.borrow().queue_position != self.reported_position)
    }

    /// Returns true if there may be text about which the follower was not notified, and marks it as notified.
    fn take_new_text_flag(&mut self) -> bool {
        let (Some(follow_state), Some(progress)) = (&mut self.text_follow_state, &self.progress)
        else {
            return false;
        };
        let revision = progress.borrow().revision;
        follow_state.notified_revision.replace(revision) != Some(revision)
    }

    /// Returns the queue position and marks it as reported.
    fn take_position(&mut self) -> Option<Queued> {
        self.reported_position =
            self.progress.as_ref().and_then(|progress| progress.borrow().queue_position);
        self.reported_position
    }

    /// Waits for news, or searches the actor: events before that are still read.
    ///
    /// # Errors
    /// Returns `ledger-unavailable` if the end cannot be recorded.
    async fn wait_or_find_actor(&mut self) -> Result<(), Failure> {
        if let Some(progress) = &mut self.progress {
            let has_unrecorded_stop = progress.borrow().has_unrecorded_stop();
            let wait_result = match has_unrecorded_stop {
                true => timeout(END_RECORD_TIMEOUT, progress.changed()).await,
                false => Ok(progress.changed().await),
            };
            match wait_result {
                Ok(Ok(())) => return Ok(()),
                Ok(Err(_lost)) => {}
                Err(_elapsed) => {
                    self.is_over = true;
                    let progress = self.progress.as_ref();
                    return Err(stop_not_recorded_failure(self.record.id, progress));
                }
            }
        }
        // An execution that lost its actor receives another one soon.
        if mem::replace(&mut self.has_searched_for_actor, true) {
            tokio::time::sleep(ACTOR_LOOKUP_PAUSE).await;
        }
        self.progress = self.reader.watch_progress(&self.record.agent, self.record.id).await;
        if let (Some(follow_state), Some(progress)) = (&mut self.text_follow_state, &self.progress)
        {
            follow_state.follower_guard = Some(progress.borrow().followers.join());
        }
        Ok(())
    }
}
