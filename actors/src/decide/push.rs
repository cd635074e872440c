//! What is told to those who asked to be told, when it is tried again, and when no more.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::model::event::{Event, Fact};
use crate::model::execution::State;
use crate::model::push::{Pending, PushStage, Standing};

/// The pause after the first failure; each further one doubles it.
const FIRST_PAUSE: Duration = Duration::from_secs(1);

/// The longest pause between two tries.
pub const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Tries of one notice.
pub const TRIES: u32 = 20;

/// What to do about a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Tell it about the event of this number.
    Tell {
        /// The event.
        event: u64,
        /// Whether it is the end, after which nothing is told.
        last: bool,
    },
    /// Note that there was nothing to tell.
    Note(Standing),
    /// Nothing, until more happens.
    Rest,
}

/// What became of a try.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// The receiver has it.
    Received {
        /// Whether it was the end.
        last: bool,
    },
    /// It has not, or nobody knows.
    Failed,
}

/// Decides about a target, given the events that it does not know.
#[must_use]
pub fn next(pending: &Pending, events: &[Event], now: DateTime<Utc>) -> Step {
    let standing = pending.standing;
    let seen = |event: &&Event| event.number > standing.delivered;
    let told = events.iter().filter(seen).find(|event| is_told(&event.fact));
    if let Some(event) = told {
        return Step::Tell { event: event.number, last: is_end(&event.fact) };
    }
    let delivered = events.last().map_or(standing.delivered, |event| event.number);
    if pending.ended {
        let stage = PushStage::Finished;
        return Step::Note(Standing { delivered, stage, due: now, ..standing });
    }
    if delivered > standing.delivered {
        return Step::Note(Standing { delivered, due: now, ..standing });
    }
    Step::Rest
}

/// Decides how a target stands after a try to tell it about `event`.
#[must_use]
pub fn after(
    standing: Standing,
    event: u64,
    told: Told,
    now: DateTime<Utc>,
    max_age: Duration,
) -> Standing {
    match told {
        Told::Received { last } => Standing {
            delivered: event,
            failures: 0,
            failing_since: None,
            due: now,
            stage: if last { PushStage::Finished } else { PushStage::Open },
        },
        Told::Failed => {
            let failures = standing.failures.saturating_add(1);
            let since = standing.failing_since.unwrap_or(now);
            let is_old = (now - since).to_std().is_ok_and(|age| age >= max_age);
            let given_up = failures >= TRIES || is_old;
            Standing {
                delivered: standing.delivered,
                failures,
                failing_since: Some(since),
                due: now + TimeDelta::from_std(pause(failures)).unwrap_or_default(),
                stage: if given_up { PushStage::GivenUp } else { PushStage::Open },
            }
        }
    }
}

/// The pause after so many failures.
fn pause(failures: u32) -> Duration {
    let factor = 1_u32.checked_shl(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    FIRST_PAUSE.saturating_mul(factor).min(LONGEST_PAUSE)
}

/// Whether callers see a difference. Of the moves that lead to an end they see the last alone,
/// the one into the clean-up, since a failed attempt that is tried again is no end.
fn is_told(fact: &Fact) -> bool {
    match fact {
        Fact::Moved(moved) => match (shown(moved.from), shown(moved.to)) {
            (Some(from), Some(to)) => from != to,
            (None, _) | (_, None) => is_end(fact),
        },
        Fact::Artifact { .. } => true,
        _ => false,
    }
}

/// Whether a fact is the end. Every end is followed by the clean-up, in the same commit.
fn is_end(fact: &Fact) -> bool {
    matches!(fact, Fact::Moved(moved) if moved.to == State::Cleanup)
}

/// What callers see.
#[derive(PartialEq, Eq)]
enum Shown {
    Submitted,
    Working,
    Asking,
}

fn shown(state: State) -> Option<Shown> {
    match state {
        State::Idle => Some(Shown::Submitted),
        State::Starting | State::Running | State::Failed => Some(Shown::Working),
        State::Waiting => Some(Shown::Asking),
        State::Completed | State::Timeout | State::Cancelled | State::Cleanup => None,
    }
}
