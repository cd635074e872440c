//! Where an execution's actor takes up from.

use crate::decide::execution::Phase;
use crate::model::budget::Charge;
use crate::model::event::Fact;
use crate::model::execution::{Fence, Stamp, State};
use crate::model::progress::Stay;
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
    /// How often it was parked in its turn.
    pub parks: u32,
    /// What it has used up.
    pub spent: Charge,
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
            parks: 0,
            spent: Charge::default(),
            known: Vec::new(),
            is_whole: true,
        }
    }

    /// It asked for input in its latest turn.
    #[must_use]
    pub fn asked(record: &Record) -> Self {
        let Record { stamp, fence, spent, .. } = *record;
        let (phase, state) = (Phase::Waiting { stamp }, State::Waiting);
        Self { phase, state, stamp, fence, spent, ..Self::fresh() }
    }

    /// It was parked here.
    #[must_use]
    pub fn parked(stay: Stay) -> Self {
        let Stay { parked, stamp, fence, spent } = stay;
        let (phase, state, parks) = (Phase::Paused { stamp }, State::Failed, parked.times);
        Self { phase, state, stamp, fence, parks, spent, ..Self::fresh() }
    }

    /// Its work is held, and goes on; an earlier life has told these facts of it.
    #[must_use]
    pub fn held(record: &Record, known: Vec<Fact>) -> Self {
        let (state, stamp, fence) = (record.state, record.stamp, record.fence);
        let phase = match state {
            State::Starting => Phase::Starting { stamp },
            _ => Phase::Running { stamp },
        };
        let parks = record.parked.map_or(0, |parked| parked.times);
        let (spent, is_whole) = (record.spent, record.replayable);
        Self { phase, state, stamp, fence, parks, spent, known, is_whole }
    }
}
