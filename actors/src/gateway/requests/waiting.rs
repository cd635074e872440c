//! Waits of callers for the end of an execution.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::{Instant, timeout};

use super::{Requests, unread};
use crate::model::code::Code;
use crate::model::execution::State;
use crate::model::execution::progress::{Progress, Raw};
use crate::model::execution::record::Record;
use crate::model::failure::Failure;
use crate::model::id::{AgentId, ExecutionId};

/// Pause before the next search for an execution that lost its actor.
const LOOK_AGAIN: Duration = Duration::from_millis(50);
/// Longest time for which a caller waits for the ledger to record an end, or for an execution without an
/// actor. Both are short unless the storage of the ledger fails.
pub(crate) const UNRECORDED: Duration = Duration::from_secs(10);

impl Requests {
    /// Waits until an execution has ended, or waits for input. Returns early when the service drains before
    /// the execution has started: the execution will run after the next start. Returns the unredacted text of
    /// the answer if the agent is configured so; only the owner may see it.
    ///
    /// # Errors
    /// Returns `ledger-unavailable` if the end cannot be recorded. It is recorded once the storage accepts it.
    pub async fn settled(
        &self,
        agent: &AgentId,
        id: ExecutionId,
        progress: Option<watch::Receiver<Progress>>,
    ) -> Result<Option<Raw>, Failure> {
        let seen = self.wait((agent, id), progress, Until::Rest).await?;
        Ok(seen.and_then(|seen| seen.borrow().raw.clone()))
    }

    /// Waits until an execution has ended; an open question is not an end.
    ///
    /// # Errors
    /// Returns the same errors as [`settled`](Self::settled).
    pub async fn ended(
        &self,
        record: &Record,
        progress: Option<watch::Receiver<Progress>>,
    ) -> Result<(), Failure> {
        self.wait((&record.agent, record.id), progress, Until::End).await.map(drop)
    }

    async fn wait(
        &self,
        (agent, id): (&AgentId, ExecutionId),
        mut progress: Option<watch::Receiver<Progress>>,
        until: Until,
    ) -> Result<Option<watch::Receiver<Progress>>, Failure> {
        let mut draining = self.reader.link.draining.clone();
        let mut stuck: Option<Instant> = None;
        loop {
            tokio::select! {
                reached = reached(&mut progress, until) => match reached {
                    Reached::Over => return Ok(progress),
                    Reached::Unrecorded => return Err(unrecorded(id)),
                    Reached::Lost => {}
                },
                () = drained(&mut draining) => {
                    if !is_begun(progress.as_ref()) { return Ok(progress) }
                }
            }
            if self.is_over(id, until).await {
                return Ok(progress);
            }
            if stuck.is_some_and(|since| since.elapsed() >= UNRECORDED) {
                return Err(unrecorded(id));
            }
            tokio::time::sleep(LOOK_AGAIN).await;
            progress = self.reader.watch(agent, id).await;
            // During a drain this loop checks repeatedly, so the time is counted here too.
            let is_stuck = progress.as_ref().is_none_or(|progress| progress.borrow().is_ending());
            stuck = is_stuck.then(|| stuck.unwrap_or_else(Instant::now));
        }
    }

    async fn is_over(&self, id: ExecutionId, until: Until) -> bool {
        match self.reader.services.ledger.execution(id).await {
            Ok(Some(record)) => {
                let rests = record.is_asking() || record.has_open_interactions();
                record.outcome.is_some() || (until == Until::Rest && rests)
            }
            Ok(None) => true,
            Err(error) => {
                unread(id, &error);
                false
            }
        }
    }
}

/// Event that a caller waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Until {
    /// The end of the execution, or a question.
    Rest,
    /// The end of the execution.
    End,
}

/// Result of a wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reached {
    /// The event has happened.
    Over,
    /// The work is over, and the ledger does not record it.
    Unrecorded,
    /// The actor was lost before.
    Lost,
}

/// Waits without limit while the work continues, and for a limited time for the record of its end.
async fn reached(progress: &mut Option<watch::Receiver<Progress>>, until: Until) -> Reached {
    let Some(progress) = progress else { return Reached::Lost };
    let is_it = |progress: &Progress| {
        let asks = progress.state == State::Waiting || progress.interactions > 0;
        progress.outcome.is_some() || (until == Until::Rest && asks)
    };
    match progress.wait_for(|it| is_it(it) || it.is_ending()).await {
        Ok(seen) if is_it(&seen) => return Reached::Over,
        Ok(_) => {}
        Err(_lost) => return Reached::Lost,
    }
    match timeout(UNRECORDED, progress.wait_for(is_it)).await {
        Ok(Ok(_)) => Reached::Over,
        Ok(Err(_lost)) => Reached::Lost,
        Err(_elapsed) => Reached::Unrecorded,
    }
}

/// Returns the failure of an execution whose end cannot be recorded now.
pub(crate) fn unrecorded(id: ExecutionId) -> Failure {
    let message = format!(
        "the end of execution `{id}` is not recorded yet, because the disk of the ledger is full or cannot be written"
    );
    Failure::new(Code::LedgerUnavailable, message)
}

async fn drained(draining: &mut watch::Receiver<bool>) {
    if draining.wait_for(|draining| *draining).await.is_err() {
        std::future::pending::<()>().await;
    }
}

fn is_begun(progress: Option<&watch::Receiver<Progress>>) -> bool {
    progress.is_some_and(|progress| progress.borrow().state != State::Idle)
}
