//! Follows an execution: every event once, in order, without a gap, until it rests.

use std::collections::VecDeque;
use std::time::Duration;

use tokio::sync::watch;

use crate::door::Gateway;
use crate::model::event::Event;
use crate::model::execution::State;
use crate::model::failure::Failure;
use crate::model::progress::Progress;
use crate::model::record::Record;

/// How long until an execution that lost its actor is looked for again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

/// What one who follows hears next.
#[derive(Debug, Clone, PartialEq)]
pub enum Next {
    /// Something happened.
    Event(Event),
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
    is_over: bool,
}

impl Follow {
    pub(crate) const fn new(
        gateway: Gateway,
        record: Record,
        after: u64,
        progress: Option<watch::Receiver<Progress>>,
    ) -> Self {
        Self { gateway, record, after, read: VecDeque::new(), progress, is_over: false }
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
            let rests = record.outcome.is_some() || is_asking(&record);
            if self.read.is_empty() && rests {
                self.is_over = true;
                return Ok(Some(Next::Rest(Box::new(record))));
            }
            if self.read.is_empty() {
                self.wait().await;
            }
        }
    }

    /// Waits for news. What happened since the last look counts as news.
    async fn wait(&mut self) {
        let heard = match &mut self.progress {
            Some(progress) => progress.changed().await.is_ok(),
            None => false,
        };
        if !heard {
            tokio::time::sleep(LOOK_AGAIN).await;
            self.progress = self.gateway.watch(&self.record).await;
        }
    }
}

/// Whether it waits for an answer that nobody has given.
pub(crate) const fn is_asking(record: &Record) -> bool {
    matches!(record.state, State::Waiting) && record.outcome.is_none() && !record.answered
}
