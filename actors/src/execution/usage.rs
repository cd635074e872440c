//! Amounts that an execution uses: reported usage and run time, compared with the limits of the budget.

use std::time::Duration;

use tokio::time::Instant;

use crate::decide::budget;
use crate::model::agent::budget::{BudgetMeasure, BudgetSpec, Charge};
use crate::model::failure::Failure;
use crate::model::observation::telemetry_events::TokenCounts;

/// Amounts that an execution has used over all its attempts.
pub(super) struct ExecutionUsage {
    spent: Charge,
    /// Tokens that the agent reported to this process.
    tokens: TokenCounts,
    /// Start time of the present attempt, while its run time is measured.
    runs_since: Option<Instant>,
}

/// End of the run time that the budget permits.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct WallTimeLimit {
    /// Remaining run time.
    pub(super) remaining: Duration,
    /// Failure of an execution that reaches the limit.
    pub(super) failure: Failure,
}

impl ExecutionUsage {
    /// Creates the usage of an execution that has used these amounts before.
    pub(super) fn new(spent: Charge) -> Self {
        Self { spent, tokens: TokenCounts::default(), runs_since: None }
    }

    /// Returns the used amounts.
    pub(super) const fn spent(&self) -> Charge {
        self.spent
    }

    /// Returns the reported tokens.
    pub(super) const fn tokens(&self) -> TokenCounts {
        self.tokens
    }

    /// Adds a usage report.
    pub(super) fn add(&mut self, tokens: TokenCounts, charge: Charge) {
        self.tokens = self.tokens.plus(tokens);
        self.spent = self.spent.plus(charge);
    }

    /// Returns the failure if a limit of one execution is exceeded.
    pub(super) fn limit_failure(&self, budget: &BudgetSpec) -> Option<Failure> {
        budget::check_run_limits(&budget.run, self.spent).err()
    }

    /// Starts to measure the run time of an attempt that has run for `run_time`. Returns the limit, if the
    /// budget has one.
    pub(super) fn begin_wall_time(
        &mut self,
        budget: &BudgetSpec,
        now: Instant,
        run_time: Duration,
    ) -> Option<WallTimeLimit> {
        if ![&budget.run, &budget.day]
            .iter()
            .any(|limits| limits.contains_key(&BudgetMeasure::WallTime))
        {
            return None; // Without a limit this saves one record per attempt.
        }
        self.runs_since = Some(now.checked_sub(run_time).unwrap_or(now));
        let limit = budget.run.get(&BudgetMeasure::WallTime).copied()?;
        let remaining = Duration::from_millis(limit.saturating_sub(self.spent.wall_ms));
        let failure = budget::limit_exceeded_failure(BudgetMeasure::WallTime, limit, 0);
        Some(WallTimeLimit { remaining: remaining.saturating_sub(run_time), failure })
    }

    /// Ends the measurement, and adds the run time. Returns the amount to charge; `None` if nothing was measured.
    pub(super) fn end_wall_time(&mut self, now: Instant) -> Option<Charge> {
        let since = self.runs_since.take()?;
        let run_time = now.saturating_duration_since(since).as_millis();
        let wall_ms = u64::try_from(run_time).unwrap_or(u64::MAX);
        let charge = Charge { wall_ms, ..Charge::default() };
        self.spent = self.spent.plus(charge);
        Some(charge)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn wall_time(limit: u64) -> BudgetSpec {
        BudgetSpec { run: [(BudgetMeasure::WallTime, limit)].into(), ..BudgetSpec::default() }
    }

    #[test]
    fn run_time_of_all_attempts_counts_towards_the_limit() {
        let (mut usage, start) = (ExecutionUsage::new(Charge::default()), Instant::now());
        let budget = wall_time(10_000);
        let limit = usage.begin_wall_time(&budget, start, Duration::ZERO).unwrap();
        assert_eq!(limit.remaining, 10 * SECOND);
        let charge = usage.end_wall_time(start + 4 * SECOND).unwrap();
        assert_eq!(charge, Charge { wall_ms: 4_000, ..Charge::default() });
        let limit = usage.begin_wall_time(&budget, start, SECOND).unwrap();
        assert_eq!(
            limit.remaining,
            5 * SECOND,
            "the earlier attempt and the earlier process count"
        );
        assert_eq!(usage.end_wall_time(start).unwrap().wall_ms, 1_000);
        assert_eq!(usage.spent().wall_ms, 5_000);
    }

    #[test]
    fn an_attempt_is_charged_once_and_only_under_a_limit() {
        let (mut usage, start) = (ExecutionUsage::new(Charge::default()), Instant::now());
        assert_eq!(usage.begin_wall_time(&BudgetSpec::default(), start, SECOND), None);
        assert_eq!(usage.end_wall_time(start), None, "nothing was measured");
        assert!(usage.begin_wall_time(&wall_time(1), start, Duration::ZERO).is_some());
        assert!(usage.end_wall_time(start).is_some());
        assert_eq!(usage.end_wall_time(start), None, "it was charged before");
    }

    #[test]
    fn usage_of_an_earlier_process_counts_towards_the_limit() {
        let budget =
            BudgetSpec { run: [(BudgetMeasure::Turns, 3)].into(), ..BudgetSpec::default() };
        let turn = Charge { turns: 1, ..Charge::default() };
        let mut usage = ExecutionUsage::new(Charge { turns: 2, ..Charge::default() });
        usage.add(TokenCounts { input: 1, output: 2 }, turn);
        assert_eq!(usage.limit_failure(&budget), None);
        usage.add(TokenCounts { input: 1, output: 2 }, turn);
        assert!(usage.limit_failure(&budget).is_some());
        assert_eq!(usage.tokens(), TokenCounts { input: 2, output: 4 });
    }
}
