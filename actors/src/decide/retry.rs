//! Retry policy: decides which failed attempt is retried, and when.

pub mod breaker;
pub mod quota;

use std::time::Duration;

use crate::model::agent::quota::{AccountCause, DeferralPolicy};
use crate::model::agent::{Access, RetrySpec};
use crate::model::code::Category;
use crate::model::failure::Failure;

/// Longest pause, whatever the factor.
const MAX_BACKOFF: Duration = Duration::from_secs(3600);

/// Decision about a failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryDecision {
    /// The attempt was the last one.
    GiveUp,
    /// Another attempt follows after this pause.
    Retry(Duration),
    /// The execution is deferred for this time, and another attempt follows.
    Defer(Duration, AccountCause),
}

/// Failed attempt with the policies that apply to it.
#[derive(Debug, Clone, Copy)]
pub struct FailedAttempt<'a> {
    /// Retry policy.
    pub retry: &'a RetrySpec,
    /// Limits of the deferral.
    pub deferral: &'a DeferralPolicy,
    /// Access type of the agent.
    pub access: Access,
    /// Number of the attempt, from 1.
    pub number: u32,
    /// Number of earlier deferrals of the turn; deferred attempts do not count as retries.
    pub deferrals: u32,
    /// Number of requests that the program retried itself, in this attempt and earlier ones.
    pub own_retries: u32,
    /// Number of requests that an overloaded model rejected in attempts before a deferral.
    pub overloads: u32,
    /// True if the attempt had received its input.
    pub had_input: bool,
}

/// Decides about a failed attempt; `retry_after` is the duration of the failure's cause, if known.
///
/// Only transient failures are retried, and not before the cause has passed. `retry.max` also counts the retries of the
/// program itself: otherwise its retries and those of the supervisor would multiply. A read-write agent is not retried
/// after it received its input, unless its configuration permits it. A rejected credential is not retried. An exhausted
/// quota defers the execution instead of a retry after the ordinary pauses, which would only multiply the retries of
/// the agent.
#[must_use]
pub fn retry_decision(
    attempt: FailedAttempt<'_>,
    failure: &Failure,
    retry_after: Option<Duration>,
) -> RetryDecision {
    let FailedAttempt {
        retry,
        deferral,
        access,
        number,
        deferrals,
        own_retries,
        overloads,
        had_input,
    } = attempt;
    let is_safe = access == Access::ReadOnly || !had_input || retry.after_start;
    let decision = match quota::account_cause(failure.code) {
        _ if !is_safe => None,
        Some(AccountCause::CredentialRefused) => None,
        Some(cause @ AccountCause::Overloaded) => {
            let wait = quota::overload_wait(deferral, (deferrals, overloads), failure, retry_after);
            wait.map(|wait| RetryDecision::Defer(wait, cause))
        }
        Some(cause) => quota::deferral_wait(cause, deferral, deferrals, retry_after)
            .map(|wait| RetryDecision::Defer(wait, cause)),
        None if failure.category() == Category::Transient => {
            let retry_number = number.saturating_sub(deferrals);
            let has_retries_left = retry_number.saturating_add(own_retries) <= retry.max;
            let pause = if has_retries_left { retry_pause(retry, retry_number) } else { None };
            let pause = pause.map(|pause| pause.max(retry_after.unwrap_or_default()));
            pause.filter(|pause| *pause <= MAX_BACKOFF).map(RetryDecision::Retry)
        }
        None => None,
    };
    decision.unwrap_or(RetryDecision::GiveUp)
}

