//! Whether anything is begun under a credential: not while it is known to be of no use, and then one
//! at first.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::quota::growing;
use crate::model::id::ExecutionId;
use crate::model::quota::Cause;

/// Whatever is said, it is tried once in this time.
const LONGEST: TimeDelta = TimeDelta::hours(24);

/// A clock that was set back by more than this makes the end of a wait meaningless.
const TOLERANCE: TimeDelta = TimeDelta::minutes(1);

/// A credential that was of no use. One that is has none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Circuit {
    /// Why.
    pub cause: Cause,
    /// Since when.
    pub since: DateTime<Utc>,
    /// Until when nothing is begun.
    pub until: DateTime<Utc>,
    /// Who was let through to try it.
    pub probe: Option<ExecutionId>,
    /// How often it was of no use again when it was tried.
    pub again: u32,
}

/// What happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A run failed for want of it.
    Failed {
        /// Which.
        id: ExecutionId,
        /// Why.
        cause: Cause,
        /// Until when, where that is known.
        until: Option<DateTime<Utc>>,
        /// How long it is left alone the first time, where that is not known.
        usual: Duration,
        /// When.
        now: DateTime<Utc>,
    },
    /// Somebody would try it.
    Try {
        /// Who.
        id: ExecutionId,
        /// When.
        now: DateTime<Utc>,
    },
    /// A run was served under it.
    Served(ExecutionId),
    /// A run is over, or waits.
    Left(ExecutionId),
    /// Somebody says that it was mended, where it was refused.
    Mended,
}

/// What may begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Standing {
    /// All.
    Closed,
    /// Nothing.
    Open,
    /// One, who tries it.
    HalfOpen,
    /// Nothing: one tries it.
    Tried,
}

impl Standing {
    /// The published word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Open => "open",
            Self::HalfOpen => "half-open",
            Self::Tried => "tried",
        }
    }
}

/// What may begin now.
#[must_use]
pub fn standing(circuit: Option<&Circuit>, now: DateTime<Utc>) -> Standing {
    match circuit {
        None => Standing::Closed,
        Some(Circuit { probe: Some(_), .. }) => Standing::Tried,
        Some(Circuit { since, until, .. }) if now < *until && now >= *since - TOLERANCE => {
            Standing::Open
        }
        Some(_) => Standing::HalfOpen,
    }
}

/// Decides what becomes of it.
#[must_use]
pub fn step(circuit: Option<Circuit>, event: Event) -> Option<Circuit> {
    match event {
        Event::Failed { id, cause, until, usual, now } => {
            let tried = circuit.is_some_and(|circuit| circuit.probe == Some(id));
            let again = circuit.map_or(0, |circuit| circuit.again + u32::from(tried));
            let until = until.or_else(|| after(now, growing(usual, again)));
            let until = until.unwrap_or(DateTime::<Utc>::MAX_UTC).min(now + LONGEST);
            Some(failed(
                circuit.filter(|_| !tried),
                Circuit { cause, since: now, until, probe: None, again },
            ))
        }
        Event::Try { id, now } if standing(circuit.as_ref(), now) == Standing::HalfOpen => {
            circuit.map(|circuit| Circuit { probe: Some(id), ..circuit })
        }
        Event::Served(id) => circuit.filter(|circuit| circuit.probe != Some(id)),
        Event::Left(id) => circuit.map(|circuit| Circuit {
            probe: circuit.probe.filter(|probe| *probe != id),
            ..circuit
        }),
        Event::Mended => circuit.filter(|circuit| circuit.cause != Cause::Refused),
        Event::Try { .. } => circuit,
    }
}

/// What was open stays so for as long as the later of the two says; who tries it goes on.
fn failed(before: Option<Circuit>, now: Circuit) -> Circuit {
    match before {
        None => now,
        Some(before) => Circuit {
            cause: now.cause,
            since: before.since.min(now.since),
            until: before.until.max(now.until),
            ..before
        },
    }
}

