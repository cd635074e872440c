//! Which failed attempt is tried again, and when.

use std::time::Duration;

use super::quota;
use crate::model::agent::{Access, RetrySpec};
use crate::model::code::Category;
use crate::model::failure::Failure;
use crate::model::quota::{Cause, Parking};

/// The longest pause there is, whatever the factor says.
const LONGEST: Duration = Duration::from_secs(3600);

/// What becomes of an attempt that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It was the last.
    Last,
    /// There is another after this pause.
    Again(Duration),
    /// There is another when its account is of use again, which is so long from now.
    Parked(Duration),
}

/// The attempt that failed, and under which rules.
#[derive(Debug, Clone, Copy)]
pub struct Attempt<'a> {
    /// What is tried again.
    pub retry: &'a RetrySpec,
    /// What is parked.
    pub parking: &'a Parking,
    /// Whether the agent changes things.
    pub access: Access,
    /// Its number, from 1.
    pub number: u32,
    /// How often its turn was parked before; such attempts are not counted as tried again.
    pub parks: u32,
    /// Whether it had its input.
    pub had_input: bool,
}

/// Decides what becomes of an attempt whose failure `lasts` for so long, where that is known.
///
/// Only transient failures are tried again, and none sooner than it passes. An agent that changes
/// things is not tried again once it had its input, unless its configuration says that this is safe.
/// A credential that is not accepted is not tried again; a quota that is used up is waited for, and
/// never tried again within the ordinary pauses, which would only multiply the agent's own.
#[must_use]
pub fn fate(attempt: Attempt<'_>, failure: &Failure, lasts: Option<Duration>) -> Fate {
    let Attempt { retry, parking, access, number, parks, had_input } = attempt;
    let is_safe = access == Access::ReadOnly || !had_input || retry.after_start;
    let wait = match quota::cause(failure.code) {
        _ if !is_safe => None,
        Some(Cause::UsedUp) => quota::wait(parking, parks, lasts).map(Fate::Parked),
        Some(Cause::Refused) => None,
        None if failure.category() == Category::Transient => {
            let again = pause(retry, number.saturating_sub(parks));
            let again = again.map(|pause| pause.max(lasts.unwrap_or_default()));
            again.filter(|pause| *pause <= LONGEST).map(Fate::Again)
        }
        None => None,
    };
    wait.unwrap_or(Fate::Last)
}

/// The pause after a failed attempt, or `None` when there is no other.
fn pause(spec: &RetrySpec, attempt: u32) -> Option<Duration> {
    (attempt <= spec.max).then(|| {
        let times = spec.factor.powi(i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX));
        let seconds = spec.base.as_secs_f64() * times;
        Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST).min(LONGEST)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::code::Code;
    use proptest::prelude::*;

    fn first<'a>(retry: &'a RetrySpec, parking: &'a Parking) -> Attempt<'a> {
        let (access, had_input) = (Access::ReadOnly, true);
        Attempt { retry, parking, access, number: 1, parks: 0, had_input }
    }

    fn pauses(access: Access, had_input: bool, code: Code) -> Vec<u64> {
        let (retry, parking) = (RetrySpec::default(), Parking::default());
        let failure = Failure::new(code, "it failed");
        let attempt = Attempt { access, had_input, ..first(&retry, &parking) };
        let fates = (1..10).map(|number| fate(Attempt { number, ..attempt }, &failure, None));
        let pauses = fates.map_while(|fate| match fate {
            Fate::Again(pause) => Some(pause.as_secs()),
            Fate::Last | Fate::Parked(_) => None,
        });
        pauses.collect()
    }

    #[test]
    fn transient_failures_are_retried_after_1_2_and_4_seconds() {
        assert_eq!(pauses(Access::ReadOnly, true, Code::TransientFailure), [1, 2, 4]);
    }

    #[test]
    fn other_failures_are_not_retried() {
        for code in [Code::Exit, Code::NotStarted, Code::Timeout, Code::Internal] {
            assert_eq!(pauses(Access::ReadOnly, true, code), [0; 0], "{code}");
        }
    }

    #[test]
    fn an_agent_that_writes_is_retried_only_before_it_had_its_input() {
        assert_eq!(pauses(Access::ReadWrite, true, Code::TransientFailure), [0; 0]);
        assert_eq!(pauses(Access::ReadWrite, false, Code::NoResources), [1, 2, 4]);
    }

    #[test]
    fn nothing_is_tried_again_before_its_failure_passes() {
        let (retry, parking) = (RetrySpec::default(), Parking::default());
        let failure = Failure::new(Code::TransientFailure, "it failed");
        let after =
            |lasts| fate(first(&retry, &parking), &failure, Some(Duration::from_secs(lasts)));
        assert_eq!(after(0), Fate::Again(Duration::from_secs(1)));
        assert_eq!(after(90), Fate::Again(Duration::from_secs(90)));
        assert_eq!(after(3601), Fate::Last, "it would keep its slot for longer than that");
    }

    #[test]
    fn a_quota_is_waited_for_and_no_retry_is_spent_on_it() {
        let (retry, parking) = (RetrySpec { max: 0, ..RetrySpec::default() }, Parking::default());
        let used_up = Failure::new(Code::QuotaExceeded, "used up");
        let attempt = first(&retry, &parking);
        let hour = Some(Duration::from_secs(3600));
        assert_eq!(fate(attempt, &used_up, hour), Fate::Parked(Duration::from_secs(3600)));
        assert_eq!(fate(attempt, &used_up, None), Fate::Parked(Duration::from_secs(900)));
        assert_eq!(fate(attempt, &used_up, hour.map(|hour| hour * 7)), Fate::Last);
        // After two times in which it was parked the third attempt is its first.
        let retry = RetrySpec { max: 1, ..retry };
        let third = Attempt { retry: &retry, number: 3, parks: 2, ..attempt };
        let failure = Failure::new(Code::TransientFailure, "it failed");
        assert_eq!(fate(third, &failure, None), Fate::Again(Duration::from_secs(1)));
        assert_eq!(fate(Attempt { number: 4, ..third }, &failure, None), Fate::Last);
    }

    #[test]
    fn an_agent_that_writes_is_parked_by_the_rule_by_which_it_is_retried() {
        let (retry, parking) = (RetrySpec::default(), Parking::default());
        let used_up = Failure::new(Code::QuotaExceeded, "used up");
        let writes = Attempt { access: Access::ReadWrite, ..first(&retry, &parking) };
        assert_eq!(fate(writes, &used_up, None), Fate::Last);
        let before = Attempt { had_input: false, ..writes };
        assert!(matches!(fate(before, &used_up, None), Fate::Parked(_)));
        let safe = RetrySpec { after_start: true, ..retry };
        assert!(matches!(
            fate(Attempt { retry: &safe, ..writes }, &used_up, None),
            Fate::Parked(_)
        ));
    }

    proptest! {
        /// No configuration makes a pause overflow, and no failure is retried more than `max` times.
        #[test]
        fn pauses_are_bounded(max in 0u32..20, base in 0u64..100_000, factor in 0.0f64..1e9, number in 1u32..100) {
            let spec = RetrySpec { max, base: Duration::from_millis(base), factor, after_start: false };
            let failure = Failure::new(Code::NoResources, "it failed");
            let parking = Parking::default();
            match fate(Attempt { number, ..first(&spec, &parking) }, &failure, None) {
                Fate::Again(pause) => prop_assert!(pause <= LONGEST && number <= max),
                Fate::Last => prop_assert!(number > max),
                Fate::Parked(_) => prop_assert!(false, "parked"),
            }
        }
    }
}
