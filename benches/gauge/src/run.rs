//! Times of one run: of each operation, and of the whole.

use std::time::Duration;

use serde::{Deserialize, Serialize};

/// Times of one run, in nanoseconds.
#[derive(Clone, Debug, Default, Deserialize, Serialize)]
pub struct OperationTimes {
    /// Time of each operation.
    pub times: Vec<u64>,
    /// Duration of the whole run, in which operations may have overlapped.
    pub lasted: u64,
}

impl OperationTimes {
    /// Returns a run with this total duration.
    #[must_use]
    pub fn new(mut times: Vec<u64>, duration: Duration) -> Self {
        times.sort_unstable();
        Self { times, lasted: nanoseconds(duration) }
    }

    /// Returns the operations per second.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.count() * 1e9 / self.lasted.max(1) as f64
    }

    /// Returns the number of operations.
    #[must_use]
    pub fn count(&self) -> f64 {
        self.times.len() as f64
    }

    /// Returns the milliseconds that this many thousandths of the times do not exceed: `500` is the median.
    ///
    /// # Panics
    /// Panics if there were no operations: there is no number to print.
    #[must_use]
    pub fn quantile_ms(&self, thousandths: usize) -> f64 {
        let last = self.times.len().saturating_sub(1);
        let index = (self.times.len() * thousandths / 1000).min(last);
        *self.times.get(index).expect("something was done") as f64 / 1e6
    }

    /// Returns several parallel or consecutive runs as one.
    #[must_use]
    pub fn merge(runs: &[Self], duration_ns: u64) -> Self {
        let times = runs.iter().flat_map(|run| run.times.iter().copied()).collect();
        Self::new(times, Duration::from_nanos(duration_ns))
    }

    /// Returns the usual percentiles as text.
    #[must_use]
    pub fn summary(&self) -> String {
        let (p50, p95, p99) = (self.quantile_ms(500), self.quantile_ms(950), self.quantile_ms(990));
        format!("p50 {p50:.2} ms, p95 {p95:.2} ms, p99 {p99:.2} ms")
    }
}

/// Returns a duration in nanoseconds.
#[must_use]
pub fn nanoseconds(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// Returns the median of some numbers.
///
/// # Panics
/// Panics if there are none.
#[must_use]
pub fn median(numbers: impl IntoIterator<Item = f64>) -> f64 {
    let mut numbers: Vec<_> = numbers.into_iter().collect();
    numbers.sort_unstable_by(f64::total_cmp);
    let middle = numbers.len() / 2;
    let upper = *numbers.get(middle).expect("something was measured");
    match (numbers.len() % 2, middle.checked_sub(1).and_then(|index| numbers.get(index))) {
        (0, Some(lower)) => f64::midpoint(*lower, upper),
        _ => upper,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_reports_its_rate_and_percentiles() {
        let times = (1..=100).rev().map(|ms| ms * 1_000_000).collect();
        let run = OperationTimes::new(times, Duration::from_secs(4));
        assert_eq!(
            (run.rate(), run.quantile_ms(0), run.quantile_ms(500), run.quantile_ms(990)),
            (25.0, 1.0, 51.0, 100.0)
        );
        let joined = OperationTimes::merge(&[run.clone(), run], 4_000_000_000);
        assert_eq!((joined.rate(), joined.quantile_ms(500)), (50.0, 51.0));
    }

    #[test]
    fn the_median_is_the_middle_value() {
        assert_eq!((median([3.0, 1.0, 2.0]), median([4.0, 1.0, 2.0, 9.0])), (2.0, 3.0));
    }
}
