//! How long an execution is parked whose account has used up what it may.

use std::time::Duration;

use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::id::ExecutionId;
use crate::model::quota::{Cause, Parking};

/// No herd is spread over more than this.
const WIDEST: Duration = Duration::from_secs(30);

/// What a failure says of the credential under which the agent works.
#[must_use]
pub const fn cause(code: Code) -> Option<Cause> {
    match code {
        Code::QuotaExceeded => Some(Cause::UsedUp),
        Code::NotAuthenticated => Some(Cause::Refused),
        _ => None,
    }
}

/// Whether the quota of an account is used up.
#[must_use]
pub fn is_used_up(failure: &Failure) -> bool {
    cause(failure.code) == Some(Cause::UsedUp)
}

/// For how long an execution is parked that was so many times before; `None` when it is not.
///
/// Where nobody says how long it `lasts` the wait doubles each time, up to the longest.
#[must_use]
pub fn wait(parking: &Parking, before: u32, lasts: Option<Duration>) -> Option<Duration> {
    let Parking { max, usual, times } = *parking;
    let wait = lasts.unwrap_or_else(|| growing(usual, before).min(max));
    let is_told = lasts.is_some() || !usual.is_zero();
    (is_told && before < times && !max.is_zero() && wait <= max).then_some(wait)
}

/// A wait that doubles each time.
#[must_use]
pub fn growing(usual: Duration, before: u32) -> Duration {
    usual.saturating_mul(2u32.saturating_pow(before))
}

/// How much later than others an execution wakes that was parked for so long: up to a twentieth, by
/// its id, so that it is the same after a restart.
#[must_use]
pub fn spread(id: ExecutionId, wait: Duration) -> Duration {
    let [.., one, other] = id.0.into_bytes();
    let share = u32::from(u16::from_be_bytes([one, other]));
    (wait / 20).min(WIDEST) * share / u32::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parking() -> Parking {
        let (max, usual) = (Duration::from_secs(7200), Duration::from_secs(900));
        Parking { max, usual, times: 5 }
    }

    fn waits(parking: &Parking, lasts: Option<u64>) -> Vec<Option<u64>> {
        let lasts = lasts.map(Duration::from_secs);
        (0..6).map(|before| wait(parking, before, lasts).map(|wait| wait.as_secs())).collect()
    }

    #[test]
    fn a_wait_that_nobody_knows_doubles_up_to_the_longest_and_ends() {
        let expected = [Some(900), Some(1800), Some(3600), Some(7200), Some(7200), None];
        assert_eq!(waits(&parking(), None), expected);
    }

    #[test]
    fn a_wait_that_is_told_is_taken_unless_it_is_too_long() {
        assert_eq!(waits(&parking(), Some(7200))[..2], [Some(7200); 2]);
        assert_eq!(waits(&parking(), Some(7201)), [None; 6]);
    }

    #[test]
    fn zero_parks_nothing() {
        let nothing = Parking { max: Duration::ZERO, ..parking() };
        assert_eq!(
            (waits(&nothing, Some(0)), waits(&nothing, None)),
            (vec![None; 6], vec![None; 6])
        );
        let told_only = Parking { usual: Duration::ZERO, ..parking() };
        assert_eq!((waits(&told_only, Some(9))[0], waits(&told_only, None)[0]), (Some(9), None));
    }

    #[test]
    fn only_two_failures_are_of_the_credential() {
        let of: Vec<_> = Code::ALL.iter().filter_map(|code| cause(*code)).collect();
        assert!(of.contains(&Cause::UsedUp) && of.len() <= 2, "{of:?}");
    }

    proptest! {
        /// Nobody wakes before the time, nor long after it, and not all at one time.
        #[test]
        fn a_herd_is_spread(seconds in 0u64..1_000_000, ids in proptest::collection::vec(any::<u128>(), 20)) {
            let wait = Duration::from_secs(seconds);
            let spreads: Vec<_> = ids
                .into_iter()
                .map(|id| spread(ExecutionId(uuid::Uuid::from_u128(id)), wait))
                .collect();
            prop_assert!(spreads.iter().all(|spread| *spread <= WIDEST && *spread <= wait / 20));
            prop_assert!(seconds < 100 || spreads.iter().any(|spread| spread != &spreads[0]));
        }
    }
}
