//! Starting point of an execution's actor.

use tokio::time::Instant;

use crate::decide::execution::ExecutionPhase;
use crate::decide::retry::{FailedAttempt, RetryHistory};
use crate::model::agent::budget::Charge;
use crate::model::agent::quota::Deferral;
use crate::model::execution::event::EventKind;
use crate::model::execution::record::ExecutionRecord;
use crate::model::execution::{AttemptId, ExecutionState, Fence};
use crate::model::failure::Failure;
use crate::model::observation::telemetry_events::TokenCounts;

/// Amounts and results of the attempts of an execution so far, which its next attempt continues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExecutionTotals {
    /// Amounts that the execution has used.
    pub spent: Charge,
    /// Tokens that the agent reported to this process.
    pub tokens: TokenCounts,
    /// Exit code of the latest process of any attempt.
    pub exit_code: Option<i32>,
    /// Time of the first granted claim in this process.
    pub first_granted_at: Option<Instant>,
}

impl ExecutionTotals {
    /// Returns the totals of an execution from its record in the ledger.
    const fn from_record(record: &ExecutionRecord) -> Self {
        Self {
            spent: record.spent,
            tokens: TokenCounts { input: 0, output: 0 },
            exit_code: record.exit_code,
            first_granted_at: None,
        }
    }
}

/// Report of a failed attempt to the agent's actor, which decides what follows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedAttemptReport {
    /// Id of the attempt.
    pub attempt_id: AttemptId,
    /// Generation of its claim.
    pub fence: Fence,
    /// Facts for the decision.
    pub failed_attempt: FailedAttempt,
    /// Failure of the attempt.
    pub failure: Failure,
    /// Totals of the execution after the attempt.
    pub totals: ExecutionTotals,
}

/// Starting point of an execution's actor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartingPoint {
    /// Phase of the execution.
    pub phase: ExecutionPhase,
    /// State that corresponds to the phase.
    pub state: ExecutionState,
    /// Id of the latest attempt.
    pub attempt_id: AttemptId,
    /// Generation of the last claim.
    pub fence: Fence,
    /// Totals of the earlier attempts.
    pub totals: ExecutionTotals,
    /// Counts that limit further retries.
    pub retry_history: RetryHistory,
    /// Events that an earlier process recorded about the resumed attempt.
    pub recorded_events: Vec<EventKind>,
    /// True if its request is the original one; an execution whose input is lost is never retried.
    pub has_original_input: bool,
}

impl StartingPoint {
    /// Creates the starting point of a new execution.
    #[must_use]
    pub fn for_new_execution() -> Self {
        Self {
            phase: ExecutionPhase::Idle,
            state: ExecutionState::Idle,
            attempt_id: AttemptId::FIRST,
            fence: Fence::default(),
            totals: ExecutionTotals::default(),
            retry_history: RetryHistory::default(),
            recorded_events: Vec::new(),
            has_original_input: true,
        }
    }

    /// Creates the starting point of an execution with a question in its latest turn.
    #[must_use]
    pub fn waiting_for_input(record: &ExecutionRecord) -> Self {
        let ExecutionRecord { attempt_id, fence, spent, .. } = *record;
        let (phase, state) = (ExecutionPhase::Waiting { attempt_id }, ExecutionState::Waiting);
        let totals = ExecutionTotals { spent, ..ExecutionTotals::default() };
        Self { phase, state, attempt_id, fence, totals, ..Self::for_new_execution() }
    }

    /// Creates the starting point of the attempt that follows a failed one.
    #[must_use]
    pub fn after_failure(report: &FailedAttemptReport, retry_history: RetryHistory) -> Self {
        let FailedAttemptReport { attempt_id, fence, totals, .. } = *report;
        let (phase, state) = (ExecutionPhase::Paused { attempt_id }, ExecutionState::Failed);
        Self { phase, state, attempt_id, fence, totals, retry_history, ..Self::for_new_execution() }
    }

    /// Creates the starting point of an execution that was deferred in an earlier process.
    #[must_use]
    pub fn after_deferral(record: &ExecutionRecord, deferral: Deferral) -> Self {
        let ExecutionRecord { attempt_id, fence, .. } = *record;
        let (phase, state) = (ExecutionPhase::Paused { attempt_id }, ExecutionState::Failed);
        let (totals, retry_history) =
            (ExecutionTotals::from_record(record), RetryHistory::after_deferral(Some(deferral)));
        Self { phase, state, attempt_id, fence, totals, retry_history, ..Self::for_new_execution() }
    }

    /// Creates the starting point of held work that continues, with the events that an earlier process recorded.
    #[must_use]
    pub fn for_continued_work(
        record: &ExecutionRecord,
        recorded_events: Vec<EventKind>,
        has_original_input: bool,
    ) -> Self {
        let (state, attempt_id, fence) = (record.state, record.attempt_id, record.fence);
        let phase = match state {
            ExecutionState::Starting => ExecutionPhase::Starting { attempt_id },
            _ => ExecutionPhase::Running { attempt_id },
        };
        Self {
            phase,
            state,
            attempt_id,
            fence,
            totals: ExecutionTotals { exit_code: None, ..ExecutionTotals::from_record(record) },
            retry_history: RetryHistory::after_deferral(record.latest_deferral),
            recorded_events,
            has_original_input,
        }
    }
}
