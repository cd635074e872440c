//! Deferral of an execution: its quota is exhausted, its rate is limited, or the provider is overloaded.

use std::time::Duration;

use crate::model::agent::quota::{AccountCause, DeferralPolicy};
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::id::ExecutionId;

/// Upper limit of the time over which simultaneous resumptions are spread.
const MAX_RESUME_SPREAD: Duration = Duration::from_secs(30);

/// Upper limit of that time after a short wait, because a time that the provider states is accurate.
const MAX_SHORT_WAIT_SPREAD: Duration = Duration::from_secs(1);

/// Longest duration of a rate limit, regardless of the wording of its message: quotas are renewed after hours.
pub const MAX_RATE_LIMIT_WAIT: Duration = Duration::from_secs(600);

/// First wait after a rate limit or an overload without a stated end. It doubles each time.
pub const FIRST_BACKOFF: Duration = Duration::from_secs(5);

/// Maximum number of requests of one turn that an overloaded model rejects. The program's own retries count.
pub const MAX_OVERLOADS: u32 = 12;

/// Returns the cause if a failure with this code defers the execution or blocks the account.
#[must_use]
pub const fn account_cause(code: Code) -> Option<AccountCause> {
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
pub const fn first_wait(cause: AccountCause, deferral: &DeferralPolicy) -> Duration {
    match cause {
        AccountCause::RateLimited | AccountCause::Overloaded => FIRST_BACKOFF,
        AccountCause::QuotaExhausted | AccountCause::CredentialRefused => deferral.first_wait,
    }
}

/// Returns true if the failure means that the quota of an account is exhausted.
#[must_use]
pub fn is_quota_exhausted(failure: &Failure) -> bool {
    account_cause(failure.code) == Some(AccountCause::QuotaExhausted)
}

/// Returns the duration of a deferral after `before` earlier ones; `None` if the execution is not deferred.
///
/// If `retry_after` is unknown, the wait doubles each time, up to the maximum.
#[must_use]
pub fn deferral_wait(
    cause: AccountCause,
    deferral: &DeferralPolicy,
    before: u32,
    retry_after: Option<Duration>,
) -> Option<Duration> {
    let DeferralPolicy { max, times, .. } = *deferral;
    let first = first_wait(cause, deferral);
    let wait = retry_after.unwrap_or_else(|| doubled_wait(first, before).min(max));
    let is_wait_known = retry_after.is_some() || !first.is_zero();
    (is_wait_known && before < times && !max.is_zero() && wait <= max).then_some(wait)
}

/// Returns the number of requests of a turn that an overloaded model has rejected, after `before` earlier ones and this
/// failure.
#[must_use]
pub fn count_overloads(before: u32, failure: &Failure) -> u32 {
    match account_cause(failure.code) {
        Some(AccountCause::Overloaded) => before.saturating_add(model_requests(failure)),
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
    deferral: &DeferralPolicy,
    (deferrals, before): (u32, u32),
    failure: &Failure,
    retry_after: Option<Duration>,
) -> Option<Duration> {
    let requests = model_requests(failure);
    let expected = count_overloads(before, failure).saturating_add(requests);
    let wait = deferral_wait(AccountCause::Overloaded, deferral, deferrals, retry_after)?;
    let wait = retry_after.unwrap_or_else(|| wait.saturating_mul(requests).min(deferral.max));
    (expected <= MAX_OVERLOADS).then_some(wait)
}

/// Returns the number of requests to its model that a program made in a failed attempt.
const fn model_requests(failure: &Failure) -> u32 {
    failure.own_retries.saturating_add(1)
}

/// Returns a wait that doubles each time.
#[must_use]
pub fn doubled_wait(first: Duration, before: u32) -> Duration {
    first.saturating_mul(2u32.saturating_pow(before))
}

/// Returns the extra delay of an execution after a deferral of this duration: up to a twentieth, derived from the id,
/// so that it is the same after a restart.
#[must_use]
pub fn resume_delay(id: ExecutionId, wait: Duration) -> Duration {
    let [.., one, other] = id.0.into_bytes();
    let share = u32::from(u16::from_be_bytes([one, other]));
    let max_spread =
        if wait <= MAX_RATE_LIMIT_WAIT { MAX_SHORT_WAIT_SPREAD } else { MAX_RESUME_SPREAD };
    (wait / 20).min(max_spread) * share / u32::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn deferral() -> DeferralPolicy {
        let (max, first_wait) = (Duration::from_secs(7200), Duration::from_secs(900));
        DeferralPolicy { max, first_wait, times: 5 }
    }

    fn waits(deferral: &DeferralPolicy, retry_after: Option<u64>) -> Vec<Option<u64>> {
        let retry_after = retry_after.map(Duration::from_secs);
        of(AccountCause::QuotaExhausted, deferral, retry_after)
    }

    fn of(
        cause: AccountCause,
        deferral: &DeferralPolicy,
        retry_after: Option<Duration>,
    ) -> Vec<Option<u64>> {
        let wait =
            |before| deferral_wait(cause, deferral, before, retry_after).map(|wait| wait.as_secs());
        (0..6).map(wait).collect()
    }

    #[test]
    fn a_rate_limit_and_an_overload_back_off_from_five_seconds() {
        let expected = [Some(5), Some(10), Some(20), Some(40), Some(80), None];
        for cause in [AccountCause::RateLimited, AccountCause::Overloaded] {
            assert_eq!(of(cause, &deferral(), None), expected);
            assert_eq!(of(cause, &deferral(), Some(Duration::from_secs(20)))[..5], [Some(20); 5]);
            let provider_only = DeferralPolicy { first_wait: Duration::ZERO, ..deferral() };
            assert_eq!(of(cause, &provider_only, None), expected);
            assert_eq!(
                of(cause, &DeferralPolicy { max: Duration::ZERO, ..deferral() }, None),
                [None; 6]
            );
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
            let (mut deferrals, mut before, mut waited) = (0, 0, Vec::new());
            while let Some(wait) = overload_wait(&deferral(), (deferrals, before), &failure, None) {
                (deferrals, before) = (deferrals + 1, count_overloads(before, &failure));
                waited.push(wait.as_secs());
            }
            assert_eq!((waited.as_slice(), count_overloads(before, &failure)), (waits, all));
            let named = Some(Duration::from_secs(9));
            let first = overload_wait(&deferral(), (0, 0), &failure, named);
            assert_eq!(first, named.filter(|_| requests < 7), "a time that is named is taken");
        }
        let limited = Failure::new(Code::AgentRateLimited, "limited");
        assert_eq!(count_overloads(4, &limited), 4, "a rate limit is no overload");
    }

    #[test]
    fn an_unknown_wait_doubles_up_to_its_maximum_and_ends() {
        let expected = [Some(900), Some(1800), Some(3600), Some(7200), Some(7200), None];
        assert_eq!(waits(&deferral(), None), expected);
    }

    #[test]
    fn a_reported_wait_is_used_up_to_its_maximum() {
        assert_eq!(waits(&deferral(), Some(7200))[..2], [Some(7200); 2]);
        assert_eq!(waits(&deferral(), Some(7201)), [None; 6]);
    }

    #[test]
    fn a_maximum_of_zero_disables_deferral() {
        let disabled = DeferralPolicy { max: Duration::ZERO, ..deferral() };
        assert_eq!(
            (waits(&disabled, Some(0)), waits(&disabled, None)),
            (vec![None; 6], vec![None; 6])
        );
        let provider_only = DeferralPolicy { first_wait: Duration::ZERO, ..deferral() };
        assert_eq!(
            (waits(&provider_only, Some(9))[0], waits(&provider_only, None)[0]),
            (Some(9), None)
        );
    }

    #[test]
    fn only_account_failures_have_a_cause() {
        let of: Vec<_> = Code::ALL.iter().filter_map(|code| account_cause(*code)).collect();
        let blocking = of.iter().filter(|cause| cause.blocks_account()).count();
        assert_eq!((of.len(), blocking), (4, 3), "{of:?}");
    }

    proptest! {
        /// No execution resumes before its time, or long after it, and they do not resume all at once.
        #[test]
        fn resume_times_are_spread(seconds in 0u64..1_000_000, ids in proptest::collection::vec(any::<u128>(), 20)) {
            let wait = Duration::from_secs(seconds);
            let spreads: Vec<_> = ids
                .into_iter()
                .map(|id| resume_delay(ExecutionId(uuid::Uuid::from_u128(id)), wait))
                .collect();
            prop_assert!(spreads.iter().all(|spread| *spread <= MAX_RESUME_SPREAD && *spread <= wait / 20));
            prop_assert!(seconds > 600 || spreads.iter().all(|spread| *spread <= MAX_SHORT_WAIT_SPREAD));
            prop_assert!(seconds < 100 || spreads.iter().any(|spread| spread != &spreads[0]));
        }
    }
}
