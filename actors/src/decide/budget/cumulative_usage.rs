//! Cumulative counters of a session, converted to increments.

use std::collections::BTreeMap;

use serde_json::Number;

/// Counters by name.
pub type CounterValues = BTreeMap<String, Number>;

/// Counters at the latest report.
#[derive(Debug, Clone, Default)]
pub struct CumulativeUsage {
    reported_totals: CounterValues,
}

impl CumulativeUsage {
    /// Continues from the counters that a session had reported before.
    #[must_use]
    pub const fn from_totals(reported: CounterValues) -> Self {
        Self { reported_totals: reported }
    }

    /// Returns the latest counters.
    #[must_use]
    pub const fn totals(&self) -> &CounterValues {
        &self.reported_totals
    }

    /// Records the counters. Returns the increments, and true if they are still the totals of the session, because no
    /// earlier report is known. A counter that decreased was reset by the program.
    pub fn record_and_compute_increments(
        &mut self,
        counters: CounterValues,
    ) -> (CounterValues, bool) {
        let is_first = counters.keys().all(|name| !self.reported_totals.contains_key(name));
        let increments = counters.iter().map(|(name, number)| {
            let previous = self.reported_totals.get(name);
            (
                name.clone(),
                previous
                    .and_then(|previous| subtract_numbers(number, previous))
                    .unwrap_or(number.clone()),
            )
        });
        let increments = increments.collect();
        self.reported_totals.extend(counters);
        (increments, is_first)
    }
}

/// Returns the sum of two numbers.
#[must_use]
pub fn add_numbers(left: &Number, right: &Number) -> Option<Number> {
    if let (Some(left), Some(right)) = (left.as_u64(), right.as_u64()) {
        return Some(Number::from(left.saturating_add(right)));
    }
    Number::from_f64(left.as_f64()? + right.as_f64()?)
}

fn subtract_numbers(number: &Number, previous: &Number) -> Option<Number> {
    if let (Some(number), Some(previous)) = (number.as_u64(), previous.as_u64()) {
        return number.checked_sub(previous).map(Number::from);
    }
    let increment = number.as_f64()? - previous.as_f64()?;
    (increment >= 0.0).then_some(increment).and_then(Number::from_f64)
}

#[cfg(test)]
mod tests {
    use serde_json::{Number, json};

    use super::{CounterValues, CumulativeUsage, add_numbers};

    fn counter_values(value: serde_json::Value) -> CounterValues {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn usage_that_was_counted_is_not_counted_again() {
        let mut counters = CumulativeUsage::default();
        let mut advance = |value| counters.record_and_compute_increments(counter_values(value));
        assert_eq!(
            advance(json!({"a": 5, "c": 0.5})),
            (counter_values(json!({"a": 5, "c": 0.5})), true)
        );
        assert_eq!(
            advance(json!({"a": 7, "c": 0.75})),
            (counter_values(json!({"a": 2, "c": 0.25})), false)
        );
        assert_eq!(advance(json!({"a": 3})), (counter_values(json!({"a": 3})), false));
        let mut continued = CumulativeUsage::from_totals(counter_values(json!({"a": 4})));
        assert_eq!(
            continued.record_and_compute_increments(counter_values(json!({"a": 6}))),
            (counter_values(json!({"a": 2})), false)
        );
    }

    #[test]
    fn integers_are_added_exactly() {
        assert_eq!(add_numbers(&Number::from(2), &Number::from(3)), Some(Number::from(5)));
        let half = Number::from_f64(0.5).unwrap();
        assert_eq!(add_numbers(&half, &Number::from(3)), Number::from_f64(3.5));
        assert_eq!(
            add_numbers(&Number::from(u64::MAX), &Number::from(3)),
            Some(Number::from(u64::MAX))
        );
    }
}
