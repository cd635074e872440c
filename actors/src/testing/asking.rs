//! Callers who ask and wait by themselves, while the world goes on.

use super::parts::{asked, caller};
use super::{FOR_EVER, World};
use crate::agent::Ticket;
use crate::model::code::Code;
use crate::model::id::ExecutionId;
use crate::ports::ledger::Ledger;

/// What a caller got, who asks and waits for the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// It was refused.
    Refused(Code),
    /// It was let in, and has ended.
    Ended(ExecutionId),
    /// It was let in, and then a promise was broken.
    Broken(ExecutionId, &'static str),
}

impl World {
    /// A caller who submits a text under a message id and waits for the end, as a future of its own.
    pub fn asking(
        &self,
        agent: &str,
        message: &str,
        text: &str,
    ) -> impl Future<Output = Answer> + Send + use<> {
        let (door, ledger) = (self.door.clone(), self.ledger.clone());
        let (caller, request) = (caller(), asked(agent, message, text));
        async move {
            let Ticket { execution, progress, .. } = match door.submit(&caller, request).await {
                Ok(ticket) => ticket,
                Err(failure) => return Answer::Refused(failure.code),
            };
            let row = async || ledger.execution(execution).await.ok().flatten();
            let Some(record) = row().await else {
                return Answer::Broken(execution, "its id was given before it was recorded");
            };
            let settled = door.settled(&record.agent, record.id, progress);
            if tokio::time::timeout(FOR_EVER, settled).await.is_err() {
                return Answer::Broken(execution, "nobody tells of its end");
            }
            match row().await.and_then(|record| record.outcome) {
                Some(_) => Answer::Ended(execution),
                None => Answer::Broken(execution, "its end was told before it was recorded"),
            }
        }
    }
}