/// Returns the pause after a failed attempt; `None` if no other attempt follows.
fn retry_pause(spec: &RetrySpec, attempt: u32) -> Option<Duration> {
    (attempt <= spec.max).then(|| {
        let multiplier =
            spec.factor.powi(i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX));
        let seconds = spec.base.as_secs_f64() * multiplier;
        Duration::try_from_secs_f64(seconds).unwrap_or(MAX_BACKOFF).min(MAX_BACKOFF)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::code::Code;
    use proptest::prelude::*;

    fn first_attempt<'a>(retry: &'a RetrySpec, deferral: &'a DeferralPolicy) -> FailedAttempt<'a> {
        let (access, had_input) = (Access::ReadOnly, true);
        FailedAttempt {
            retry,
            deferral,
            access,
            number: 1,
            deferrals: 0,
            own_retries: 0,
            overloads: 0,
            had_input,
        }
    }

    fn pauses(access: Access, had_input: bool, code: Code) -> Vec<u64> {
        let (retry, deferral) = (RetrySpec::default(), DeferralPolicy::default());
        let failure = Failure::new(code, "it failed");
        let attempt = FailedAttempt { access, had_input, ..first_attempt(&retry, &deferral) };
        let decisions = (1..10)
            .map(|number| retry_decision(FailedAttempt { number, ..attempt }, &failure, None));
        let pauses = decisions.map_while(|decision| match decision {
            RetryDecision::Retry(pause) => Some(pause.as_secs()),
            RetryDecision::GiveUp | RetryDecision::Defer(..) => None,
        });
        pauses.collect()
    }

    #[test]
    fn transient_failures_are_retried_after_1_2_and_4_seconds() {
        assert_eq!(pauses(Access::ReadOnly, true, Code::TransientFailure), [1, 2, 4]);
    }

    #[test]
    fn retries_inside_the_program_are_counted() {
        let (retry, deferral) = (RetrySpec::default(), DeferralPolicy::default());
        let failure = Failure::new(Code::TransientFailure, "it failed");
        let decision_for = |number, own_retries| {
            let attempt = FailedAttempt { number, own_retries, ..first_attempt(&retry, &deferral) };
            retry_decision(attempt, &failure, None)
        };
        assert_eq!(decision_for(1, 2), RetryDecision::Retry(Duration::from_secs(1)));
        assert_eq!(decision_for(2, 4), RetryDecision::GiveUp);
        assert_eq!(
            (decision_for(1, 3), decision_for(1, u32::MAX)),
            (RetryDecision::GiveUp, RetryDecision::GiveUp)
        );
        assert_eq!(decision_for(3, 0), RetryDecision::Retry(Duration::from_secs(4)));
    }

    #[test]
    fn other_failures_are_not_retried() {
        for code in [Code::Exit, Code::NotStarted, Code::Timeout, Code::Internal] {
            assert_eq!(pauses(Access::ReadOnly, true, code), [0; 0], "{code}");
        }
    }

    #[test]
    fn a_writing_agent_is_retried_only_before_it_gets_its_input() {
        assert_eq!(pauses(Access::ReadWrite, true, Code::TransientFailure), [0; 0]);
        assert_eq!(pauses(Access::ReadWrite, false, Code::NoResources), [1, 2, 4]);
    }

    #[test]
    fn no_retry_starts_before_its_failure_passes() {
        let (retry, deferral) = (RetrySpec::default(), DeferralPolicy::default());
        let failure = Failure::new(Code::TransientFailure, "it failed");
        let decision_for = |retry_after| {
            retry_decision(
                first_attempt(&retry, &deferral),
                &failure,
                Some(Duration::from_secs(retry_after)),
            )
        };
        assert_eq!(decision_for(0), RetryDecision::Retry(Duration::from_secs(1)));
        assert_eq!(decision_for(90), RetryDecision::Retry(Duration::from_secs(90)));
        assert_eq!(
            decision_for(3601),
            RetryDecision::GiveUp,
            "it would keep its slot for longer than that"
        );
    }

    #[test]
    fn a_quota_is_waited_for_without_spending_a_retry() {
        let (retry, deferral) =
            (RetrySpec { max: 0, ..RetrySpec::default() }, DeferralPolicy::default());
        let quota_failure = Failure::new(Code::QuotaExceeded, "used up");
        let attempt = first_attempt(&retry, &deferral);
        let hour = Some(Duration::from_secs(3600));
        let deferred = |seconds| {
            RetryDecision::Defer(Duration::from_secs(seconds), AccountCause::QuotaExhausted)
        };
        assert_eq!(retry_decision(attempt, &quota_failure, hour), deferred(3600));
        assert_eq!(retry_decision(attempt, &quota_failure, None), deferred(900));
        assert_eq!(
            retry_decision(attempt, &quota_failure, hour.map(|hour| hour * 7)),
            RetryDecision::GiveUp
        );
        // After two deferrals the third attempt counts as the first.
        let retry = RetrySpec { max: 1, ..retry };
        let third = FailedAttempt { retry: &retry, number: 3, deferrals: 2, ..attempt };
        let failure = Failure::new(Code::TransientFailure, "it failed");
        assert_eq!(
            retry_decision(third, &failure, None),
            RetryDecision::Retry(Duration::from_secs(1))
        );
        assert_eq!(
            retry_decision(FailedAttempt { number: 4, ..third }, &failure, None),
            RetryDecision::GiveUp
        );
    }

    #[test]
    fn a_writing_agent_is_deferred_only_where_a_retry_is_safe() {
        let (retry, deferral) = (RetrySpec::default(), DeferralPolicy::default());
        let quota_failure = Failure::new(Code::QuotaExceeded, "used up");
        let writing_attempt =
            FailedAttempt { access: Access::ReadWrite, ..first_attempt(&retry, &deferral) };
        assert_eq!(retry_decision(writing_attempt, &quota_failure, None), RetryDecision::GiveUp);
        let attempt_before_input = FailedAttempt { had_input: false, ..writing_attempt };
        assert!(matches!(
            retry_decision(attempt_before_input, &quota_failure, None),
            RetryDecision::Defer(..)
        ));
        let safe_retry = RetrySpec { after_start: true, ..retry };
        assert!(matches!(
            retry_decision(
                FailedAttempt { retry: &safe_retry, ..writing_attempt },
                &quota_failure,
                None
            ),
            RetryDecision::Defer(..)
        ));
    }

    proptest! {
        /// No configuration makes a pause overflow, and no failure is retried more than `max` times.
        #[test]
        fn retry_pauses_are_bounded(max in 0u32..20, base in 0u64..100_000, factor in 0.0f64..1e9, number in 1u32..100) {
            let spec = RetrySpec { max, base: Duration::from_millis(base), factor, after_start: false };
            let failure = Failure::new(Code::NoResources, "it failed");
            let deferral = DeferralPolicy::default();
            match retry_decision(FailedAttempt { number, ..first_attempt(&spec, &deferral) }, &failure, None) {
                RetryDecision::Retry(pause) => prop_assert!(pause <= MAX_BACKOFF && number <= max),
                RetryDecision::GiveUp => prop_assert!(number > max),
                RetryDecision::Defer(..) => prop_assert!(false, "deferred"),
            }
        }
    }
}
