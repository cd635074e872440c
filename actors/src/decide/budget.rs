//! Budgets: counts used amounts and compares them with the limits.

pub mod cumulative_usage;
pub mod usage_parser;

use chrono::{DateTime, Days, NaiveDate, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

use crate::decide::notification::alert::AlertInput;
use crate::model::agent::budget::{
    BoundStatus, BudgetLimits, BudgetMeasure, BudgetSpec, BudgetStatus, Charge,
};
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::id::AgentId;

/// Adds a usage report to the count of an attempt. Returns the new total and the increment.
///
/// A cumulative report covers the whole attempt: it replaces the count, and the excess over the old count is new.
/// Another report is added. The count never decreases.
#[must_use]
pub const fn total_and_increment(
    counted: Charge,
    reported: Charge,
    is_cumulative: bool,
) -> (Charge, Charge) {
    let new = if is_cumulative { reported.saturating_sub(counted) } else { reported };
    (counted.plus(new), new)
}

/// Checks the amounts of one execution against its limits.
///
/// # Errors
/// Returns the failure that ends the execution.
pub fn check_execution_limits(limits: &BudgetLimits, spent: Charge) -> Result<(), Failure> {
    let excess_over = |(measure, limit): (&BudgetMeasure, &u64)| {
        Some((*measure, *limit, measure.amount_in(spent).checked_sub(*limit)?))
    };
    match limits.iter().filter_map(excess_over).find(|(.., excess)| *excess > 0) {
        None => Ok(()),
        Some((measure, limit, excess)) => Err(limit_exceeded_failure(measure, limit, excess)),
    }
}

/// Returns the failure of an execution that exceeds a limit.
#[must_use]
pub fn limit_exceeded_failure(measure: BudgetMeasure, limit: u64, excess: u64) -> Failure {
    let (limit, excess) = (measure.format_amount(limit), measure.format_amount(excess));
    let message = match measure {
        BudgetMeasure::WallTime => {
            format!("it has used its run time budget of {limit}")
        }
        _ => format!("its budget of {limit} is exceeded by {excess}"),
    };
    Failure::new(Code::BudgetExceeded, message)
}

/// Checks whether an agent may start further work on a day on which it has used these amounts.
///
/// # Errors
/// Returns the failure that rejects requests until the next day starts.
pub fn check_day_limits(
    spec: &BudgetSpec,
    agent: &AgentId,
    spent: Charge,
    now: DateTime<Utc>,
) -> Result<(), Failure> {
    let is_spent = |(measure, limit): &(&BudgetMeasure, &u64)| measure.amount_in(spent) >= **limit;
    let Some((measure, limit)) = spec.daily_limits.iter().find(is_spent) else { return Ok(()) };
    let (limit, used) =
        (measure.format_amount(*limit), measure.format_amount(measure.amount_in(spent)));
    let message = format!("agent `{agent}` has used {used} of its {limit} for today");
    Err(Failure::new(Code::BudgetExceeded, message)
        .with_until(next_day_start(today(spec.zone, now), spec.zone)))
}

/// Returns the used share of a day's budget in percent: the highest share of all limits; `None` without limits.
#[must_use]
pub fn used_percent(limits: &BudgetLimits, spent: Charge) -> Option<u64> {
    let share = |(measure, limit): (&BudgetMeasure, &u64)| {
        u64::try_from(u128::from(measure.amount_in(spent)) * 100 / u128::from((*limit).max(1))).ok()
    };
    limits.iter().filter_map(share).max()
}

/// Returns the alert input for the used amounts of an agent's day; `None` if the day has no limits.
#[must_use]
pub fn budget_alert_input(
    spec: &BudgetSpec,
    agent: &AgentId,
    spent: Charge,
    now: DateTime<Utc>,
) -> Option<AlertInput> {
    let until_renewal = next_day_start(today(spec.zone, now), spec.zone) - now;
    let until_renewal = until_renewal.to_std().unwrap_or_default();
    used_percent(&spec.daily_limits, spent)
        .map(|percent| AlertInput::BudgetUsed(agent.clone(), percent, until_renewal))
}

/// Returns the present day in a time zone.
#[must_use]
pub fn today(zone: Tz, now: DateTime<Utc>) -> NaiveDate {
    now.with_timezone(&zone).date_naive()
}

/// Returns the start of the next day in a time zone. If the clock change skips midnight, the day starts after the gap.
#[must_use]
pub fn next_day_start(day: NaiveDate, zone: Tz) -> DateTime<Utc> {
    let next = day.checked_add_days(Days::new(1)).unwrap_or(day);
    let midnight = next.and_time(chrono::NaiveTime::MIN);
    let start = (0..96).find_map(|quarter| {
        let local = midnight.checked_add_signed(TimeDelta::minutes(15 * quarter))?;
        zone.from_local_datetime(&local).earliest()
    });
    start.map_or_else(|| midnight.and_utc(), |start| start.to_utc())
}

/// Returns the status of a day's budget.
#[must_use]
pub fn day_budget_status(spec: &BudgetSpec, spent: Charge, now: DateTime<Utc>) -> BudgetStatus {
    let day = today(spec.zone, now);
    let bound = |(measure, limit): (&BudgetMeasure, &u64)| {
        let remaining = limit.saturating_sub(measure.amount_in(spent));
        BoundStatus { measure: *measure, limit: *limit, remaining }
    };
    let bounds = spec.daily_limits.iter().map(bound).collect();
    BudgetStatus { day, renews: next_day_start(day, spec.zone), spent, bounds }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens(input: u64, output: u64) -> Charge {
        Charge { input_tokens: input, output_tokens: output, ..Charge::default() }
    }

    fn limits(measure: BudgetMeasure, limit: u64) -> BudgetLimits {
        BudgetLimits::from([(measure, limit)])
    }

    fn charge(measure: BudgetMeasure, amount: u64) -> Charge {
        match measure {
            BudgetMeasure::Turns => Charge { turns: amount, ..Charge::default() },
            BudgetMeasure::InputTokens | BudgetMeasure::Tokens => tokens(amount, 0),
            BudgetMeasure::OutputTokens => tokens(0, amount),
            BudgetMeasure::CostUsd => Charge { cost_micros: amount, ..Charge::default() },
            BudgetMeasure::WallTime => Charge { wall_ms: amount, ..Charge::default() },
        }
    }

    fn at(text: &str) -> DateTime<Utc> {
        DateTime::parse_from_rfc3339(text).unwrap().to_utc()
    }

    #[test]
    fn a_run_may_spend_exactly_its_budget() {
        for measure in BudgetMeasure::ALL {
            let limits = limits(*measure, 1000);
            assert_eq!(
                check_execution_limits(&limits, charge(*measure, 1000)),
                Ok(()),
                "{measure:?}"
            );
            let failure = check_execution_limits(&limits, charge(*measure, 1001)).unwrap_err();
            assert_eq!((failure.code, failure.until), (Code::BudgetExceeded, None), "{measure:?}");
        }
        assert_eq!(check_execution_limits(&BudgetLimits::new(), tokens(u64::MAX, 1)), Ok(()));
    }

    #[test]
    fn a_budget_error_states_the_budget_and_the_excess() {
        let failure_of = |measure: BudgetMeasure, limit, spent| {
            check_execution_limits(&limits(measure, limit), charge(measure, spent)).unwrap_err()
        };
        let tokens = failure_of(BudgetMeasure::Tokens, 1000, 1200);
        assert_eq!(tokens.message, "its budget of 1000 tokens is exceeded by 200 tokens");
        let cost = failure_of(BudgetMeasure::CostUsd, 1_500_000, 1_750_000);
        let sentence = "its budget of 1.500000 US dollars is exceeded by 0.250000 US dollars";
        assert_eq!(cost.message, sentence);
    }

    #[test]
    fn a_spent_daily_budget_blocks_until_the_next_day() {
        let spec = BudgetSpec {
            daily_limits: limits(BudgetMeasure::Tokens, 100),
            ..BudgetSpec::default()
        };
        let (agent, now) = (AgentId::new("helper").unwrap(), at("2027-01-15T08:00:00Z"));
        assert_eq!(check_day_limits(&spec, &agent, tokens(50, 49), now), Ok(()));
        let failure = check_day_limits(&spec, &agent, tokens(50, 50), now).unwrap_err();
        assert_eq!(failure.until, Some(at("2027-01-16T00:00:00Z")));
        assert_eq!(
            failure.message,
            "agent `helper` has used 100 tokens of its 100 tokens for today"
        );
    }

    #[test]
    fn days_follow_the_time_zone_of_the_agent() {
        let cases = [
            (chrono_tz::Europe::Berlin, "2027-01-15T22:59:59Z", "2027-01-15T23:00:00Z"),
            (chrono_tz::Europe::Berlin, "2027-01-15T23:00:00Z", "2027-01-16T23:00:00Z"),
            (chrono_tz::Europe::Berlin, "2027-03-28T12:00:00Z", "2027-03-28T22:00:00Z"),
            (chrono_tz::Asia::Kolkata, "2027-01-15T12:00:00Z", "2027-01-15T18:30:00Z"),
            // In Cairo the clock change skips midnight of that day.
            (chrono_tz::Africa::Cairo, "2027-04-29T12:00:00Z", "2027-04-29T22:00:00Z"),
        ];
        for (zone, now, next_day) in cases {
            assert_eq!(next_day_start(today(zone, at(now)), zone), at(next_day), "{zone} {now}");
        }
    }

    #[test]
    fn usage_fields_have_fixed_names_and_unknown_ones_are_ignored() {
        let counters = [
            ("input_tokens", serde_json::json!(7)),
            ("output_tokens", serde_json::json!(5)),
            ("cached_input_tokens", serde_json::json!(3)),
            ("cost_usd", serde_json::json!(0.25)),
            ("turns", serde_json::json!(2)),
            ("wall_ms", serde_json::json!(9)),
            ("other", serde_json::json!(9)),
        ];
        let number = |value: serde_json::Value| match value {
            serde_json::Value::Number(number) => number,
            _ => unreachable!("a number"),
        };
        let counters = counters.map(|(name, value)| (name.to_owned(), number(value)));
        let counted = Charge::from_counters(&counters.into_iter().collect());
        let expected =
            Charge { turns: 2, cached_input_tokens: 3, cost_micros: 250_000, ..tokens(7, 5) };
        assert_eq!(counted, expected);
        assert_eq!(
            [-1.0, f64::NAN, 1e300].map(crate::model::agent::budget::to_micros),
            [0, 0, u64::MAX]
        );
    }

    #[test]
    fn the_most_used_limit_gives_the_budget_percentage() {
        let limits =
            BudgetLimits::from([(BudgetMeasure::Tokens, 1000), (BudgetMeasure::Turns, 10)]);
        assert_eq!(used_percent(&limits, Charge { turns: 8, ..tokens(100, 0) }), Some(80));
        assert_eq!(used_percent(&BudgetLimits::new(), tokens(1, 1)), None);
    }

    proptest! {
        /// For any sequence of reports, the sum of the new parts equals the count, which never decreases.
        #[test]
        fn usage_deltas_add_up_to_the_total(reported in proptest::collection::vec((0u64..1000, 0u64..1000, any::<bool>()), 0..30)) {
            let (mut counted, mut sum) = (Charge::default(), Charge::default());
            for (input, output, is_cumulative) in reported {
                let (new_count, increment) = total_and_increment(counted, tokens(input, output), is_cumulative);
                prop_assert!(new_count.input_tokens >= counted.input_tokens);
                prop_assert!(!is_cumulative || new_count.input_tokens == counted.input_tokens.max(input));
                (counted, sum) = (new_count, sum.plus(increment));
                prop_assert_eq!(counted, sum);
            }
        }
    }
}
