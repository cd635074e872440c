//! Starting point of an execution's actor.

use crate::decide::execution::ExecutionPhase;
use crate::model::agent::budget::Charge;
use crate::model::agent::quota::Deferral;
use crate::model::execution::event::EventKind;
use crate::model::execution::progress::DeferredExecution;
use crate::model::execution::record::Record;
use crate::model::execution::{AttemptId, Fence, State};

/// Starting point of an execution's actor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StartingPoint {
    /// Phase of the execution.
    pub phase: ExecutionPhase,
    /// State that corresponds to the phase.
    pub state: State,
    /// Id of the latest attempt.
    pub attempt_id: AttemptId,
    /// Generation of the last claim.
    pub fence: Fence,
    /// Number of deferrals in the turn.
    pub deferrals: u32,
    /// Number of requests of the turn that an overloaded model rejected.
    pub overloads: u32,
    /// Amounts that the execution has used.
    pub spent: Charge,
    /// Events that an earlier process recorded about the resumed attempt.
    pub recorded_events: Vec<EventKind>,
    /// True if its request is the original one; an execution whose input is lost is never retried.
    pub is_unredacted: bool,
}

impl StartingPoint {
    /// Creates the starting point of a new execution.
    #[must_use]
    pub fn fresh() -> Self {
        let (attempt_id, fence) = (AttemptId::FIRST, Fence::default());
        Self {
            phase: ExecutionPhase::Idle,
            state: State::Idle,
            attempt_id,
            fence,
            deferrals: 0,
            overloads: 0,
            spent: Charge::default(),
            recorded_events: Vec::new(),
            is_unredacted: true,
        }
    }

    /// Creates the starting point of an execution with a question in its latest turn.
    #[must_use]
    pub fn waiting_for_input(record: &Record) -> Self {
        let Record { attempt_id, fence, spent, .. } = *record;
        let (phase, state) = (ExecutionPhase::Waiting { attempt_id }, State::Waiting);
        Self { phase, state, attempt_id, fence, spent, ..Self::fresh() }
    }

    /// Creates the starting point of a deferred execution.
    #[must_use]
    pub fn deferred(execution: DeferredExecution) -> Self {
        let DeferredExecution { deferral, attempt_id, fence, spent } = execution;
        let (phase, state) = (ExecutionPhase::Paused { attempt_id }, State::Failed);
        let Deferral { times: deferrals, overloads, .. } = deferral;
        Self { phase, state, attempt_id, fence, deferrals, overloads, spent, ..Self::fresh() }
    }

    /// Creates the starting point of held work that continues, with the events that an earlier process recorded.
    #[must_use]
    pub fn of_held_work(
        record: &Record,
        recorded_events: Vec<EventKind>,
        is_unredacted: bool,
    ) -> Self {
        let (state, attempt_id, fence) = (record.state, record.attempt_id, record.fence);
        let phase = match state {
            State::Starting => ExecutionPhase::Starting { attempt_id },
            _ => ExecutionPhase::Running { attempt_id },
        };
        let (deferrals, overloads) =
            record.deferred.map_or((0, 0), |deferred| (deferred.times, deferred.overloads));
        let spent = record.spent;
        Self {
            phase,
            state,
            attempt_id,
            fence,
            deferrals,
            overloads,
            spent,
            recorded_events,
            is_unredacted,
        }
    }
}