fn after(now: DateTime<Utc>, wait: Duration) -> Option<DateTime<Utc>> {
    now.checked_add_signed(TimeDelta::from_std(wait).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn at(second: i64) -> DateTime<Utc> {
        DateTime::from_timestamp(1_800_000_000 + second, 0).unwrap()
    }

    fn run(id: u128) -> ExecutionId {
        ExecutionId(uuid::Uuid::from_u128(id))
    }

    fn fails(id: u128, now: i64, until: Option<i64>) -> Event {
        let usual = Duration::from_secs(100);
        let (id, until) = (run(id), until.map(at));
        Event::Failed { id, cause: Cause::UsedUp, until, usual, now: at(now) }
    }

    fn after(events: &[Event]) -> Option<Circuit> {
        events.iter().fold(None, |circuit, event| step(circuit, *event))
    }

    fn stands(events: &[Event], now: i64) -> Standing {
        standing(after(events).as_ref(), at(now))
    }

    #[test]
    fn nothing_begins_until_the_time_and_then_one_and_then_all() {
        let (failed, tries) = (fails(1, 0, Some(60)), Event::Try { id: run(2), now: at(60) });
        assert_eq!(stands(&[failed], 59), Standing::Open);
        assert_eq!(stands(&[failed], 60), Standing::HalfOpen);
        assert_eq!(
            stands(&[failed, Event::Try { id: run(2), now: at(59) }], 60),
            Standing::HalfOpen
        );
        assert_eq!(stands(&[failed, tries], 60), Standing::Tried);
        let other = Event::Try { id: run(3), now: at(60) };
        assert_eq!(after(&[failed, tries, other]).unwrap().probe, Some(run(2)));
        assert_eq!(stands(&[failed, tries, Event::Served(run(9))], 60), Standing::Tried);
        assert_eq!(stands(&[failed, tries, Event::Served(run(2))], 60), Standing::Closed);
    }

    #[test]
    fn who_tries_in_vain_opens_it_again_and_who_leaves_lets_another_try() {
        let (failed, tries) = (fails(1, 0, Some(60)), Event::Try { id: run(2), now: at(60) });
        let again = [failed, tries, fails(2, 61, Some(90))];
        assert_eq!((stands(&again, 89), stands(&again, 90)), (Standing::Open, Standing::HalfOpen));
        assert_eq!(stands(&[failed, tries, Event::Left(run(2))], 60), Standing::HalfOpen);
        assert_eq!(stands(&[failed, tries, Event::Left(run(3))], 60), Standing::Tried);
    }

    #[test]
    fn a_time_that_nobody_tells_doubles_when_it_was_tried_in_vain() {
        let first = fails(1, 0, None);
        assert_eq!(after(&[first]).unwrap().until, at(100));
        let tries = Event::Try { id: run(2), now: at(100) };
        assert_eq!(after(&[first, tries, fails(2, 100, None)]).unwrap().until, at(300));
        // Runs that were under way already say nothing new.
        assert_eq!(after(&[first, fails(3, 1, None)]).unwrap().until, at(101));
    }

    #[test]
    fn the_later_end_counts_and_none_is_later_than_a_day() {
        assert_eq!(after(&[fails(1, 0, Some(60)), fails(2, 1, Some(30))]).unwrap().until, at(60));
        assert_eq!(after(&[fails(1, 0, Some(900_000))]).unwrap().until, at(86_400));
    }

    #[test]
    fn a_clock_that_is_set_back_lets_one_try() {
        assert_eq!(stands(&[fails(1, 0, Some(60))], -30), Standing::Open);
        assert_eq!(stands(&[fails(1, 0, Some(60))], -3600), Standing::HalfOpen);
    }

    #[test]
    fn only_what_was_refused_is_mended() {
        let used_up = fails(1, 0, Some(60));
        let Event::Failed { id, until, usual, now, .. } = used_up else { unreachable!() };
        let refused = Event::Failed { id, cause: Cause::Refused, until, usual, now };
        assert_eq!(stands(&[refused, Event::Mended], 1), Standing::Closed);
        assert_eq!(stands(&[used_up, Event::Mended], 1), Standing::Open);
    }

    fn event() -> impl Strategy<Value = (i64, u8, u128, i64)> {
        (0i64..50, 0u8..5, 0u128..4, 0i64..200)
    }

    proptest! {
        /// Whatever comes: at most one tries, only who was let through closes it, and it never stays
        /// open past the latest time that was told.
        #[test]
        fn one_at_most_tries_and_no_end_is_forgotten(steps in proptest::collection::vec(event(), 0..60)) {
            let (mut circuit, mut now, mut latest): (Option<Circuit>, i64, i64) = (None, 0, 0);
            for (passes, kind, id, lasts) in steps {
                now += passes;
                let stood = standing(circuit.as_ref(), at(now));
                let before = circuit;
                let event = match kind {
                    0 => {
                        latest = latest.max(now + lasts);
                        fails(id, now, Some(now + lasts))
                    }
                    1 => Event::Try { id: run(id), now: at(now) },
                    2 => Event::Served(run(id)),
                    3 => Event::Left(run(id)),
                    _ => Event::Mended,
                };
                circuit = step(circuit, event);
                let probe = |circuit: Option<Circuit>| circuit.and_then(|circuit| circuit.probe);
                if probe(circuit) != probe(before) && probe(circuit).is_some() {
                    prop_assert_eq!((kind, stood), (1, Standing::HalfOpen));
                    prop_assert_eq!(probe(before), None);
                }
                if before.is_some() && circuit.is_none() {
                    prop_assert_eq!((kind, probe(before)), (2, Some(run(id))));
                }
                prop_assert!(circuit.is_none_or(|circuit| circuit.until <= at(latest)));
            }
            prop_assert!(standing(circuit.as_ref(), at(latest)) != Standing::Open);
        }
    }
}
