//! What was used up, and whether that is too much.

use chrono::{DateTime, Days, NaiveDate, TimeDelta, TimeZone, Utc};
use chrono_tz::Tz;

use crate::decide::alert::Sighting;
use crate::model::budget::{BoundStatus, Bounds, BudgetSpec, BudgetStatus, Charge, Measure};
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::id::AgentId;

/// What an attempt has counted once it says this, and what of that is new.
///
/// Numbers that are `cumulative` are of the whole attempt: they replace what was counted before, and
/// add what they are beyond it. Others are added as they are. Nothing is ever taken back.
#[must_use]
pub const fn count(counted: Charge, said: Charge, cumulative: bool) -> (Charge, Charge) {
    let new = if cumulative { said.beyond(counted) } else { said };
    (counted.plus(new), new)
}

/// Decides whether one execution has used up more than it may.
///
/// # Errors
/// The failure with which it ends.
pub fn run(bounds: &Bounds, spent: Charge) -> Result<(), Failure> {
    let over =
        |(of, limit): (&Measure, &u64)| Some((*of, *limit, of.of(spent).checked_sub(*limit)?));
    match bounds.iter().filter_map(over).find(|(.., beyond)| *beyond > 0) {
        None => Ok(()),
        Some((of, limit, beyond)) => Err(exceeded(of, limit, beyond)),
    }
}

/// The failure of an execution that exceeds one of its bounds.
#[must_use]
pub fn exceeded(of: Measure, limit: u64, beyond: u64) -> Failure {
    let (limit, beyond) = (of.told(limit), of.told(beyond));
    let message = match of {
        Measure::WallTime => format!("it has run for as long as its budget of {limit} lets it"),
        _ => format!("its budget of {limit} is exceeded by {beyond}"),
    };
    Failure::new(Code::BudgetExceeded, message)
}

/// Decides whether an agent may begin anything more in a day in which it has used up so much.
///
/// # Errors
/// The failure with which a request is refused, until the next day begins.
pub fn day(
    spec: &BudgetSpec,
    agent: &AgentId,
    spent: Charge,
    now: DateTime<Utc>,
) -> Result<(), Failure> {
    let is_spent = |(of, limit): &(&Measure, &u64)| of.of(spent) >= **limit;
    let Some((of, limit)) = spec.day.iter().find(is_spent) else { return Ok(()) };
    let (limit, used) = (of.told(*limit), of.told(of.of(spent)));
    let message = format!("agent `{agent}` has used {used} of its {limit} for today");
    Err(Failure::new(Code::BudgetExceeded, message)
        .until(renewal(today(spec.zone, now), spec.zone)))
}

/// How much of a day's budget is used up, in percent: of the bound of which most is.
#[must_use]
pub fn percent(bounds: &Bounds, spent: Charge) -> Option<u64> {
    let share = |(of, limit): (&Measure, &u64)| {
        u64::try_from(u128::from(of.of(spent)) * 100 / u128::from((*limit).max(1))).ok()
    };
    bounds.iter().filter_map(share).max()
}

/// What whoever watches is told of a day in which an agent has used up so much; `None` where it has no
/// bounds.
#[must_use]
pub fn sighting(
    spec: &BudgetSpec,
    agent: &AgentId,
    spent: Charge,
    now: DateTime<Utc>,
) -> Option<Sighting> {
    let left = renewal(today(spec.zone, now), spec.zone) - now;
    let left = left.to_std().unwrap_or_default();
    percent(&spec.day, spent).map(|percent| Sighting::Spent(agent.clone(), percent, left))
}

/// The day in a zone.
#[must_use]
pub fn today(zone: Tz, now: DateTime<Utc>) -> NaiveDate {
    now.with_timezone(&zone).date_naive()
}

/// When the day after this one begins in a zone. Where its clocks leave midnight out it begins after
/// the gap.
#[must_use]
pub fn renewal(day: NaiveDate, zone: Tz) -> DateTime<Utc> {
    let next = day.checked_add_days(Days::new(1)).unwrap_or(day);
    let midnight = next.and_time(chrono::NaiveTime::MIN);
    let begins = (0..96).find_map(|quarter| {
        let local = midnight.checked_add_signed(TimeDelta::minutes(15 * quarter))?;
        zone.from_local_datetime(&local).earliest()
    });
    begins.map_or_else(|| midnight.and_utc(), |begins| begins.to_utc())
}

