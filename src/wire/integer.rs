//! Whole numbers in JSON: `7`, `7.0` and `0.7e1` are the same number.

use serde::Deserialize;
use serde::de::{Deserializer, Error};
use serde_json::Number;

/// Reads a whole number that may be absent.
///
/// # Errors
/// Fails if the value is not a whole number, or is out of range for the type.
pub(super) fn optional<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    let number = Option::<Number>::deserialize(deserializer)?;
    number
        .map(|number| to_integer(&number).ok_or_else(|| D::Error::custom(NOT_AN_INTEGER)))
        .transpose()
}

/// Reads a whole number.
///
/// # Errors
/// As [`optional`].
pub(super) fn non_null<'de, D, T>(deserializer: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: TryFrom<u64>,
{
    let number = Number::deserialize(deserializer)?;
    to_integer(&number).ok_or_else(|| D::Error::custom(NOT_AN_INTEGER))
}

const NOT_AN_INTEGER: &str = "a number must be whole, not below 0 and not too large";

fn to_integer<T: TryFrom<u64>>(number: &Number) -> Option<T> {
    let parsed = number.as_u64().or_else(|| {
        // JSON has one kind of number, and JavaScript writes some whole numbers with a fraction or an exponent.
        let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
        format!("{:.0}", float + 0.0).parse().ok() // Below 0 and beyond the type it is none.
    });
    T::try_from(parsed?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_are_read_in_every_notation() {
        let read = |text: &str| to_integer::<u32>(&serde_json::from_str(text).expect("a number"));
        for text in ["7", "7.0", "0.7e1"] {
            assert_eq!(read(text), Some(7), "{text}");
        }
        assert_eq!((read("-0.0"), read("4294967295.0")), (Some(0), Some(u32::MAX)));
        for text in ["7.5", "-7", "-7.0", "4294967296", "1e300"] {
            assert_eq!(read(text), None, "{text}");
        }
    }
}
