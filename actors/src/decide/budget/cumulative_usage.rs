//! Cumulative counters of a session, converted to increments.

use std::collections::BTreeMap;

use serde_json::Number;

/// Counters by name.
pub type CounterValues = BTreeMap<String, Number>;

/// Counters at the latest report.
#[derive(Debug, Clone, Default)]
pub struct CumulativeUsage {
    reported: CounterValues,
}

impl CumulativeUsage {
    /// Continues from the counters that a session had reported before.
    #[must_use]
    pub const fn of(reported: CounterValues) -> Self {
        Self { reported }
    }

    /// Returns the latest counters.
    #[must_use]
    pub const fn totals(&self) -> &CounterValues {
        &self.reported
    }

    /// Returns the increments, and true if they are still the totals of the session, because no earlier report is
    /// known. A counter that decreased was reset by the program.
    pub fn advance(&mut self, numbers: CounterValues) -> (CounterValues, bool) {
        let is_first = numbers.keys().all(|name| !self.reported.contains_key(name));
        let new = numbers.iter().map(|(name, number)| {
            let before = self.reported.get(name);
            (
                name.clone(),
                before.and_then(|before| difference(number, before)).unwrap_or(number.clone()),
            )
        });
        let new = new.collect();
        self.reported.extend(numbers);
        (new, is_first)
    }
}

/// Returns the sum of two numbers.
#[must_use]
pub fn sum(one: &Number, other: &Number) -> Option<Number> {
    if let (Some(one), Some(other)) = (one.as_u64(), other.as_u64()) {
        return Some(Number::from(one.saturating_add(other)));
    }
    Number::from_f64(one.as_f64()? + other.as_f64()?)
}

fn difference(number: &Number, before: &Number) -> Option<Number> {
    if let (Some(number), Some(before)) = (number.as_u64(), before.as_u64()) {
        return number.checked_sub(before).map(Number::from);
    }
    let left = number.as_f64()? - before.as_f64()?;
    (left >= 0.0).then_some(left).and_then(Number::from_f64)
}

#[cfg(test)]
mod tests {
    use serde_json::{Number, json};

    use super::{CounterValues, CumulativeUsage, sum};

    fn numbers(value: serde_json::Value) -> CounterValues {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn usage_that_was_counted_is_not_counted_again() {
        let mut counters = CumulativeUsage::default();
        let mut advance = |value| counters.advance(numbers(value));
        assert_eq!(advance(json!({"a": 5, "c": 0.5})), (numbers(json!({"a": 5, "c": 0.5})), true));
        assert_eq!(
            advance(json!({"a": 7, "c": 0.75})),
            (numbers(json!({"a": 2, "c": 0.25})), false)
        );
        assert_eq!(advance(json!({"a": 3})), (numbers(json!({"a": 3})), false));
        let mut known = CumulativeUsage::of(numbers(json!({"a": 4})));
        assert_eq!(known.advance(numbers(json!({"a": 6}))), (numbers(json!({"a": 2})), false));
    }

    #[test]
    fn integers_are_added_exactly() {
        assert_eq!(sum(&Number::from(2), &Number::from(3)), Some(Number::from(5)));
        let half = Number::from_f64(0.5).unwrap();
        assert_eq!(sum(&half, &Number::from(3)), Number::from_f64(3.5));
        assert_eq!(sum(&Number::from(u64::MAX), &Number::from(3)), Some(Number::from(u64::MAX)));
    }
}
