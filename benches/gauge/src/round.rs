//! Rounds of runs: the subject and its baseline, in turns.

use std::collections::BTreeMap;
use std::time::Duration;

use crate::role::is_quick;
use crate::run::{OperationTimes, median};

/// Runs of several series, one of each per round.
#[derive(Default)]
pub struct Rounds {
    runs: BTreeMap<String, Vec<OperationTimes>>,
}

impl Rounds {
    /// Returns the number of rounds of a bench.
    #[must_use]
    pub fn count() -> usize {
        if is_quick() { 3 } else { 5 }
    }

    /// Returns the duration of a run that is limited by time.
    #[must_use]
    pub fn run_duration() -> Duration {
        if is_quick() { Duration::from_millis(250) } else { Duration::from_millis(1500) }
    }

    /// Adds the run of this round.
    pub fn add(&mut self, series: &str, run: OperationTimes) {
        self.runs.entry(series.to_owned()).or_default().push(run);
    }

    /// Returns the median over the rounds of a number of one series.
    #[must_use]
    pub fn median_of(&self, series: &str, measure: impl Fn(&OperationTimes) -> f64) -> f64 {
        median(self.runs_of(series).iter().map(measure))
    }

    /// Returns the median of the ratios of two series, each ratio within one round.
    #[must_use]
    pub fn median_ratio(
        &self,
        numerator_series: &str,
        denominator_series: &str,
        measure: impl Fn(&OperationTimes) -> f64,
    ) -> f64 {
        let pairs = self.runs_of(numerator_series).iter().zip(self.runs_of(denominator_series));
        median(pairs.map(|(numerator, denominator)| measure(numerator) / measure(denominator)))
    }

    /// Returns all runs of one series as one.
    #[must_use]
    pub fn merged_run(&self, series: &str) -> OperationTimes {
        let runs = self.runs_of(series);
        OperationTimes::merge(runs, runs.iter().map(|run| run.lasted).sum())
    }

    fn runs_of(&self, series: &str) -> &[OperationTimes] {
        self.runs.get(series).map_or(&[], Vec::as_slice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_the_median_of_the_ratios_of_all_rounds() {
        let mut rounds = Rounds::default();
        // The machine is busy in the second round and idle in the third: both kinds are affected.
        for (own, limit) in [(90, 100), (16, 20), (600, 1000)] {
            let run = |count| OperationTimes::new(vec![1; count], Duration::from_secs(1));
            rounds.add("own", run(own));
            rounds.add("L", run(limit));
        }
        assert_eq!(rounds.median_ratio("own", "L", OperationTimes::rate), 0.8);
        assert_eq!(rounds.median_of("own", OperationTimes::rate), 90.0);
        assert_eq!(rounds.merged_run("own").times.len(), 706);
    }
}
