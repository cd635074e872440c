//! `[agents.<id>.budget]`: what an agent may use up in one execution and in one day.

use algonius_actors::model::budget::{self, BudgetSpec, Measure, Zone, micros, zone};

use super::fault::said;
use super::section::Section;
use super::shape::Shape;
use super::value::{self, Bounds};

/// More than anybody counts.
const COUNTS: Bounds<u64> = Bounds::new(1, 1 << 50, 0);
/// US dollars.
const DOLLARS: Bounds<f64> = Bounds::new(0.000_001, 1e9, 0.0);
/// Seconds, up to a year.
const SECONDS: Bounds<f64> = Bounds::new(0.001, 31_536_000.0, 0.0);

/// Reads the section.
pub(super) fn read(mut section: Section<'_>) -> BudgetSpec {
    let budget = BudgetSpec {
        run: bounds(section.section("run")),
        day: bounds(section.section("day")),
        zone: read_zone(&mut section),
    };
    section.finish();
    budget
}

fn read_zone(section: &mut Section<'_>) -> Zone {
    let Some(name) = section.nonblank("zone") else { return Zone::default() };
    zone(&name.value).unwrap_or_else(|| {
        let complaint =
            said("there is no such time zone").hint("write one such as `Europe/Berlin`");
        section.reader.error(&name.place, complaint);
        Zone::default()
    })
}

/// What is bounded is what is given.
fn bounds(mut section: Section<'_>) -> budget::Bounds {
    let amount = |of: &Measure| Some((*of, amount(&mut section, *of)?));
    let bounds = Measure::ALL.iter().filter_map(amount).collect();
    section.finish();
    bounds
}

fn amount(section: &mut Section<'_>, of: Measure) -> Option<u64> {
    let key = of.as_str();
    let entry = section.entry(key);
    let (amount, shape) = match of {
        Measure::CostUsd => {
            let dollars = entry.and_then(|entry| value::number(section.reader, &entry, DOLLARS));
            (dollars.map(micros), Shape::Number(DOLLARS, false))
        }
        Measure::WallTime => {
            let time = entry.and_then(|entry| value::seconds(section.reader, &entry, SECONDS));
            // Thousandths of a second are millionths of a thousand.
            (time.map(|seconds| micros(seconds / 1000.0)), Shape::Seconds(SECONDS, false))
        }
        Measure::Turns | Measure::InputTokens | Measure::OutputTokens | Measure::Tokens => {
            let count = entry.and_then(|entry| value::count(section.reader, &entry, COUNTS));
            (count, Shape::Count(COUNTS, false))
        }
    };
    section.note(key, || shape);
    amount
}
