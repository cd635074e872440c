//! Deferral of an execution: its quota is exhausted, its rate is limited, or the provider is overloaded.

use std::time::Duration;

use crate::model::agent::quota::{AccountCause, Parking};
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::id::ExecutionId;

/// Upper limit of the time over which simultaneous resumptions are spread.
const WIDEST: Duration = Duration::from_secs(30);

/// Upper limit of that time after a short wait, because a time that the provider states is accurate.
const WIDEST_SHORT: Duration = Duration::from_secs(1);

/// Longest duration of a rate limit, regardless of the wording of its message: quotas are renewed after hours.
pub const SHORT: Duration = Duration::from_secs(600);

/// First wait after a rate limit or an overload without a stated end. It doubles each time.
pub const BACK_OFF: Duration = Duration::from_secs(5);

/// Maximum number of requests of one turn that an overloaded model rejects. The program's own retries count.
pub const MOST_OVERLOADS: u32 = 12;

/// Returns the cause if a failure with this code defers the execution or blocks the account.
#[must_use]
pub const fn cause(code: Code) -> Option<AccountCause> {
    match code {
        Code::QuotaExceeded => Some(AccountCause::QuotaExhausted),
        Code::NotAuthenticated => Some(AccountCause::CredentialRefused),
        Code::AgentRateLimited => Some(AccountCause::RateLimited),
        Code::AgentOverloaded => Some(AccountCause::Overloaded),
        _ => None,
    }
}

/// Returns the first wait if the provider states none.
#[must_use]
pub const fn first_wait(cause: AccountCause, parking: &Parking) -> Duration {
    match cause {
        AccountCause::RateLimited | AccountCause::Overloaded => BACK_OFF,
        AccountCause::QuotaExhausted | AccountCause::CredentialRefused => parking.usual,
    }
}

/// Returns true if the failure means that the quota of an account is exhausted.
#[must_use]
pub fn is_used_up(failure: &Failure) -> bool {
    cause(failure.code) == Some(AccountCause::QuotaExhausted)
}

/// Returns the duration of a deferral after `before` earlier ones; `None` if the execution is not deferred.
///
/// If `lasts` is unknown, the wait doubles each time, up to the maximum.
#[must_use]
pub fn wait(
    cause: AccountCause,
    parking: &Parking,
    before: u32,
    lasts: Option<Duration>,
) -> Option<Duration> {
    let Parking { max, times, .. } = *parking;
    let usual = first_wait(cause, parking);
    let wait = lasts.unwrap_or_else(|| doubled_wait(usual, before).min(max));
    let is_told = lasts.is_some() || !usual.is_zero();
    (is_told && before < times && !max.is_zero() && wait <= max).then_some(wait)
}

/// Returns the number of requests of a turn that an overloaded model has rejected, after `before` earlier ones and this
/// failure.
#[must_use]
pub fn overloads(before: u32, failure: &Failure) -> u32 {
    match cause(failure.code) {
        Some(AccountCause::Overloaded) => before.saturating_add(requests(failure)),
        _ => before,
    }
}

/// Returns the duration of a deferral because of an overloaded model, after `before` rejected requests in earlier
/// attempts; `None` if the execution is not deferred.
///
/// A program that retried several times has waited in between too. Its next attempt follows after as many first waits,
/// and is omitted if it would probably exceed the maximum number of requests.
#[must_use]
pub fn overload_wait(
    parking: &Parking,
    (parks, before): (u32, u32),
    failure: &Failure,
    lasts: Option<Duration>,
) -> Option<Duration> {
    let requests = requests(failure);
    let expected = overloads(before, failure).saturating_add(requests);
    let wait = wait(AccountCause::Overloaded, parking, parks, lasts)?;
    let wait = lasts.unwrap_or_else(|| wait.saturating_mul(requests).min(parking.max));
    (expected <= MOST_OVERLOADS).then_some(wait)
}

/// Returns the number of requests to its model that a program made in a failed attempt.
const fn requests(failure: &Failure) -> u32 {
    failure.own_retries.saturating_add(1)
}

/// Returns a wait that doubles each time.
#[must_use]
pub fn doubled_wait(usual: Duration, before: u32) -> Duration {
    usual.saturating_mul(2u32.saturating_pow(before))
}

