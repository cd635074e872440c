//! Follows an execution: every event once, in order, without a gap, until it rests.

use std::collections::VecDeque;
use std::mem;
use std::time::Duration;

use tokio::sync::watch;

use crate::door::Gateway;
use crate::model::event::Event;
use crate::model::execution::State;
use crate::model::failure::Failure;
use crate::model::progress::Progress;
use crate::model::queue::Queued;
use crate::model::record::Record;

/// How long until an execution that lost its actor is looked for again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// How long until it is looked whether a question was answered.
const ASK_AGAIN: Duration = Duration::from_millis(250);

/// What one who follows hears next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Something happened.
    Event(Event),
    /// It waits in this place now. Nothing of it is recorded.
    Queued(Queued),
    /// Nothing more will happen before somebody acts: it has ended, or asks for input.
    Rest(Box<Record>),
}

/// Reads events from the ledger and waits for more. The execution does not care who follows it.
pub struct Follow {
    gateway: Gateway,
    record: Record,
    after: u64,
    read: VecDeque<Event>,
    progress: Option<watch::Receiver<Progress>>,
    /// Whether its actor was looked for.
    has_looked: bool,
    is_over: bool,
    goes_past_questions: bool,
    /// The turn whose question was told last.
    asked: Option<u32>,
    /// The place that was told last.
    queued: Option<Queued>,
}

impl Follow {
    pub(crate) const fn new(
        gateway: Gateway,
        record: Record,
        after: u64,
        progress: Option<watch::Receiver<Progress>>,
    ) -> Self {
        Self {
            gateway,
            record,
            after,
            read: VecDeque::new(),
            progress,
            has_looked: false,
            is_over: false,
            goes_past_questions: false,
            asked: None,
            queued: None,
        }
    }

    /// The place is known: only another one is told.
    #[must_use]
    pub const fn knowing(mut self, queued: Option<Queued>) -> Self {
        self.queued = queued;
        self
    }

    /// Follows past questions, up to the end: a question is told as a rest, once, and what follows
    /// its answer comes after it. Ends early when the service does.
    #[must_use]
    pub const fn past_questions(mut self) -> Self {
        self.goes_past_questions = true;
        self
    }

    /// The number of the last event that was told.
    #[must_use]
    pub const fn known(&self) -> u64 {
        self.after
    }

    /// The next event, or the rest; `None` after the rest.
    ///
    /// # Errors
    /// When the ledger could not be read.
    pub async fn next(&mut self) -> Result<Option<Next>, Failure> {
        loop {
            if let Some(event) = self.read.pop_front() {
                self.after = event.number;
                return Ok(Some(Next::Event(event)));
            }
            if self.is_over {
                return Ok(None);
            }
            // The record is read first: what it says to be over has no event after these.
            let record = self.gateway.reread(&self.record).await?;
            self.read = self.gateway.events(&record, self.after).await?.into();
            if !self.read.is_empty() {
                continue;
            }
            let (is_asking, turn) = (is_asking(&record), record.stamp.turn);
            if record.outcome.is_none() && !is_asking {
                if !self.has_moved() {
                    self.wait().await;
                }
                if self.has_moved()
                    && let Some(queued) = self.take_place()
                {
                    return Ok(Some(Next::Queued(queued)));
                }
            } else if is_asking && self.goes_past_questions && self.asked == Some(turn) {
                self.is_over = *self.gateway.draining.borrow();
                tokio::time::sleep(ASK_AGAIN).await;
            } else {
                self.asked = Some(turn);
                self.is_over = !(is_asking && self.goes_past_questions);
                return Ok(Some(Next::Rest(Box::new(record))));
            }
        }
    }

    /// Whether its place is another one than was told.
    fn has_moved(&self) -> bool {
        self.progress.as_ref().is_some_and(|progress| progress.borrow().queued != self.queued)
    }

    /// Its place, which is known from now on.
    fn take_place(&mut self) -> Option<Queued> {
        self.queued = self.progress.as_ref().and_then(|progress| progress.borrow().queued);
        self.queued
    }

    /// Waits for news, or finds who tells of them: what happened before that is still to be read.
    async fn wait(&mut self) {
        if let Some(progress) = &mut self.progress
            && progress.changed().await.is_ok()
        {
            return;
        }
        // One that lost its actor gets another soon.
        if mem::replace(&mut self.has_looked, true) {
            tokio::time::sleep(LOOK_AGAIN).await;
        }
        self.progress = self.gateway.watch(&self.record.agent, self.record.id).await;
    }
}

/// Whether it waits for an answer that nobody has given.
pub(crate) const fn is_asking(record: &Record) -> bool {
    matches!(record.state, State::Waiting) && record.outcome.is_none() && !record.answered
}
