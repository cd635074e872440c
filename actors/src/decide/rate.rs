//! Whether one more call is taken now: so many at once, so many a second in the long run.

use std::time::Duration;

use crate::model::exposure::RateLimit;

/// The longest wait that is told, in seconds.
const LONGEST: f64 = 3600.0;

/// The calls that may come at once, as of a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    calls: f64,
    at: Duration,
}

impl Bucket {
    /// As many calls as may come at once.
    #[must_use]
    pub fn full(limit: RateLimit, now: Duration) -> Self {
        Self { calls: f64::from(limit.burst), at: now }
    }
}

/// Decides about a call at `now`, which is the time since the service began. A refused one is told
/// how long to wait, and costs nothing.
pub fn step(bucket: Bucket, now: Duration, limit: RateLimit) -> (Bucket, Result<(), Duration>) {
    let passed = now.saturating_sub(bucket.at).as_secs_f64();
    let calls = (bucket.calls + passed * limit.per_second).min(f64::from(limit.burst));
    let at = now.max(bucket.at);
    if calls >= 1.0 {
        return (Bucket { calls: calls - 1.0, at }, Ok(()));
    }
    let wait = ((1.0 - calls) / limit.per_second).clamp(0.0, LONGEST);
    let wait = Duration::try_from_secs_f64(wait).unwrap_or_default();
    (Bucket { calls, at }, Err(wait))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMIT: RateLimit = RateLimit { per_second: 2.0, burst: 3 };

    /// Which of the calls at these milliseconds are taken.
    fn taken(times: &[u64]) -> Vec<bool> {
        let mut bucket = Bucket::full(LIMIT, Duration::ZERO);
        let mut taken = Vec::new();
        for time in times {
            let (next, verdict) = step(bucket, Duration::from_millis(*time), LIMIT);
            bucket = next;
            taken.push(verdict.is_ok());
        }
        taken
    }

    #[test]
    fn three_at_once_and_then_one_each_half_second() {
        assert_eq!(
            taken(&[0, 0, 0, 0, 499, 500, 501]),
            [true, true, true, false, false, true, false]
        );
        assert_eq!(taken(&[0, 0, 0, 9000, 9000, 9000, 9000])[3..], [true, true, true, false]);
    }

    proptest! {
        /// After the told wait, a call is taken; in no second are there more than the burst and two.
        #[test]
        fn a_refused_call_is_taken_after_the_wait_it_was_told(
            gaps in proptest::collection::vec(0u64..400, 1..60)
        ) {
            let (mut bucket, mut now) = (Bucket::full(LIMIT, Duration::ZERO), 0);
            let mut taken = Vec::new();
            for gap in gaps {
                now += gap;
                let (next, verdict) = step(bucket, Duration::from_millis(now), LIMIT);
                bucket = next;
                match verdict {
                    Ok(()) => taken.push(now),
                    Err(wait) => {
                        let later = Duration::from_millis(now + 1) + wait;
                        prop_assert!(step(bucket, later, LIMIT).1.is_ok());
                    }
                }
            }
            for window in taken.windows(6) {
                prop_assert!(window[5] - window[0] >= 1000, "{taken:?}");
            }
        }
    }
}
