//! Where an execution's actor takes up from.

use crate::decide::execution::Phase;
use crate::model::event::Fact;
use crate::model::execution::{Fence, Stamp, State};
use crate::model::record::Record;

/// Where an execution's actor takes up from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resumption {
    /// Its phase.
    pub phase: Phase,
    /// Its state, which is that of the phase.
    pub state: State,
    /// Its latest attempt.
    pub stamp: Stamp,
    /// The generation of its last claim.
    pub fence: Fence,
    /// What an earlier life wrote of the attempt that goes on.
    pub known: Vec<Fact>,
    /// Whether its request is as it was asked; what was masked is never tried again.
    pub is_whole: bool,
}

impl Resumption {
    /// Nothing was done yet.
    #[must_use]
    pub fn fresh() -> Self {
        let (stamp, fence) = (Stamp::FIRST, Fence::default());
        Self {
            phase: Phase::Idle,
            state: State::Idle,
            stamp,
            fence,
            known: Vec::new(),
            is_whole: true,
        }
    }

    /// It asked for input in this turn.
    #[must_use]
    pub fn asked(stamp: Stamp, fence: Fence) -> Self {
        let (phase, state) = (Phase::Waiting { stamp }, State::Waiting);
        Self { phase, state, stamp, fence, ..Self::fresh() }
    }

    /// Its work is held, and goes on; an earlier life has told these facts of it.
    #[must_use]
    pub fn held(record: &Record, known: Vec<Fact>) -> Self {
        let (state, stamp, fence) = (record.state, record.stamp, record.fence);
        let phase = match state {
            State::Starting => Phase::Starting { stamp },
            _ => Phase::Running { stamp },
        };
        Self { phase, state, stamp, fence, known, is_whole: record.replayable }
    }
}
