//! `[agents.<id>.budget]`: limits of an agent per execution and per day.

use algonius_actors::model::agent::budget::{
    self, BudgetMeasure, BudgetSpec, Zone, parse_zone, to_micros,
};

use crate::config::diagnostics::new_diagnostic;
use crate::config::table::{RangeWithDefault, Section, ValueShape, value};

/// Bounds of counts, above any real usage.
const COUNT_BOUNDS: RangeWithDefault<u64> = RangeWithDefault::new(1, 1 << 50, 0);
/// Bounds of an amount in US dollars.
const COST_BOUNDS: RangeWithDefault<f64> = RangeWithDefault::new(0.000_001, 1e9, 0.0);
/// Bounds in seconds, up to a year.
const TIME_BOUNDS: RangeWithDefault<f64> = RangeWithDefault::new(0.001, 31_536_000.0, 0.0);

/// Reads the section.
pub(crate) fn read(mut section: Section<'_>) -> BudgetSpec {
    let budget = BudgetSpec {
        execution_limits: read_budget_limits(section.section("run")),
        daily_limits: read_budget_limits(section.section("day")),
        zone: read_zone(&mut section),
    };
    section.report_unknown_keys();
    budget
}

fn read_zone(section: &mut Section<'_>) -> Zone {
    let Some(name) = section.nonblank_text("zone") else { return Zone::default() };
    parse_zone(&name.value).unwrap_or_else(|| {
        let diagnostic = new_diagnostic("there is no such time zone")
            .with_hint("write one such as `Europe/Berlin`");
        section.reader.report_error(&name.position, diagnostic);
        Zone::default()
    })
}

/// Reads the configured limits; other measures have none.
fn read_budget_limits(mut section: Section<'_>) -> budget::BudgetLimits {
    let amount = |measure: &BudgetMeasure| Some((*measure, read_amount(&mut section, *measure)?));
    let limits = BudgetMeasure::ALL.iter().filter_map(amount).collect();
    section.report_unknown_keys();
    limits
}

fn read_amount(section: &mut Section<'_>, measure: BudgetMeasure) -> Option<u64> {
    let key = measure.as_str();
    let entry = section.entry(key);
    let (amount, shape) = match measure {
        BudgetMeasure::CostUsd => {
            let dollars =
                entry.and_then(|entry| value::number(section.reader, &entry, COST_BOUNDS));
            (dollars.map(to_micros), ValueShape::Number(COST_BOUNDS, false))
        }
        BudgetMeasure::WallTime => {
            let time = entry.and_then(|entry| value::seconds(section.reader, &entry, TIME_BOUNDS));
            // Measures are stored in millionths of their unit, and wall time in thousands of seconds.
            (
                time.map(|seconds| to_micros(seconds / 1000.0)),
                ValueShape::Seconds(TIME_BOUNDS, false),
            )
        }
        BudgetMeasure::Turns
        | BudgetMeasure::InputTokens
        | BudgetMeasure::OutputTokens
        | BudgetMeasure::Tokens => {
            let count = entry.and_then(|entry| value::count(section.reader, &entry, COUNT_BOUNDS));
            (count, ValueShape::Count(COUNT_BOUNDS, false))
        }
    };
    section.record_shape(key, || shape);
    amount
}
