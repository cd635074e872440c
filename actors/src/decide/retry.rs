//! Retry policy: decides which failed attempt is retried, and when.

pub mod breaker;
pub mod deferral;

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::model::agent::quota::{Deferral, DeferralCause, DeferralPolicy};
use crate::model::agent::{Access, AgentSpec, RetrySpec};
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
    Defer(Duration, DeferralCause),
}

/// Retry policy of an agent's executions.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RetryPolicy {
    /// Number of retries, and the pauses between them.
    pub retry: RetrySpec,
    /// Limits of the deferral.
    pub deferral_policy: DeferralPolicy,
    /// Access type of the agent.
    pub access: Access,
}

impl RetryPolicy {
    /// Returns the policy of an agent.
    #[must_use]
    pub const fn from_spec(spec: &AgentSpec) -> Self {
        Self { retry: spec.retry, deferral_policy: spec.quota.deferral_policy, access: spec.access }
    }

    /// Returns the policy of an execution whose input is lost: it can neither run again nor continue after a deferral.
    #[must_use]
    pub const fn without_further_attempts(mut self) -> Self {
        self.retry.max_retries = 0;
        self.deferral_policy.max_wait = Duration::ZERO;
        self
    }
}

/// Counts of an execution that limit its retries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RetryHistory {
    /// Number of deferrals in the turn; deferred attempts do not count as retries.
    pub deferrals: u32,
    /// Number of requests that the program retried itself, in all attempts since the latest deferral.
    pub program_retries: u32,
    /// Number of requests that an overloaded model rejected in attempts before a deferral of the turn.
    pub overloaded_requests: u32,
}

impl RetryHistory {
    /// Returns the history of an execution with this latest deferral of the turn.
    #[must_use]
    pub fn after_deferral(deferral: Option<Deferral>) -> Self {
        let (deferrals, overloads) =
            deferral.map_or((0, 0), |deferral| (deferral.times, deferral.overloads));
        Self { deferrals, program_retries: 0, overloaded_requests: overloads }
    }

    /// Counts the requests that the program retried itself before this failure.
    pub const fn count_program_retries(&mut self, failure: &Failure) {
        self.program_retries = self.program_retries.saturating_add(failure.own_retries);
    }

    /// Records a deferral after this failed attempt in this history, and returns it.
    pub fn record_deferral(
        &mut self,
        attempt: u32,
        failure: &Failure,
        (until, cause): (DateTime<Utc>, DeferralCause),
    ) -> Deferral {
        self.deferrals += 1;
        self.program_retries = 0; // A deferral uses up no retries, neither those of the service nor those of the program.
        self.overloaded_requests =
            deferral::count_overloaded_requests(self.overloaded_requests, failure);
        let Self { deferrals: times, overloaded_requests: overloads, .. } = *self;
        Deferral { until, times, attempt, cause, overloads }
    }
}

/// Failed attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FailedAttempt {
    /// Number of the attempt, from 1.
    pub number: u32,
    /// True if the attempt had received its input.
    pub may_have_received_input: bool,
    /// Duration of the failure's cause, if known.
    pub retry_after: Option<Duration>,
}

/// Decides about a failed attempt.
///
/// Only transient failures are retried, and not before the cause has passed. `retry.max` also counts the retries of the
/// program itself: otherwise its retries and those of the supervisor would multiply. A read-write agent is not retried
/// after it received its input, unless its configuration permits it. A rejected credential is not retried. An exhausted
/// quota defers the execution instead of a retry after the ordinary pauses, which would only multiply the retries of
/// the agent.
#[must_use]
pub fn decide_retry(
    policy: &RetryPolicy,
    history: RetryHistory,
    attempt: FailedAttempt,
    failure: &Failure,
) -> RetryDecision {
    let RetryPolicy { retry, deferral_policy, access } = policy;
    let RetryHistory { deferrals, program_retries: own_retries, overloaded_requests: overloads } =
        history;
    let FailedAttempt { number, may_have_received_input: had_input, retry_after } = attempt;
    let is_retry_safe = *access == Access::ReadOnly || !had_input || retry.retries_after_start;
    let decision = match deferral::deferral_cause(failure.code) {
        _ if !is_retry_safe => None,
        Some(DeferralCause::CredentialRefused) => None,
        Some(cause @ DeferralCause::Overloaded) => {
            let wait = deferral::overload_wait(
                deferral_policy,
                (deferrals, overloads),
                failure,
                retry_after,
            );
            wait.map(|wait| RetryDecision::Defer(wait, cause))
        }
        Some(cause) => deferral::deferral_wait(cause, deferral_policy, deferrals, retry_after)
            .map(|wait| RetryDecision::Defer(wait, cause)),
        None if failure.category() == Category::Transient => {
            let retry_number = number.saturating_sub(deferrals);
            let has_retries_left = retry_number.saturating_add(own_retries) <= retry.max_retries;
            let pause = if has_retries_left { retry_pause(retry, retry_number) } else { None };
            let pause = pause.map(|pause| pause.max(retry_after.unwrap_or_default()));
            pause.filter(|pause| *pause <= MAX_BACKOFF).map(RetryDecision::Retry)
        }
        None => None,
    };
    decision.unwrap_or(RetryDecision::GiveUp)
}