/// Returns the extra delay of an execution after a deferral of this duration: up to a twentieth, derived from the id,
/// so that it is the same after a restart.
#[must_use]
pub fn spread(id: ExecutionId, wait: Duration) -> Duration {
    let [.., one, other] = id.0.into_bytes();
    let share = u32::from(u16::from_be_bytes([one, other]));
    let widest = if wait <= SHORT { WIDEST_SHORT } else { WIDEST };
    (wait / 20).min(widest) * share / u32::from(u16::MAX)
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
        of(AccountCause::QuotaExhausted, parking, lasts)
    }

    fn of(cause: AccountCause, parking: &Parking, lasts: Option<Duration>) -> Vec<Option<u64>> {
        let wait = |before| wait(cause, parking, before, lasts).map(|wait| wait.as_secs());
        (0..6).map(wait).collect()
    }

    #[test]
    fn a_rate_limit_and_an_overload_back_off_from_five_seconds() {
        let expected = [Some(5), Some(10), Some(20), Some(40), Some(80), None];
        for cause in [AccountCause::RateLimited, AccountCause::Overloaded] {
            assert_eq!(of(cause, &parking(), None), expected);
            assert_eq!(of(cause, &parking(), Some(Duration::from_secs(20)))[..5], [Some(20); 5]);
            let told_only = Parking { usual: Duration::ZERO, ..parking() };
            assert_eq!(of(cause, &told_only, None), expected);
            assert_eq!(of(cause, &Parking { max: Duration::ZERO, ..parking() }, None), [None; 6]);
        }
    }

    #[test]
    fn an_overloaded_model_receives_at_most_twelve_requests() {
        // Waits of programs that retry this many times in an attempt, and the total number of their requests.
        let expected: [(u32, &[u64], u32); 5] = [
            (1, &[5, 10, 20, 40, 80], 6),
            (3, &[15, 30, 60], 12),
            (5, &[25], 10),
            (6, &[30], 12),
            (7, &[], 7),
        ];
        for (requests, waits, all) in expected {
            let failure = Failure::new(Code::AgentOverloaded, "overloaded");
            let failure = Failure { own_retries: requests - 1, ..failure };
            let (mut parks, mut before, mut waited) = (0, 0, Vec::new());
            while let Some(wait) = overload_wait(&parking(), (parks, before), &failure, None) {
                (parks, before) = (parks + 1, overloads(before, &failure));
                waited.push(wait.as_secs());
            }
            assert_eq!((waited.as_slice(), overloads(before, &failure)), (waits, all));
            let named = Some(Duration::from_secs(9));
            let first = overload_wait(&parking(), (0, 0), &failure, named);
            assert_eq!(first, named.filter(|_| requests < 7), "a time that is named is taken");
        }
        let limited = Failure::new(Code::AgentRateLimited, "limited");
        assert_eq!(overloads(4, &limited), 4, "a rate limit is no overload");
    }

    #[test]
    fn an_unknown_wait_doubles_up_to_its_maximum_and_ends() {
        let expected = [Some(900), Some(1800), Some(3600), Some(7200), Some(7200), None];
        assert_eq!(waits(&parking(), None), expected);
    }

    #[test]
    fn a_reported_wait_is_used_up_to_its_maximum() {
        assert_eq!(waits(&parking(), Some(7200))[..2], [Some(7200); 2]);
        assert_eq!(waits(&parking(), Some(7201)), [None; 6]);
    }

    #[test]
    fn a_maximum_of_zero_disables_deferral() {
        let nothing = Parking { max: Duration::ZERO, ..parking() };
        assert_eq!(
            (waits(&nothing, Some(0)), waits(&nothing, None)),
            (vec![None; 6], vec![None; 6])
        );
        let told_only = Parking { usual: Duration::ZERO, ..parking() };
        assert_eq!((waits(&told_only, Some(9))[0], waits(&told_only, None)[0]), (Some(9), None));
    }

    #[test]
    fn only_account_failures_have_a_cause() {
        let of: Vec<_> = Code::ALL.iter().filter_map(|code| cause(*code)).collect();
        let shut = of.iter().filter(|cause| cause.shuts_the_account()).count();
        assert_eq!((of.len(), shut), (4, 3), "{of:?}");
    }

    proptest! {
        /// No execution resumes before its time, or long after it, and they do not resume all at once.
        #[test]
        fn resume_times_are_spread(seconds in 0u64..1_000_000, ids in proptest::collection::vec(any::<u128>(), 20)) {
            let wait = Duration::from_secs(seconds);
            let spreads: Vec<_> = ids
                .into_iter()
                .map(|id| spread(ExecutionId(uuid::Uuid::from_u128(id)), wait))
                .collect();
            prop_assert!(spreads.iter().all(|spread| *spread <= WIDEST && *spread <= wait / 20));
            prop_assert!(seconds > 600 || spreads.iter().all(|spread| *spread <= WIDEST_SHORT));
            prop_assert!(seconds < 100 || spreads.iter().any(|spread| spread != &spreads[0]));
        }
    }
}
