//! What is told to those who asked to be told, when it is tried again, and when no more.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::model::event::{Event, Fact, Speaker};
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
        Fact::Artifact { .. } | Fact::Said { speaker: Speaker::Agent, .. } => true,
        _ => false,
    }
}

/// Whether a fact is the end. Every end is followed by the clean-up, in the same commit.
fn is_end(fact: &Fact) -> bool {
    matches!(fact, Fact::Moved(moved) if moved.to == State::Cleanup)
}

/// What callers see of a state that does not belong to an end, or to a retry.
#[derive(PartialEq, Eq)]
enum Shown {
    Submitted,
    Working,
    Asking,
}

fn shown(state: State) -> Option<Shown> {
    match state {
        State::Idle => Some(Shown::Submitted),
        State::Starting | State::Running => Some(Shown::Working),
        State::Waiting => Some(Shown::Asking),
        State::Completed | State::Failed | State::Timeout | State::Cancelled | State::Cleanup => {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::model::execution::{MOVES, Move, Stamp};
    use crate::model::id::{ExecutionId, PrincipalId};

    fn second(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(second, 0).unwrap()
    }

    fn standing(delivered: u64) -> Standing {
        let stage = PushStage::Open;
        Standing { delivered, failures: 0, failing_since: None, due: second(0), stage }
    }

    fn pending(delivered: u64, ended: bool) -> Pending {
        Pending {
            execution: ExecutionId(Uuid::nil()),
            id: "it".to_owned(),
            registration: Uuid::nil(),
            owner: PrincipalId(Uuid::nil()),
            standing: standing(delivered),
            ended,
        }
    }

    fn moved((from, to): (State, State)) -> Fact {
        let reason = "because".to_owned();
        Fact::Moved(Move { from, to, stamp: Stamp::FIRST, at: second(0), reason })
    }

    fn events(facts: &[Fact]) -> Vec<Event> {
        let numbered = (1..).zip(facts);
        numbered.map(|(number, fact)| Event { number, at: second(0), fact: fact.clone() }).collect()
    }

    #[test]
    fn callers_hear_of_work_of_questions_and_of_the_end() {
        use State::{Cleanup, Idle, Running, Starting, Waiting};
        let told: Vec<_> = MOVES.iter().filter(|made| is_told(&moved(**made))).copied().collect();
        let mut wanted = vec![(Idle, Starting), (Running, Waiting), (Waiting, Starting)];
        wanted.extend(MOVES.iter().filter(|(_, to)| *to == Cleanup));
        assert_eq!(told.len(), wanted.len(), "{told:?}");
        assert!(wanted.iter().all(|made| told.contains(made)), "{told:?}");
    }

    #[test]
    fn events_are_told_one_by_one_and_a_retry_is_not_seen() {
        use State::{Cleanup, Completed, Failed, Idle, Running, Starting};
        let said = |speaker| {
            let (message, pieces) = ("m".to_owned(), Vec::new());
            Fact::Said { speaker, message, pieces }
        };
        let id = "a".to_owned();
        let (name, description, pieces, append, last) = (None, None, Vec::new(), false, true);
        let artifact = Fact::Artifact { id, name, description, pieces, append, last };
        let all = events(&[
            moved((Idle, Starting)),
            moved((Starting, Running)),
            Fact::Spawned { pid: 1 },
            moved((Running, Failed)),
            moved((Failed, Starting)),
            moved((Starting, Running)),
            artifact,
            said(Speaker::Agent),
            said(Speaker::AgentEnds),
            moved((Running, Completed)),
            moved((Completed, Cleanup)),
            moved((Cleanup, Idle)),
        ]);
        let tell = |event, last| Step::Tell { event, last };
        let mut told = Vec::new();
        let mut known = 0;
        while let Step::Tell { event, last } = next(&pending(known, true), &all, second(0)) {
            told.push(tell(event, last));
            known = event;
        }
        assert_eq!(told, [tell(1, false), tell(7, false), tell(8, false), tell(11, true)]);
        assert_eq!(
            next(&pending(1, false), &all[..4], second(5)),
            Step::Note(Standing { due: second(5), ..standing(4) }),
            "nothing to tell, and known"
        );
        assert_eq!(next(&pending(4, false), &[], second(5)), Step::Rest);
        let finished = Standing { due: second(5), stage: PushStage::Finished, ..standing(12) };
        assert_eq!(next(&pending(11, true), &all[11..], second(5)), Step::Note(finished));
    }

    #[test]
    fn a_notice_that_fails_is_tried_again_after_1_2_4_seconds_and_20_times_at_most() {
        let (mut standing, mut now, mut pauses) = (standing(3), second(0), Vec::new());
        let day = Duration::from_secs(86_400);
        while standing.stage == PushStage::Open {
            standing = after(standing, 4, Told::Failed, now, day);
            pauses.push((standing.due - now).num_seconds());
            now = standing.due;
        }
        assert_eq!(pauses[..8], [1, 2, 4, 8, 16, 32, 60, 60]);
        assert_eq!((pauses.len(), standing.stage, standing.delivered), (20, PushStage::GivenUp, 3));
    }

    #[test]
    fn a_notice_that_is_too_old_is_given_up_and_one_that_arrives_begins_anew() {
        let hour = Duration::from_secs(3600);
        let failed = after(standing(3), 4, Told::Failed, second(0), hour);
        let later = after(failed, 4, Told::Failed, second(3599), hour);
        assert_eq!((later.stage, later.failures), (PushStage::Open, 2));
        assert_eq!(after(later, 4, Told::Failed, second(3600), hour).stage, PushStage::GivenUp);
        let received = after(later, 4, Told::Received { last: false }, second(9), hour);
        assert_eq!(received, Standing { due: second(9), ..standing(4) });
        let last = after(later, 4, Told::Received { last: true }, second(9), hour);
        assert_eq!(last.stage, PushStage::Finished);
    }
}
