//! Rate limit of calls: a token bucket with a burst and a sustained rate.

use std::time::Duration;

use crate::model::access::endpoint_config::RateLimit;

/// Longest wait that is reported, in seconds.
const MAX_REPORTED_WAIT_SECONDS: f64 = 3600.0;

/// Token bucket: the number of calls that are available at a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct TokenBucket {
    available_calls: f64,
    updated_at: Duration,
}

impl TokenBucket {
    /// Creates a full bucket.
    #[must_use]
    pub fn full(limit: RateLimit, now: Duration) -> Self {
        Self { available_calls: f64::from(limit.burst), updated_at: now }
    }
}

/// Decides about a call at `now`, which is the time since the service started. A rejected call returns the time to
/// wait, and consumes nothing.
pub fn admit_call(
    bucket: TokenBucket,
    now: Duration,
    limit: RateLimit,
) -> (TokenBucket, Result<(), Duration>) {
    let elapsed = now.saturating_sub(bucket.updated_at).as_secs_f64();
    let available_calls =
        (bucket.available_calls + elapsed * limit.per_second).min(f64::from(limit.burst));
    let updated_at = now.max(bucket.updated_at);
    if available_calls >= 1.0 {
        return (TokenBucket { available_calls: available_calls - 1.0, updated_at }, Ok(()));
    }
    let wait = ((1.0 - available_calls) / limit.per_second).clamp(0.0, MAX_REPORTED_WAIT_SECONDS);
    let wait = Duration::try_from_secs_f64(wait).unwrap_or_default();
    (TokenBucket { available_calls, updated_at }, Err(wait))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: RateLimit = RateLimit { per_second: 2.0, burst: 3 };

    /// Returns which of the calls at these milliseconds are accepted.
    fn accepted_calls(times: &[u64]) -> Vec<bool> {
        let mut bucket = TokenBucket::full(LIMIT, Duration::ZERO);
        let mut accepted = Vec::new();
        for time in times {
            let (next, decision) = admit_call(bucket, Duration::from_millis(*time), LIMIT);
            bucket = next;
            accepted.push(decision.is_ok());
        }
        accepted
    }

    #[test]
    fn a_burst_of_three_is_followed_by_two_calls_per_second() {
        assert_eq!(
            accepted_calls(&[0, 0, 0, 0, 499, 500, 501]),
            [true, true, true, false, false, true, false]
        );
        assert_eq!(
            accepted_calls(&[0, 0, 0, 9000, 9000, 9000, 9000])[3..],
            [true, true, true, false]
        );
    }

    proptest! {
        /// After the reported wait, a call is accepted; no second has more calls than the burst and two.
        #[test]
        fn a_rejected_call_succeeds_after_the_reported_wait(
            gaps in proptest::collection::vec(0u64..400, 1..60)
        ) {
            let (mut bucket, mut now) = (TokenBucket::full(LIMIT, Duration::ZERO), 0);
            let mut accepted = Vec::new();
            for gap in gaps {
                now += gap;
                let (next, decision) = admit_call(bucket, Duration::from_millis(now), LIMIT);
                bucket = next;
                match decision {
                    Ok(()) => accepted.push(now),
                    Err(wait) => {
                        let later = Duration::from_millis(now + 1) + wait;
                        prop_assert!(admit_call(bucket, later, LIMIT).1.is_ok());
                    }
                }
            }
            for window in accepted.windows(6) {
                prop_assert!(window[5] - window[0] >= 1000, "{accepted:?}");
            }
        }
    }
}
