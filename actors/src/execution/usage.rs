//! Amounts that an execution uses: reported usage and run time, compared with the limits of the budget.

use std::time::Duration;

use tokio::time::Instant;

use super::ExecutionTotals;
use super::attempt::CurrentAttempt;
use super::context::ExecutionContext;
use super::persistence::Persistence;
use super::tasks::ExecutionBackgroundTasks;
use crate::decide::budget;
use crate::decide::execution::ExecutionEvent;
use crate::model::agent::budget::{BudgetMeasure, BudgetSpec, Charge};
use crate::model::code::Code;
use crate::model::execution::AttemptId;
use crate::model::failure::Failure;
use crate::model::observation::telemetry_events::TokenCounts;

/// Amounts that an execution has used over all its attempts.
pub(super) struct ExecutionUsage {
    spent: Charge,
    /// Tokens that the agent reported to this process.
    tokens: TokenCounts,
    /// Start time of the present attempt, while its run time is measured.
    measured_since: Option<Instant>,
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
    pub(super) const fn new(spent: Charge, tokens: TokenCounts) -> Self {
        Self { spent, tokens, measured_since: None }
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
        budget::check_execution_limits(&budget.execution_limits, self.spent).err()
    }

    /// Starts to measure the run time of an attempt that has run for `run_time`. Returns the limit, if the
    /// budget has one.
    pub(super) fn start_wall_time_measurement(
        &mut self,
        budget: &BudgetSpec,
        now: Instant,
        run_time: Duration,
    ) -> Option<WallTimeLimit> {
        if ![&budget.execution_limits, &budget.daily_limits]
            .iter()
            .any(|limits| limits.contains_key(&BudgetMeasure::WallTime))
        {
            return None; // Without a limit this saves one record per attempt.
        }
        self.measured_since = Some(now.checked_sub(run_time).unwrap_or(now));
        let limit = budget.execution_limits.get(&BudgetMeasure::WallTime).copied()?;
        let remaining = Duration::from_millis(limit.saturating_sub(self.spent.wall_ms));
        let failure = budget::limit_exceeded_failure(BudgetMeasure::WallTime, limit, 0);
        Some(WallTimeLimit { remaining: remaining.saturating_sub(run_time), failure })
    }

    /// Ends the measurement, and adds the run time. Returns the amount to charge; `None` if nothing was measured.
    pub(super) fn end_wall_time_measurement(&mut self, now: Instant) -> Option<Charge> {
        let since = self.measured_since.take()?;
        let run_time = now.saturating_duration_since(since).as_millis();
        let wall_ms = u64::try_from(run_time).unwrap_or(u64::MAX);
        let charge = Charge { wall_ms, ..Charge::default() };
        self.spent = self.spent.plus(charge);
        Some(charge)
    }
}

/// Account of the present attempt's usage, with the parts of the execution that it changes.
pub(super) struct UsageRecorder<'a> {
    pub(super) usage: &'a mut ExecutionUsage,
    pub(super) attempt: &'a mut CurrentAttempt,
    /// True if the agent is working.
    pub(super) is_running: bool,
    pub(super) context: &'a ExecutionContext,
    pub(super) persistence: &'a Persistence,
    pub(super) tasks: &'a mut ExecutionBackgroundTasks,
}

