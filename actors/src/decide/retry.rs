//! Which failed attempt is tried again, and after which pause.

use std::time::Duration;

use crate::model::agent::{Access, RetrySpec};
use crate::model::code::Category;
use crate::model::failure::Failure;

/// The longest pause there is, whatever the factor says.
const LONGEST: Duration = Duration::from_secs(3600);

/// So many pauses are counted as what a policy is ready to wait.
const MOST_PAUSES: usize = 100;

/// The pause before the next attempt, or `None` when there is none.
///
/// Only transient failures are tried again. An agent that changes things is not tried again once
/// it had its input, unless its configuration says that this is safe.
#[must_use]
pub fn pause(
    spec: &RetrySpec,
    access: Access,
    attempt: u32,
    had_input: bool,
    failure: &Failure,
) -> Option<Duration> {
    let transient = failure.category() == Category::Transient;
    let safe = access == Access::ReadOnly || !had_input || spec.after_start;
    (transient && safe && attempt <= spec.max).then(|| {
        let times = spec.factor.powi(i32::try_from(attempt.saturating_sub(1)).unwrap_or(i32::MAX));
        let seconds = spec.base.as_secs_f64() * times;
        Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST).min(LONGEST)
    })
}

/// The pause before the next attempt where the failure will not pass before `left` is over. It is
/// waited for where that takes no longer than all the pauses that are left; waiting for more is not
/// what they are for.
#[must_use]
pub fn pause_for(
    spec: &RetrySpec,
    access: Access,
    attempt: u32,
    had_input: bool,
    (failure, left): (&Failure, Duration),
) -> Option<Duration> {
    let pauses = (attempt..=spec.max)
        .map_while(|attempt| pause(spec, access, attempt, had_input, failure))
        .take(MOST_PAUSES);
    let reach = pauses.fold(Duration::ZERO, Duration::saturating_add);
    let usual = pause(spec, access, attempt, had_input, failure)?;
    (left <= reach).then(|| usual.max(left))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::code::Code;
    use proptest::prelude::*;

    fn pauses(access: Access, had_input: bool, code: Code) -> Vec<u64> {
        let failure = Failure::new(code, "it failed");
        (1..10)
            .map_while(|attempt| pause(&RetrySpec::default(), access, attempt, had_input, &failure))
            .map(|pause| pause.as_secs())
            .collect()
    }

    #[test]
    fn transient_failures_are_retried_after_1_2_and_4_seconds() {
        assert_eq!(pauses(Access::ReadOnly, true, Code::TransientFailure), [1, 2, 4]);
    }

    #[test]
    fn a_time_that_is_known_is_waited_for_where_it_is_near() {
        let failure = Failure::new(Code::QuotaExceeded, "it failed");
        let waits = |attempt, left, access| {
            let left = Duration::from_secs(left);
            pause_for(&RetrySpec::default(), access, attempt, true, (&failure, left))
        };
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        assert_eq!(waits(1, 0, Access::ReadOnly), seconds(1));
        assert_eq!(waits(1, 7, Access::ReadOnly), seconds(7), "1, 2 and 4 seconds are left");
        assert_eq!(waits(1, 8, Access::ReadOnly), None);
        assert_eq!(waits(2, 6, Access::ReadOnly), seconds(6));
        assert_eq!(waits(2, 7, Access::ReadOnly), None);
        assert_eq!(waits(4, 0, Access::ReadOnly), None);
        assert_eq!(waits(1, 1, Access::ReadWrite), None);
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

    proptest! {
        /// No configuration makes a pause overflow, and no failure is retried more than `max` times.
        #[test]
        fn pauses_are_bounded(max in 0u32..20, base in 0u64..100_000, factor in 0.0f64..1e9, attempt in 1u32..100) {
            let spec = RetrySpec { max, base: Duration::from_millis(base), factor, after_start: false };
            let failure = Failure::new(Code::NoResources, "it failed");
            match pause(&spec, Access::ReadOnly, attempt, true, &failure) {
                Some(pause) => prop_assert!(pause <= LONGEST && attempt <= max),
                None => prop_assert!(attempt > max),
            }
        }
    }
}
