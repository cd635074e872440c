//! Numbers that a program counts since its session began, as what is new of them.

use std::collections::BTreeMap;

use serde_json::Number;

/// Numbers by name.
pub type Numbers = BTreeMap<String, Number>;

/// What was counted before.
#[derive(Debug, Clone, Default)]
pub struct Counters {
    told: Numbers,
}

impl Counters {
    /// Goes on from what a session had counted before.
    #[must_use]
    pub const fn of(told: Numbers) -> Self {
        Self { told }
    }

    /// All that was counted so far.
    #[must_use]
    pub const fn told(&self) -> &Numbers {
        &self.told
    }

    /// What is new of numbers, and whether it is still all that the session has counted, because
    /// nothing is known of before. A number that became smaller was begun anew.
    pub fn advance(&mut self, numbers: Numbers) -> (Numbers, bool) {
        let is_first = numbers.keys().all(|name| !self.told.contains_key(name));
        let new = numbers.iter().map(|(name, number)| {
            let before = self.told.get(name);
            (name.clone(), before.and_then(|before| less(number, before)).unwrap_or(number.clone()))
        });
        let new = new.collect();
        self.told.extend(numbers);
        (new, is_first)
    }
}

/// Both of two numbers.
#[must_use]
pub fn sum(one: &Number, other: &Number) -> Option<Number> {
    if let (Some(one), Some(other)) = (one.as_u64(), other.as_u64()) {
        return Some(Number::from(one.saturating_add(other)));
    }
    Number::from_f64(one.as_f64()? + other.as_f64()?)
}

fn less(number: &Number, before: &Number) -> Option<Number> {
    if let (Some(number), Some(before)) = (number.as_u64(), before.as_u64()) {
        return number.checked_sub(before).map(Number::from);
    }
    let left = number.as_f64()? - before.as_f64()?;
    (left >= 0.0).then_some(left).and_then(Number::from_f64)
}

#[cfg(test)]
mod tests {
    use serde_json::{Number, json};

    use super::{Counters, Numbers, sum};

    fn numbers(value: serde_json::Value) -> Numbers {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn what_was_counted_before_is_not_counted_again() {
        let mut counters = Counters::default();
        let mut advance = |value| counters.advance(numbers(value));
        assert_eq!(advance(json!({"a": 5, "c": 0.5})), (numbers(json!({"a": 5, "c": 0.5})), true));
        assert_eq!(
            advance(json!({"a": 7, "c": 0.75})),
            (numbers(json!({"a": 2, "c": 0.25})), false)
        );
        assert_eq!(advance(json!({"a": 3})), (numbers(json!({"a": 3})), false));
        let mut known = Counters::of(numbers(json!({"a": 4})));
        assert_eq!(known.advance(numbers(json!({"a": 6}))), (numbers(json!({"a": 2})), false));
    }

    #[test]
    fn numbers_add_up_whole_where_they_are() {
        assert_eq!(sum(&Number::from(2), &Number::from(3)), Some(Number::from(5)));
        let half = Number::from_f64(0.5).unwrap();
        assert_eq!(sum(&half, &Number::from(3)), Number::from_f64(3.5));
        assert_eq!(sum(&Number::from(u64::MAX), &Number::from(3)), Some(Number::from(u64::MAX)));
    }
}
