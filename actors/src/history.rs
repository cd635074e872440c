//! The door to what is kept: parts of one execution, once more, away with it.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::agent::Ticket;
use crate::door::{Gateway, unreadable};
use crate::model::code::Code;
use crate::model::event::{Event, Span};
use crate::model::failure::Failure;
use crate::model::id::{AgentId, ExecutionId, MessageId, PrincipalId};
use crate::model::principal::{Caller, Right};
use crate::model::record::Record;
use crate::model::request::{Request, Trigger};
use crate::model::status::AgentStatus;
use crate::model::stock::{Removal, Stock};
use crate::ports::history::Passage;
use crate::ports::ledger::LedgerError;
use crate::recover::read;

/// How often it is looked whether an agent is idle.
const LOOK_AGAIN: Duration = Duration::from_millis(100);

impl Gateway {
    /// At most so many events of an execution after the given number, in order.
    ///
    /// # Errors
    /// When they could not be read.
    pub async fn some_events(
        &self,
        record: &Record,
        after: u64,
        most: u32,
    ) -> Result<Vec<Event>, Failure> {
        told(self.kit.history.some_events(record.id, after, most).await)
    }

    /// Every text of an execution, from its first byte to its last so far.
    ///
    /// # Errors
    /// When they could not be read.
    pub async fn texts(&self, record: &Record) -> Result<Vec<Span>, Failure> {
        told(self.kit.history.texts(record.id).await)
    }

    /// The whole characters within a range of a text.
    ///
    /// # Errors
    /// When it could not be read.
    pub async fn passage(&self, record: &Record, span: Span) -> Result<Passage, Failure> {
        told(self.kit.history.passage(record.id, span).await)
    }

    /// The names of all principals.
    ///
    /// # Errors
    /// When they could not be read.
    pub async fn callers(&self) -> Result<BTreeMap<PrincipalId, String>, Failure> {
        told(self.kit.history.callers().await)
    }

    /// How much is kept.
    ///
    /// # Errors
    /// When it could not be read.
    pub async fn stock(&self) -> Result<Stock, Failure> {
        told(self.kit.history.stock().await)
    }

    /// Removes an execution that has ended, with all that belongs to it.
    ///
    /// # Errors
    /// When there is none for the caller, or when it has not ended.
    pub async fn remove(&self, caller: &Caller, id: ExecutionId) -> Result<(), Failure> {
        let record = self.execution(caller, id).await?;
        match told(self.kit.history.remove(record.id).await)? {
            Removal::Removed | Removal::Unknown => {
                tracing::info!(execution = %id, agent = %record.agent, by = caller.name, "removed");
                Ok(())
            }
            Removal::Unfinished => {
                let message = format!("the execution has not ended: it is {}", record.shown());
                Err(Failure::new(Code::ExecutionUnfinished, message))
            }
        }
    }

    /// Asks once more what an execution was asked, in the same conversation, as the caller's own.
    ///
    /// # Errors
    /// When there is none for the caller, when it has not ended, when what was asked is not kept as
    /// it was, or when it is refused.
    pub async fn retry(&self, caller: &Caller, id: ExecutionId) -> Result<Ticket, Failure> {
        let record = self.execution(caller, id).await?;
        if !caller.scope.allows(Right::Run, Some(&record.agent)) {
            return Err(Failure::new(Code::Forbidden, "the token does not allow this"));
        }
        if record.outcome.is_none() {
            let message = format!("the execution has not ended: it is {}", record.shown());
            return Err(Failure::new(Code::ExecutionUnfinished, message));
        }
        let why = match (record.replayable, record.stamp.turn) {
            (true, 1) => None,
            (true, _) => Some("it was a conversation of several messages"),
            (false, _) => Some("a part of what was asked is masked"),
        };
        if let Some(why) = why {
            return Err(Failure::new(Code::NotReplayable, why));
        }
        let kept = told(read(&self.kit, &record).await)?;
        let message = MessageId(ExecutionId::fresh().to_string());
        let (owner, trigger) = (caller.principal, Trigger::Api);
        self.submit(caller, Request { owner, message, trigger, ..(*kept).clone() }).await
    }

    /// Waits until an agent has nothing that runs or waits, for so long at most. Gives how it is then;
    /// `None` when there is no such agent.
    pub async fn idle(&self, agent: &AgentId, most: Duration) -> Option<AgentStatus> {
        let deadline = tokio::time::Instant::now() + most;
        loop {
            let status = self.agent_status(agent).await?;
            let is_idle = status.running.is_empty() && status.queued.is_empty();
            if is_idle || tokio::time::Instant::now() >= deadline {
                return Some(status);
            }
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }
}

fn told<T>(result: Result<T, LedgerError>) -> Result<T, Failure> {
    result.map_err(|error| unreadable(&error))
}