impl UsageRecorder<'_> {
    /// Adds a usage report, which is already in the ledger. Returns the event if it exceeds a limit.
    pub(super) fn add(
        self,
        attempt_id: AttemptId,
        tokens: TokenCounts,
        charge: Charge,
    ) -> Option<ExecutionEvent> {
        if attempt_id != self.attempt.attempt_id() {
            return None;
        }
        self.usage.add(tokens, charge);
        self.context.report_usage_and_credential_success(charge);
        let failure = self.usage.limit_failure(&self.context.spec.budget)?;
        Some(ExecutionEvent::LimitExceeded { attempt_id, failure })
    }

    /// Starts to measure the run time of the attempt, and ends the attempt when its limit is reached.
    pub(super) fn measure_and_limit_wall_time(self, attempt_id: AttemptId, run_time: Duration) {
        if attempt_id != self.attempt.attempt_id() || !self.is_running {
            return;
        }
        let limit = self.usage.start_wall_time_measurement(
            &self.context.spec.budget,
            Instant::now(),
            run_time,
        );
        if let Some(WallTimeLimit { remaining, failure }) = limit {
            self.tasks.send_after(remaining, ExecutionEvent::LimitExceeded { attempt_id, failure });
        }
    }

    /// Reports the end of an attempt, and charges its run time. A second end of the same attempt is ignored.
    pub(super) fn charge_and_report_attempt_end(self, attempt_id: AttemptId, code: Option<Code>) {
        let Some(attempt) = self.attempt.take_attempt_with_unreported_end(attempt_id) else {
            return;
        };
        let (charge, now) =
            (self.usage.end_wall_time_measurement(Instant::now()), self.context.now());
        if let Some(event) = charge.and_then(|charge| self.context.charge_daily_budget(now, charge))
        {
            self.persistence.record_before_pending(now, event);
        }
        self.context.report_attempt_end(attempt, code, self.attempt.exit_code());
    }

    /// Returns the totals of the attempts so far, the first of which was claimed at `first_granted_at`.
    pub(super) const fn totals(self, first_granted_at: Option<Instant>) -> ExecutionTotals {
        ExecutionTotals {
            spent: self.usage.spent(),
            tokens: self.usage.tokens(),
            exit_code: self.attempt.exit_code(),
            first_granted_at,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn wall_time_budget(limit: u64) -> BudgetSpec {
        BudgetSpec {
            execution_limits: [(BudgetMeasure::WallTime, limit)].into(),
            ..BudgetSpec::default()
        }
    }

    #[test]
    fn run_time_of_all_attempts_counts_towards_the_limit() {
        let (mut usage, start) =
            (ExecutionUsage::new(Charge::default(), TokenCounts::default()), Instant::now());
        let budget = wall_time_budget(10_000);
        let limit = usage.start_wall_time_measurement(&budget, start, Duration::ZERO).unwrap();
        assert_eq!(limit.remaining, 10 * SECOND);
        let charge = usage.end_wall_time_measurement(start + 4 * SECOND).unwrap();
        assert_eq!(charge, Charge { wall_ms: 4_000, ..Charge::default() });
        let limit = usage.start_wall_time_measurement(&budget, start, SECOND).unwrap();
        assert_eq!(
            limit.remaining,
            5 * SECOND,
            "the earlier attempt and the earlier process count"
        );
        assert_eq!(usage.end_wall_time_measurement(start).unwrap().wall_ms, 1_000);
        assert_eq!(usage.spent().wall_ms, 5_000);
    }

    #[test]
    fn an_attempt_is_charged_once_and_only_under_a_limit() {
        let (mut usage, start) =
            (ExecutionUsage::new(Charge::default(), TokenCounts::default()), Instant::now());
        assert_eq!(usage.start_wall_time_measurement(&BudgetSpec::default(), start, SECOND), None);
        assert_eq!(usage.end_wall_time_measurement(start), None, "nothing was measured");
        assert!(
            usage
                .start_wall_time_measurement(&wall_time_budget(1), start, Duration::ZERO)
                .is_some()
        );
        assert!(usage.end_wall_time_measurement(start).is_some());
        assert_eq!(usage.end_wall_time_measurement(start), None, "it was charged before");
    }

    #[test]
    fn usage_of_an_earlier_process_counts_towards_the_limit() {
        let budget = BudgetSpec {
            execution_limits: [(BudgetMeasure::Turns, 3)].into(),
            ..BudgetSpec::default()
        };
        let turn = Charge { turns: 1, ..Charge::default() };
        let tokens = TokenCounts { input: 1, output: 2 };
        let mut usage = ExecutionUsage::new(Charge { turns: 2, ..Charge::default() }, tokens);
        usage.add(tokens, turn);
        assert_eq!(usage.limit_failure(&budget), None);
        usage.add(tokens, turn);
        assert!(usage.limit_failure(&budget).is_some());
        assert_eq!(usage.tokens(), TokenCounts { input: 3, output: 6 });
    }
}
