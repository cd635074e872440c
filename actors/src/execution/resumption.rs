//! Starting point of an execution's actor.

use crate::decide::execution::ExecutionPhase;
use crate::model::agent::budget::Charge;
use crate::model::agent::quota::Deferral;
use crate::model::execution::event::EventKind;
use crate::model::execution::progress::Stay;
use crate::model::execution::record::Record;
use crate::model::execution::{AttemptId, Fence, State};

/// Starting point of an execution's actor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resumption {
    /// Phase of the execution.
    pub phase: ExecutionPhase,
    /// State that corresponds to the phase.
    pub state: State,
    /// Id of the latest attempt.
    pub stamp: AttemptId,
    /// Generation of the last claim.
    pub fence: Fence,
    /// Number of deferrals in the turn.
    pub parks: u32,
    /// Number of requests of the turn that an overloaded model rejected.
    pub overloads: u32,
    /// Amounts that the execution has used.
    pub spent: Charge,
    /// Events that an earlier process recorded about the resumed attempt.
    pub known: Vec<EventKind>,
    /// True if its request is the original one; an execution whose input is lost is never retried.
    pub is_whole: bool,
}

impl Resumption {
    /// Creates the starting point of a new execution.
    #[must_use]
    pub fn fresh() -> Self {
        let (stamp, fence) = (AttemptId::FIRST, Fence::default());
        Self {
            phase: ExecutionPhase::Idle,
            state: State::Idle,
            stamp,
            fence,
            parks: 0,
            overloads: 0,
            spent: Charge::default(),
            known: Vec::new(),
            is_whole: true,
        }
    }

    /// Creates the starting point of an execution with a question in its latest turn.
    #[must_use]
    pub fn waiting_for_input(record: &Record) -> Self {
        let Record { stamp, fence, spent, .. } = *record;
        let (phase, state) = (ExecutionPhase::Waiting { stamp }, State::Waiting);
        Self { phase, state, stamp, fence, spent, ..Self::fresh() }
    }

    /// Creates the starting point of a deferred execution.
    #[must_use]
    pub fn parked(stay: Stay) -> Self {
        let Stay { parked, stamp, fence, spent } = stay;
        let (phase, state) = (ExecutionPhase::Paused { stamp }, State::Failed);
        let Deferral { times: parks, overloads, .. } = parked;
        Self { phase, state, stamp, fence, parks, overloads, spent, ..Self::fresh() }
    }

    /// Creates the starting point of held work that continues, with the events that an earlier process recorded.
    #[must_use]
    pub fn held(record: &Record, known: Vec<EventKind>, is_whole: bool) -> Self {
        let (state, stamp, fence) = (record.state, record.stamp, record.fence);
        let phase = match state {
            State::Starting => ExecutionPhase::Starting { stamp },
            _ => ExecutionPhase::Running { stamp },
        };
        let (parks, overloads) =
            record.parked.map_or((0, 0), |parked| (parked.times, parked.overloads));
        let spent = record.spent;
        Self { phase, state, stamp, fence, parks, overloads, spent, known, is_whole }
    }
}
