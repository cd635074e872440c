//! Deferral of an execution: its quota is exhausted, its rate is limited, or the provider is overloaded.

use std::time::Duration;

use crate::model::agent::quota::{DeferralCause, DeferralPolicy};
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
pub const MAX_OVERLOADED_REQUESTS: u32 = 12;

/// Returns the cause if a failure with this code defers the execution or blocks the account.
#[must_use]
pub const fn deferral_cause(code: Code) -> Option<DeferralCause> {
    match code {
        Code::QuotaExceeded => Some(DeferralCause::QuotaExhausted),
        Code::NotAuthenticated => Some(DeferralCause::CredentialRefused),
        Code::AgentRateLimited => Some(DeferralCause::RateLimited),
        Code::AgentOverloaded => Some(DeferralCause::Overloaded),
        _ => None,
    }
}

/// Returns the first wait if the provider states none.
#[must_use]
pub const fn first_wait(cause: DeferralCause, deferral_policy: &DeferralPolicy) -> Duration {
    match cause {
        DeferralCause::RateLimited | DeferralCause::Overloaded => FIRST_BACKOFF,
        DeferralCause::QuotaExhausted | DeferralCause::CredentialRefused => {
            deferral_policy.first_wait
        }
    }
}

/// Returns true if the failure means that the quota of an account is exhausted.
#[must_use]
pub fn is_quota_exhausted(failure: &Failure) -> bool {
    deferral_cause(failure.code) == Some(DeferralCause::QuotaExhausted)
}

/// Returns the duration of a deferral after `earlier_deferrals` others; `None` if the execution is not deferred.
///
/// If `retry_after` is unknown, the wait doubles each time, up to the maximum.
#[must_use]
pub fn deferral_wait(
    cause: DeferralCause,
    deferral_policy: &DeferralPolicy,
    earlier_deferrals: u32,
    retry_after: Option<Duration>,
) -> Option<Duration> {
    let DeferralPolicy { max_wait: max, max_deferrals, .. } = *deferral_policy;
    let first = first_wait(cause, deferral_policy);
    let wait = retry_after.unwrap_or_else(|| doubled_wait(first, earlier_deferrals).min(max));
    let is_wait_known = retry_after.is_some() || !first.is_zero();
    (is_wait_known && earlier_deferrals < max_deferrals && !max.is_zero() && wait <= max)
        .then_some(wait)
}

/// Returns the number of requests of a turn that an overloaded model has rejected: `earlier_overloads` and those of
/// this failure.
#[must_use]
pub fn count_overloaded_requests(earlier_overloads: u32, failure: &Failure) -> u32 {
    match deferral_cause(failure.code) {
        Some(DeferralCause::Overloaded) => {
            earlier_overloads.saturating_add(model_request_count(failure))
        }
        _ => earlier_overloads,
    }
}

/// Returns the duration of a deferral because of an overloaded model, after `earlier_overloads` rejected requests in
/// earlier attempts; `None` if the execution is not deferred.
///
/// A program that retried several times has waited in between too. Its next attempt follows after as many first waits,
/// and is omitted if it would probably exceed the maximum number of requests.
#[must_use]
pub fn overload_wait(
    deferral_policy: &DeferralPolicy,
    (deferrals, earlier_overloads): (u32, u32),
    failure: &Failure,
    retry_after: Option<Duration>,
) -> Option<Duration> {
    let model_requests = model_request_count(failure);
    let expected_requests =
        count_overloaded_requests(earlier_overloads, failure).saturating_add(model_requests);
    let wait = deferral_wait(DeferralCause::Overloaded, deferral_policy, deferrals, retry_after)?;
    let wait = retry_after
        .unwrap_or_else(|| wait.saturating_mul(model_requests).min(deferral_policy.max_wait));
    (expected_requests <= MAX_OVERLOADED_REQUESTS).then_some(wait)
}

/// Returns the number of requests to its model that a program made in a failed attempt.
const fn model_request_count(failure: &Failure) -> u32 {
    failure.own_retries.saturating_add(1)
}

/// Returns a wait that doubles each time.
#[must_use]
pub fn doubled_wait(first: Duration, doublings: u32) -> Duration {
    first.saturating_mul(2u32.saturating_pow(doublings))
}

