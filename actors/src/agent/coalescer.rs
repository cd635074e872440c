//! Coalescing of equal requests: the later request waits for the result of the earlier one, and takes it if that one
//! succeeds.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::tasks::AgentBackgroundTasks;
use super::{AgentArgs, AgentMsg};
use crate::model::execution::{AttemptId, Outcome};
use crate::model::id::ExecutionId;
use crate::ports::ledger::Ledger;

/// Executions that wait for the result of an equal request.
#[derive(Debug, Default)]
pub(super) struct Coalescer {
    /// Waiting executions in the order of arrival, by the execution whose result they may take.
    waiting_by_source: BTreeMap<ExecutionId, Vec<ExecutionId>>,
}

/// Decision about an execution whose equal request was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum CoalesceDecision {
    /// The execution waits for the end of the other one.
    Wait,
    /// The other execution has ended meanwhile: its outcome can be read now.
    ReadOutcome,
}

impl Coalescer {
    /// Lets the execution `id` wait for the result of `source`, whose content is equal. `is_active` is true if
    /// `source` runs or waits.
    pub(super) fn coalesce(
        &mut self,
        id: ExecutionId,
        source: ExecutionId,
        is_source_active: bool,
        mut outcome_reader: OutcomeReader<'_>,
    ) {
        if self.register_if_active(id, source, is_source_active) == CoalesceDecision::ReadOutcome {
            outcome_reader.spawn_outcome_report(id, source);
        }
    }

    /// Releases the executions that wait for an execution which has ended or stopped for a question.
    pub(super) fn release(&mut self, source: ExecutionId, mut outcome_reader: OutcomeReader<'_>) {
        for id in self.take_coalesced(source) {
            outcome_reader.spawn_outcome_report(id, source);
        }
    }

    /// Registers the execution `id`, whose content equals that of `source`, if `source` runs or waits, which is
    /// `is_active`.
    fn register_if_active(
        &mut self,
        id: ExecutionId,
        source: ExecutionId,
        is_source_active: bool,
    ) -> CoalesceDecision {
        if !is_source_active {
            return CoalesceDecision::ReadOutcome; // No later event would release the execution.
        }
        self.waiting_by_source.entry(source).or_default().push(id);
        CoalesceDecision::Wait
    }

    /// Removes and returns the executions that wait for an execution which has ended or stopped for a question.
    fn take_coalesced(&mut self, source: ExecutionId) -> Vec<ExecutionId> {
        self.waiting_by_source.remove(&source).unwrap_or_default()
    }
}

/// Reader of an outcome for an execution that may take it: only a success is taken.
pub(super) struct OutcomeReader<'a> {
    pub(super) args: &'a AgentArgs,
    pub(super) tasks: &'a mut AgentBackgroundTasks,
}

impl OutcomeReader<'_> {
    /// Reads the outcome of the execution `source`, and reports it for the execution `id`.
    fn spawn_outcome_report(&mut self, id: ExecutionId, source: ExecutionId) {
        // The ledger decides, and not the progress of the other execution: it may have ended before this actor
        // started.
        let ledger = Arc::clone(&self.args.services.ledger);
        let message = async move {
            AgentMsg::CoalescedReleased(
                id,
                has_reusable_result(&ledger, source).await.then_some(source),
            )
        };
        self.tasks.spawn_and_send_result(message);
    }
}

/// Returns true if an execution succeeded without a question, because an answer was given by that caller alone. An
/// unreadable execution provides no result.
pub(super) async fn has_reusable_result(ledger: &Arc<dyn Ledger>, source: ExecutionId) -> bool {
    let record = ledger.execution(source).await.unwrap_or_else(|error| {
        tracing::error!(execution = %source, %error, "read failed");
        None
    });
    record.is_some_and(|record| {
        record.outcome == Some(Outcome::Completed)
            && record.attempt_id.turn == AttemptId::FIRST.turn
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn followers_are_released_once_in_the_order_of_arrival() {
        let (source, other) = (ExecutionId::generate(), ExecutionId::generate());
        let ids = [ExecutionId::generate(), ExecutionId::generate(), ExecutionId::generate()];
        let mut coalescer = Coalescer::default();
        for id in ids {
            assert_eq!(coalescer.register_if_active(id, source, true), CoalesceDecision::Wait);
        }
        assert_eq!(coalescer.take_coalesced(other), []);
        assert_eq!(coalescer.take_coalesced(source), ids);
        assert_eq!(coalescer.take_coalesced(source), []);
    }

    #[test]
    fn a_follower_of_an_ended_execution_reads_its_outcome_at_once() {
        let (id, source) = (ExecutionId::generate(), ExecutionId::generate());
        let mut coalescer = Coalescer::default();
        assert_eq!(coalescer.register_if_active(id, source, false), CoalesceDecision::ReadOutcome);
        assert_eq!(coalescer.take_coalesced(source), []);
    }
}
