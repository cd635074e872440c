//! Standard input of an agent: a journal that is written at once and delivered as the agent reads.

use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_warden::{StdinJournal, StdinJournalError};

/// Time to deliver the last messages. An agent that does not read is ended after its grace period.
const DELIVERY_TIMEOUT: Duration = Duration::from_millis(500);

/// Standard input of an agent; `None` after the agent has closed it.
pub(super) struct AgentInput(Option<StdinJournal>);

impl AgentInput {
    /// Returns the input over a journal.
    pub(super) const fn new(journal: StdinJournal) -> Self {
        Self(Some(journal))
    }

    /// Writes a line. An agent that has closed its input receives nothing, which is no failure: its output still
    /// counts.
    pub(super) fn write(&mut self, line: &[u8]) -> Result<(), Failure> {
        let Some(journal) = &mut self.0 else { return Ok(()) };
        match journal.write_message(line) {
            Ok(()) => Ok(()),
            Err(StdinJournalError::Closed) => {
                self.0 = None;
                Ok(())
            }
            Err(error) => {
                tracing::error!(%error, "message to the agent was not written");
                Err(Failure::new(Code::Reported, format!("{error}")))
            }
        }
    }

    /// Delivers what was written; never returns while nothing is left to deliver.
    pub(super) async fn deliver(&mut self) {
        match &mut self.0 {
            Some(journal) if !journal.is_drained() => {
                if journal.deliver().await.is_err() {
                    self.0 = None; // The agent reads no more; its output still counts.
                }
            }
            _ => std::future::pending().await,
        }
    }

    /// Delivers what was written, and closes the input, which ends most agents.
    pub(super) async fn close(&mut self) {
        if let Some(mut journal) = self.0.take() {
            _ = tokio::time::timeout(DELIVERY_TIMEOUT, journal.deliver()).await;
            journal.close();
        }
    }
}
