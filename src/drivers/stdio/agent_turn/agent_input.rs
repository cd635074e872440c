//! Standard input of an agent: a journal that is written at once and delivered as the agent reads.

use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::ports::ledger::LedgerError;
use algonius_warden::{StdinJournal, StdinJournalError};

use super::TurnPlan;
use super::turn_state::TurnState;
use crate::drivers::adapters::event_reader::EventReader;

/// Time to deliver the last messages. An agent that does not read is ended after its grace period.
const DELIVERY_TIMEOUT: Duration = Duration::from_millis(500);

/// Warning about an agent that reads no more while its turn continues.
const INPUT_CLOSED_WARNING: &str =
    "the agent closed its standard input, so it does not receive the rest of its messages";

/// Reason why an agent does not receive what is written to it.
#[derive(Debug)]
pub(super) enum WriteFault {
    /// The agent has closed its input. Its output still counts.
    Closed,
    /// The service could not write.
    Failed(Failure),
}

impl WriteFault {
    /// Reports the fault. A failure of the service ends the turn.
    pub(super) async fn report(
        self,
        (state, plan): (&mut TurnState, &mut TurnPlan),
        event_reader: &mut EventReader<'_>,
    ) -> Result<(), LedgerError> {
        match self {
            Self::Closed => event_reader.warn(INPUT_CLOSED_WARNING).await,
            Self::Failed(failure) => {
                state.record_failure(failure);
                // The agent waits for what cannot be written.
                plan.tool_call_monitor.expire_turn_end_deadline();
                Ok(())
            }
        }
    }
}

/// Standard input of an agent; `None` after its loss.
pub(super) struct AgentInput(Option<StdinJournal>);

impl AgentInput {
    /// Returns the input over a journal.
    pub(super) const fn new(journal: StdinJournal) -> Self {
        Self(Some(journal))
    }

    /// Returns true if the agent may still read.
    pub(super) const fn is_open(&self) -> bool {
        self.0.is_some()
    }

    /// Writes a line of a turn, and reports a fault.
    pub(super) async fn send(
        &mut self,
        line: &[u8],
        state_and_plan: (&mut TurnState, &mut TurnPlan),
        event_reader: &mut EventReader<'_>,
    ) -> Result<(), LedgerError> {
        match self.write(line) {
            Ok(()) => Ok(()),
            Err(fault) => fault.report(state_and_plan, event_reader).await,
        }
    }

    /// Writes a line. After a loss, which is reported once, nothing is written.
    pub(super) fn write(&mut self, line: &[u8]) -> Result<(), WriteFault> {
        let Some(journal) = &mut self.0 else { return Ok(()) };
        let written = journal.write_message(line);
        written.map_err(|error| self.handle_journal_error(&error))
    }

    /// Delivers what was written; never returns while nothing is left to deliver.
    pub(super) async fn deliver(&mut self) -> Result<(), WriteFault> {
        let delivered = match &mut self.0 {
            Some(journal) if !journal.is_drained() => journal.deliver().await,
            _ => std::future::pending().await,
        };
        delivered.map_err(|error| self.handle_journal_error(&error))
    }

    /// Delivers what was written, and closes the input, which ends most agents.
    pub(super) async fn close(&mut self) {
        if let Some(mut journal) = self.0.take() {
            // The turn is over, so nothing depends on the last messages.
            _ = tokio::time::timeout(DELIVERY_TIMEOUT, journal.deliver()).await;
            journal.close();
        }
    }

    fn handle_journal_error(&mut self, error: &StdinJournalError) -> WriteFault {
        if matches!(error, StdinJournalError::InputClosed) {
            self.0 = None;
            return WriteFault::Closed;
        }
        tracing::error!(%error, "message to the agent was not written");
        WriteFault::Failed(Failure::new(Code::Reported, format!("{error}")))
    }
}