/// A day's budget as it is shown.
#[must_use]
pub fn status(spec: &BudgetSpec, spent: Charge, now: DateTime<Utc>) -> BudgetStatus {
    let day = today(spec.zone, now);
    let bound = |(of, limit): (&Measure, &u64)| {
        let left = limit.saturating_sub(of.of(spent));
        BoundStatus { of: *of, limit: *limit, left }
    };
    let bounds = spec.day.iter().map(bound).collect();
    BudgetStatus { day, renews: renewal(day, spec.zone), spent, bounds }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn tokens(input: u64, output: u64) -> Charge {
        Charge { input_tokens: input, output_tokens: output, ..Charge::default() }
    }

    fn bounds(of: Measure, limit: u64) -> Bounds {
        Bounds::from([(of, limit)])
    }

    fn charge(of: Measure, amount: u64) -> Charge {
        match of {
            Measure::Turns => Charge { turns: amount, ..Charge::default() },
            Measure::InputTokens | Measure::Tokens => tokens(amount, 0),
            Measure::OutputTokens => tokens(0, amount),
            Measure::CostUsd => Charge { cost_micros: amount, ..Charge::default() },
            Measure::WallTime => Charge { wall_ms: amount, ..Charge::default() },
        }
    }

    fn at(text: &str) -> DateTime<Utc> {
        DateTime::parse_from_rfc3339(text).unwrap().to_utc()
    }

    #[test]
    fn a_run_may_use_up_its_budget_and_nothing_more() {
        for of in Measure::ALL {
            let bounds = bounds(*of, 1000);
            assert_eq!(run(&bounds, charge(*of, 1000)), Ok(()), "{of:?}");
            let failure = run(&bounds, charge(*of, 1001)).unwrap_err();
            assert_eq!((failure.code, failure.until), (Code::BudgetExceeded, None), "{of:?}");
        }
        assert_eq!(run(&Bounds::new(), tokens(u64::MAX, 1)), Ok(()));
    }

    #[test]
    fn the_sentence_says_which_budget_and_by_how_much() {
        let told =
            |of: Measure, limit, spent| run(&bounds(of, limit), charge(of, spent)).unwrap_err();
        let tokens = told(Measure::Tokens, 1000, 1200);
        assert_eq!(tokens.message, "its budget of 1000 tokens is exceeded by 200 tokens");
        let cost = told(Measure::CostUsd, 1_500_000, 1_750_000);
        let sentence = "its budget of 1.500000 US dollars is exceeded by 0.250000 US dollars";
        assert_eq!(cost.message, sentence);
    }

    #[test]
    fn a_day_is_over_when_its_budget_is_used_up_and_until_the_next_begins() {
        let spec = BudgetSpec { day: bounds(Measure::Tokens, 100), ..BudgetSpec::default() };
        let (agent, now) = (AgentId::new("helper").unwrap(), at("2027-01-15T08:00:00Z"));
        assert_eq!(day(&spec, &agent, tokens(50, 49), now), Ok(()));
        let failure = day(&spec, &agent, tokens(50, 50), now).unwrap_err();
        assert_eq!(failure.until, Some(at("2027-01-16T00:00:00Z")));
        assert_eq!(
            failure.message,
            "agent `helper` has used 100 tokens of its 100 tokens for today"
        );
    }

    #[test]
    fn days_begin_where_the_agent_is_also_when_the_clocks_change() {
        let cases = [
            (chrono_tz::Europe::Berlin, "2027-01-15T22:59:59Z", "2027-01-15T23:00:00Z"),
            (chrono_tz::Europe::Berlin, "2027-01-15T23:00:00Z", "2027-01-16T23:00:00Z"),
            (chrono_tz::Europe::Berlin, "2027-03-28T12:00:00Z", "2027-03-28T22:00:00Z"),
            (chrono_tz::Asia::Kolkata, "2027-01-15T12:00:00Z", "2027-01-15T18:30:00Z"),
            // In Cairo midnight of that day is left out.
            (chrono_tz::Africa::Cairo, "2027-04-29T12:00:00Z", "2027-04-29T22:00:00Z"),
        ];
        for (zone, now, begins) in cases {
            assert_eq!(renewal(today(zone, at(now)), zone), at(begins), "{zone} {now}");
        }
    }

    #[test]
    fn numbers_have_published_names_and_others_are_none() {
        let numbers = [
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
        let numbers = numbers.map(|(name, value)| (name.to_owned(), number(value)));
        let counted = Charge::counted(&numbers.into_iter().collect());
        let expected =
            Charge { turns: 2, cached_input_tokens: 3, cost_micros: 250_000, ..tokens(7, 5) };
        assert_eq!(counted, expected);
        assert_eq!([-1.0, f64::NAN, 1e300].map(crate::model::budget::micros), [0, 0, u64::MAX]);
    }

    #[test]
    fn a_share_is_that_of_which_most_is_used_up() {
        let bounds = Bounds::from([(Measure::Tokens, 1000), (Measure::Turns, 10)]);
        assert_eq!(percent(&bounds, Charge { turns: 8, ..tokens(100, 0) }), Some(80));
        assert_eq!(percent(&Bounds::new(), tokens(1, 1)), None);
    }

    proptest! {
        /// However an agent counts, the sum of what is new is what it counted, and never less.
        #[test]
        fn what_is_new_adds_up(said in proptest::collection::vec((0u64..1000, 0u64..1000, any::<bool>()), 0..30)) {
            let (mut counted, mut sum) = (Charge::default(), Charge::default());
            for (input, output, cumulative) in said {
                let (after, new) = count(counted, tokens(input, output), cumulative);
                prop_assert!(after.input_tokens >= counted.input_tokens);
                prop_assert!(!cumulative || after.input_tokens == counted.input_tokens.max(input));
                (counted, sum) = (after, sum.plus(new));
                prop_assert_eq!(counted, sum);
            }
        }
    }
}