/// Returns the extra delay of an execution after a deferral of this duration: up to a twentieth, derived from the id,
/// so that it is the same after a restart.
#[must_use]
pub fn resume_jitter(id: ExecutionId, wait: Duration) -> Duration {
    let [.., high_byte, low_byte] = id.0.into_bytes();
    let share = u32::from(u16::from_be_bytes([high_byte, low_byte]));
    let max_spread =
        if wait <= MAX_RATE_LIMIT_WAIT { MAX_SHORT_WAIT_SPREAD } else { MAX_RESUME_SPREAD };
    (wait / 20).min(max_spread) * share / u32::from(u16::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn deferral_policy() -> DeferralPolicy {
        let (max, first_wait) = (Duration::from_secs(7200), Duration::from_secs(900));
        DeferralPolicy { max_wait: max, first_wait, max_deferrals: 5 }
    }

    fn waits(deferral_policy: &DeferralPolicy, retry_after: Option<u64>) -> Vec<Option<u64>> {
        let retry_after = retry_after.map(Duration::from_secs);
        waits_for(DeferralCause::QuotaExhausted, deferral_policy, retry_after)
    }

    fn waits_for(
        cause: DeferralCause,
        deferral_policy: &DeferralPolicy,
        retry_after: Option<Duration>,
    ) -> Vec<Option<u64>> {
        let wait = |earlier_deferrals| {
            deferral_wait(cause, deferral_policy, earlier_deferrals, retry_after)
                .map(|wait| wait.as_secs())
        };
        (0..6).map(wait).collect()
    }

    #[test]
    fn a_rate_limit_and_an_overload_back_off_from_five_seconds() {
        let expected = [Some(5), Some(10), Some(20), Some(40), Some(80), None];
        for cause in [DeferralCause::RateLimited, DeferralCause::Overloaded] {
            assert_eq!(waits_for(cause, &deferral_policy(), None), expected);
            assert_eq!(
                waits_for(cause, &deferral_policy(), Some(Duration::from_secs(20)))[..5],
                [Some(20); 5]
            );
            let provider_only = DeferralPolicy { first_wait: Duration::ZERO, ..deferral_policy() };
            assert_eq!(waits_for(cause, &provider_only, None), expected);
            assert_eq!(
                waits_for(
                    cause,
                    &DeferralPolicy { max_wait: Duration::ZERO, ..deferral_policy() },
                    None
                ),
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
        for (requests, waits, total_requests) in expected {
            let failure = Failure::new(Code::AgentOverloaded, "overloaded");
            let failure = Failure { own_retries: requests - 1, ..failure };
            let (mut deferrals, mut overloads, mut actual_waits) = (0, 0, Vec::new());
            while let Some(wait) =
                overload_wait(&deferral_policy(), (deferrals, overloads), &failure, None)
            {
                (deferrals, overloads) =
                    (deferrals + 1, count_overloaded_requests(overloads, &failure));
                actual_waits.push(wait.as_secs());
            }
            assert_eq!(
                (actual_waits.as_slice(), count_overloaded_requests(overloads, &failure)),
                (waits, total_requests)
            );
            let stated_wait = Some(Duration::from_secs(9));
            let first = overload_wait(&deferral_policy(), (0, 0), &failure, stated_wait);
            assert_eq!(
                first,
                stated_wait.filter(|_| requests < 7),
                "a time that is named is taken"
            );
        }
        let rate_limit = Failure::new(Code::AgentRateLimited, "limited");
        assert_eq!(count_overloaded_requests(4, &rate_limit), 4, "a rate limit is no overload");
    }

    #[test]
    fn an_unknown_wait_doubles_up_to_its_maximum_and_ends() {
        let expected = [Some(900), Some(1800), Some(3600), Some(7200), Some(7200), None];
        assert_eq!(waits(&deferral_policy(), None), expected);
    }

    #[test]
    fn a_reported_wait_is_used_up_to_its_maximum() {
        assert_eq!(waits(&deferral_policy(), Some(7200))[..2], [Some(7200); 2]);
        assert_eq!(waits(&deferral_policy(), Some(7201)), [None; 6]);
    }

    #[test]
    fn a_maximum_of_zero_disables_deferral() {
        let disabled = DeferralPolicy { max_wait: Duration::ZERO, ..deferral_policy() };
        assert_eq!(
            (waits(&disabled, Some(0)), waits(&disabled, None)),
            (vec![None; 6], vec![None; 6])
        );
        let provider_only = DeferralPolicy { first_wait: Duration::ZERO, ..deferral_policy() };
        assert_eq!(
            (waits(&provider_only, Some(9))[0], waits(&provider_only, None)[0]),
            (Some(9), None)
        );
    }

    #[test]
    fn only_account_failures_have_a_cause() {
        let causes: Vec<_> = Code::ALL.iter().filter_map(|code| deferral_cause(*code)).collect();
        let blocking = causes.iter().filter(|cause| cause.blocks_account()).count();
        assert_eq!((causes.len(), blocking), (4, 3), "{causes:?}");
    }

    proptest! {
        /// No execution resumes before its time, or long after it, and they do not resume all at once.
        #[test]
        fn resume_times_are_spread(seconds in 0u64..1_000_000, ids in proptest::collection::vec(any::<u128>(), 20)) {
            let wait = Duration::from_secs(seconds);
            let spreads: Vec<_> = ids
                .into_iter()
                .map(|id| resume_jitter(ExecutionId(uuid::Uuid::from_u128(id)), wait))
                .collect();
            prop_assert!(spreads.iter().all(|spread| *spread <= MAX_RESUME_SPREAD && *spread <= wait / 20));
            prop_assert!(seconds > 600 || spreads.iter().all(|spread| *spread <= MAX_SHORT_WAIT_SPREAD));
            prop_assert!(seconds < 100 || spreads.iter().any(|spread| spread != &spreads[0]));
        }
    }
}