/// Returns the pause after a failed attempt; `None` if no other attempt follows.
fn retry_pause(spec: &RetrySpec, retry_number: u32) -> Option<Duration> {
    (retry_number <= spec.max_retries).then(|| {
        let multiplier = spec
            .backoff_factor
            .powi(i32::try_from(retry_number.saturating_sub(1)).unwrap_or(i32::MAX));
        let seconds = spec.base_delay.as_secs_f64() * multiplier;
        Duration::try_from_secs_f64(seconds).unwrap_or(MAX_BACKOFF).min(MAX_BACKOFF)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::code::Code;
    use proptest::prelude::*;

    const SECOND: Duration = Duration::from_secs(1);
    const HOUR: Duration = Duration::from_secs(3600);

    fn policy(access: Access) -> RetryPolicy {
        RetryPolicy {
            retry: RetrySpec::default(),
            deferral_policy: DeferralPolicy::default(),
            access,
        }
    }

    fn attempt(number: u32) -> FailedAttempt {
        FailedAttempt { number, may_have_received_input: true, retry_after: None }
    }

    /// Decides about an attempt of a read-only agent with the default policy.
    fn decision(history: RetryHistory, attempt: FailedAttempt, code: Code) -> RetryDecision {
        let failure = Failure::new(code, "it failed");
        decide_retry(&policy(Access::ReadOnly), history, attempt, &failure)
    }

    fn pauses(access: Access, had_input: bool, code: Code) -> Vec<u64> {
        let failure = Failure::new(code, "it failed");
        let decisions = (1..10).map(|number| {
            let attempt = FailedAttempt { may_have_received_input: had_input, ..attempt(number) };
            decide_retry(&policy(access), RetryHistory::default(), attempt, &failure)
        });
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
        let decision_for = |number, own_retries| {
            let mut history = RetryHistory::default();
            let failure = Failure::new(Code::TransientFailure, "it failed");
            history.count_program_retries(&Failure { own_retries, ..failure });
            decision(history, attempt(number), Code::TransientFailure)
        };
        assert_eq!(decision_for(1, 2), RetryDecision::Retry(SECOND));
        assert_eq!(decision_for(2, 4), RetryDecision::GiveUp);
        assert_eq!(
            (decision_for(1, 3), decision_for(1, u32::MAX)),
            (RetryDecision::GiveUp, RetryDecision::GiveUp)
        );
        assert_eq!(decision_for(3, 0), RetryDecision::Retry(4 * SECOND));
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
        let decision_for = |retry_after| {
            let retry_after = Some(Duration::from_secs(retry_after));
            let attempt = FailedAttempt { retry_after, ..attempt(1) };
            decision(RetryHistory::default(), attempt, Code::TransientFailure)
        };
        assert_eq!(decision_for(0), RetryDecision::Retry(SECOND));
        assert_eq!(decision_for(90), RetryDecision::Retry(90 * SECOND));
        assert_eq!(
            decision_for(3601),
            RetryDecision::GiveUp,
            "it would keep its slot for longer than that"
        );
    }

    #[test]
    fn a_quota_is_waited_for_without_spending_a_retry() {
        let mut policy = policy(Access::ReadOnly);
        policy.retry.max_retries = 0;
        let quota_failure = Failure::new(Code::QuotaExceeded, "used up");
        let decision_for = |retry_after| {
            let attempt = FailedAttempt { retry_after, ..attempt(1) };
            decide_retry(&policy, RetryHistory::default(), attempt, &quota_failure)
        };
        let deferred = |wait| RetryDecision::Defer(wait, DeferralCause::QuotaExhausted);
        assert_eq!(decision_for(Some(HOUR)), deferred(HOUR));
        assert_eq!(decision_for(None), deferred(900 * SECOND));
        assert_eq!(decision_for(Some(HOUR * 7)), RetryDecision::GiveUp);
        // After two deferrals the third attempt counts as the first.
        policy.retry.max_retries = 1;
        let history = RetryHistory { deferrals: 2, ..RetryHistory::default() };
        let failure = Failure::new(Code::TransientFailure, "it failed");
        let decision_for = |number| decide_retry(&policy, history, attempt(number), &failure);
        assert_eq!(decision_for(3), RetryDecision::Retry(SECOND));
        assert_eq!(decision_for(4), RetryDecision::GiveUp);
    }

    #[test]
    fn a_writing_agent_is_deferred_only_where_a_retry_is_safe() {
        let policy = policy(Access::ReadWrite);
        let quota_failure = Failure::new(Code::QuotaExceeded, "used up");
        let decision_for = |policy: &RetryPolicy, had_input| {
            let attempt = FailedAttempt { may_have_received_input: had_input, ..attempt(1) };
            decide_retry(policy, RetryHistory::default(), attempt, &quota_failure)
        };
        assert_eq!(decision_for(&policy, true), RetryDecision::GiveUp);
        assert!(matches!(decision_for(&policy, false), RetryDecision::Defer(..)));
        let retry = RetrySpec { retries_after_start: true, ..policy.retry };
        let safe_policy = RetryPolicy { retry, ..policy };
        assert!(matches!(decision_for(&safe_policy, true), RetryDecision::Defer(..)));
    }

    #[test]
    fn without_its_input_an_execution_does_not_run_again() {
        let policy = policy(Access::ReadOnly).without_further_attempts();
        for code in [Code::TransientFailure, Code::QuotaExceeded, Code::AgentOverloaded] {
            let failure = Failure::new(code, "it failed");
            let decision = decide_retry(&policy, RetryHistory::default(), attempt(1), &failure);
            assert_eq!(decision, RetryDecision::GiveUp, "{code}");
        }
    }

    #[test]
    fn a_deferral_counts_in_the_history_and_after_a_restart() {
        let (mut history, until) = (RetryHistory::default(), DateTime::UNIX_EPOCH);
        let failure = Failure::new(Code::AgentOverloaded, "busy");
        let failure = Failure { own_retries: 1, ..failure };
        for times in 1..4 {
            history.count_program_retries(&failure);
            let deferral =
                history.record_deferral(times, &failure, (until, DeferralCause::Overloaded));
            assert_eq!((deferral.times, deferral.overloads), (times, 2 * times));
            assert_eq!(RetryHistory::after_deferral(Some(deferral)), history);
        }
        assert_eq!(RetryHistory::after_deferral(None), RetryHistory::default());
    }

    proptest! {
        /// No configuration makes a pause overflow, and no failure is retried more than `max_retries` times.
        #[test]
        fn retry_pauses_are_bounded(max_retries in 0u32..20, base in 0u64..100_000, backoff_factor in 0.0f64..1e9, number in 1u32..100) {
            let retry = RetrySpec { max_retries, base_delay: Duration::from_millis(base), backoff_factor, retries_after_start: false };
            let policy = RetryPolicy { retry, ..policy(Access::ReadOnly) };
            let failure = Failure::new(Code::NoResources, "it failed");
            match decide_retry(&policy, RetryHistory::default(), attempt(number), &failure) {
                RetryDecision::Retry(pause) => prop_assert!(pause <= MAX_BACKOFF && number <= max_retries),
                RetryDecision::GiveUp => prop_assert!(number > max_retries),
                RetryDecision::Defer(..) => prop_assert!(false, "deferred"),
            }
        }
    }
}
