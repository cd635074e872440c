//! Answers a request with the result of an equal one: what was done a moment ago is not done again.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::task::JoinHandle;

use crate::decide::keep::Masked;
use crate::model::agent::AgentSpec;
use crate::model::code::Code;
use crate::model::content::Piece;
use crate::model::event::{Channel, Fact, Speaker};
use crate::model::execution::Stamp;
use crate::model::failure::Failure;
use crate::model::id::ExecutionId;
use crate::model::request::Request;
use crate::model::workspace::Workspace;
use crate::ports::driver::{Driver, Hold, Lease, Work};
use crate::ports::ledger::{Ledger, LedgerError};
use crate::report::{Reporter, Scribe};

/// Does an execution's work by telling what another one told.
pub(crate) struct Echo {
    /// The other one, which has completed.
    pub(crate) of: ExecutionId,
    /// Where its words stand.
    pub(crate) ledger: Arc<dyn Ledger>,
}

#[async_trait]
impl Driver for Echo {
    /// Telling changes nothing.
    async fn workspace(&self, _: &AgentSpec, _: &Request) -> Option<Workspace> {
        None
    }

    fn start(&self, work: Work, report: Reporter) -> Lease {
        let copy = Copy { of: self.of, ledger: Arc::clone(&self.ledger), said: 0 };
        Box::new(Copying(tokio::spawn(copy.run(work, report))))
    }

    /// What is only read may be read again.
    fn resume(&self, work: Work, report: Reporter) -> Lease {
        self.start(work, report)
    }
}

/// Telling takes no time to speak of: it is not stopped half-way, and leaves nothing.
struct Copying(JoinHandle<()>);

#[async_trait]
impl Hold for Copying {
    fn stop(&self) {}

    async fn clean(mut self: Box<Self>) {
        _ = (&mut self.0).await; // One that panicked has dropped its reporter, which tells.
    }
}

impl Drop for Copying {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// One attempt.
struct Copy {
    of: ExecutionId,
    ledger: Arc<dyn Ledger>,
    said: u32,
}

impl Copy {
    async fn run(mut self, work: Work, report: Reporter) {
        report.started(None);
        let verdict = self.tell(&work, &report).await.map_err(|error| {
            tracing::error!(execution = %work.execution, %error, "the result was not taken over");
            Failure::new(
                Code::LedgerUnavailable,
                "the result of an equal request was not taken over",
            )
        });
        report.ended(verdict, None);
    }

    /// Tells again what the last attempt of the other one told.
    async fn tell(&mut self, work: &Work, report: &Reporter) -> Result<(), LedgerError> {
        let message = format!("the result is that of `{}`, which was asked the same", self.of);
        report.note(Fact::Warned { message }).await?;
        let last = self.ledger.execution(self.of).await?.map(|record| record.stamp);
        let mut scribe = report.scribe(Channel::Parts);
        for event in self.ledger.events(self.of, 0).await? {
            if is_of(&event.fact, last)
                && let Some(fact) = self.again(event.fact, work, &mut scribe).await?
            {
                report.note(fact).await?;
            }
        }
        scribe.close().await.map(|_| ())
    }

    /// A fact about the other one as one about this; `None` for what is its own affair.
    async fn again(
        &mut self,
        fact: Fact,
        work: &Work,
        scribe: &mut Scribe,
    ) -> Result<Option<Fact>, LedgerError> {
        Ok(match fact {
            Fact::Said { speaker, pieces, .. } if speaker != Speaker::Caller => {
                self.said += 1;
                let message = format!("{}-{}-{}", work.execution, work.stamp.attempt, self.said);
                let pieces = self.copied(&pieces, scribe).await?;
                Some(Fact::Said { speaker, message, pieces })
            }
            Fact::Artifact { id, name, description, pieces, append, last } => {
                let pieces = self.copied(&pieces, scribe).await?;
                Some(Fact::Artifact { id, name, description, pieces, append, last })
            }
            Fact::Truncated { .. } => Some(fact),
            Fact::Said { .. }
            | Fact::Moved(_)
            | Fact::Spawned { .. }
            | Fact::AttemptFailed(_)
            | Fact::Parked(_)
            | Fact::Used { .. }
            | Fact::Charged { .. }
            | Fact::Stepped { .. }
            | Fact::Stopped { .. }
            | Fact::Heartbeat(_)
            | Fact::Spent(_)
            | Fact::Session { .. }
            | Fact::Expiring { .. }
            | Fact::Discontinued { .. }
            | Fact::Checked { .. }
            | Fact::Warned { .. } => None,
        })
    }

    async fn copied(
        &self,
        pieces: &[Piece],
        scribe: &mut Scribe,
    ) -> Result<Vec<Piece>, LedgerError> {
        let mut parts = Vec::with_capacity(pieces.len());
        for piece in pieces {
            let text = self.ledger.text(self.of, piece.text).await?;
            parts.push(Masked::kept(piece, text));
        }
        scribe.lay(parts).await
    }
}

/// Whether a fact with words is of this attempt; one without them is of any.
fn is_of(fact: &Fact, attempt: Option<Stamp>) -> bool {
    let (Fact::Said { pieces, .. } | Fact::Artifact { pieces, .. }) = fact else { return true };
    pieces.first().is_none_or(|piece| Some(piece.text.stamp) == attempt)
}
