//! Single values: their types, their bounds, and the notation of durations.

use std::fmt::Display;

use toml::de::{DeArray, DeTable, DeValue};

use super::bounds::RangeWithDefault;
use super::position::{PositionedValue, SourcePosition};
use super::reader::ConfigReader;
use super::shape::ValueShape;
use crate::config::diagnostics::new_diagnostic;

/// Reads the entry as text.
pub(crate) fn text<'c>(reader: &ConfigReader<'_>, entry: &PositionedValue<'c>) -> Option<&'c str> {
    let text = entry.value.as_str();
    match text {
        None => report_type_mismatch(reader, entry, "text in quotes"),
        // The kernel ends arguments, variables and paths at the first NUL.
        Some(text) if text.contains('\0') => {
            reader.report_error(&entry.position, "must not hold a NUL character");
            return None;
        }
        Some(_) => {}
    }
    text
}

/// Reads the entry as text, or a number or flag in its written form.
pub(crate) fn scalar(reader: &ConfigReader<'_>, entry: &PositionedValue<'_>) -> Option<String> {
    match entry.value {
        DeValue::Integer(number) => parse_integer(number).map(|number| number.to_string()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(flag) => Some(flag.to_string()),
        _ => text(reader, entry).map(str::to_owned),
    }
}

/// Reads the entry as a boolean.
pub(crate) fn flag(reader: &ConfigReader<'_>, entry: &PositionedValue<'_>) -> Option<bool> {
    reader.record_shape(|| entry.position.clone(), || ValueShape::Flag(None));
    let flag = entry.value.as_bool();
    if flag.is_none() {
        report_type_mismatch(reader, entry, "true or false");
    }
    flag
}

/// Reads the entry as a table.
pub(crate) fn table<'c>(
    reader: &ConfigReader<'_>,
    entry: &PositionedValue<'c>,
) -> Option<&'c DeTable<'c>> {
    let table = entry.value.as_table();
    if table.is_none() {
        report_type_mismatch(reader, entry, "a table");
    }
    table
}

/// Reads the entry as a list.
pub(crate) fn list<'c>(
    reader: &ConfigReader<'_>,
    entry: &PositionedValue<'c>,
) -> Option<&'c DeArray<'c>> {
    let list = entry.value.as_array();
    if list.is_none() {
        report_type_mismatch(reader, entry, "a list in brackets");
    }
    list
}

/// Reads the entry as a whole number within bounds.
pub(crate) fn count(
    reader: &ConfigReader<'_>,
    entry: &PositionedValue<'_>,
    bounds: RangeWithDefault<u64>,
) -> Option<u64> {
    reader.record_shape(|| entry.position.clone(), || ValueShape::Count(bounds, false));
    let Some(number) = entry.value.as_integer() else {
        report_type_mismatch(reader, entry, "a whole number");
        return None;
    };
    // The parser keeps the written digits, so a number beyond 64 bits is out of bounds, and not of another type.
    let number = parse_integer(number).and_then(|number| u64::try_from(number).ok());
    check_bounds(reader, entry, bounds, number, "")
}

/// Reads the entry as a number within bounds.
pub(crate) fn number(
    reader: &ConfigReader<'_>,
    entry: &PositionedValue<'_>,
    bounds: RangeWithDefault<f64>,
) -> Option<f64> {
    if !matches!(entry.value, DeValue::Integer(_) | DeValue::Float(_)) {
        report_type_mismatch(reader, entry, "a number");
        return None;
    }
    check_bounds(reader, entry, bounds, parse_decimal(entry.value), "")
}

/// Reads the entry as seconds within bounds: a number, or text such as `5m`.
pub(crate) fn seconds(
    reader: &ConfigReader<'_>,
    entry: &PositionedValue<'_>,
    bounds: RangeWithDefault<f64>,
) -> Option<f64> {
    reader.record_shape(|| entry.position.clone(), || ValueShape::Seconds(bounds, false));
    let seconds = match entry.value {
        DeValue::String(text) => match parse_duration(text) {
            Some(seconds) => Some(seconds),
            None => {
                let diagnostic = new_diagnostic("is not a time")
                    .with_hint("write seconds, or text such as `5m`");
                reader.report_error(&entry.position, diagnostic);
                return None;
            }
        },
        DeValue::Integer(_) | DeValue::Float(_) => parse_decimal(entry.value),
        _ => {
            report_type_mismatch(reader, entry, "seconds, or text such as `5m`");
            return None;
        }
    };
    check_bounds(reader, entry, bounds, seconds, " seconds")
}

/// Parses a whole number in any base; `None` if it exceeds 128 bits.
pub(crate) fn parse_integer(number: &toml::de::DeInteger<'_>) -> Option<i128> {
    i128::from_str_radix(number.as_str(), number.radix()).ok()
}

/// Reports the expected type and the found one. Prints numbers and flags only: a text at the wrong place may be a
/// secret.
pub(crate) fn report_type_mismatch(
    reader: &ConfigReader<'_>,
    entry: &PositionedValue<'_>,
    expected: &str,
) {
    let is_harmless = !(entry.value.is_str() || entry.value.is_array() || entry.value.is_table());
    let position = SourcePosition {
        may_quote_source: entry.position.may_quote_source && is_harmless,
        ..entry.position.clone()
    };
    reader.report_error(&position, format!("must be {expected}, not {}", type_name(entry.value)));
}

/// Converts a number for computation.
fn parse_decimal(value: &DeValue<'_>) -> Option<f64> {
    let number_text = match value {
        DeValue::Integer(number) => parse_integer(number)?.to_string(),
        DeValue::Float(number) => number.as_str().to_owned(),
        _ => return None,
    };
    number_text.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Parses a duration such as `300s`, `1.5h` or `250ms` into seconds.
fn parse_duration(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let seconds_per_unit = match text.strip_prefix(digits)? {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    let number: f64 = digits.trim_end().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number * seconds_per_unit)
}

/// Returns the value if it lies within bounds; a fault otherwise.
fn check_bounds<T: PartialOrd + Copy + Display>(
    reader: &ConfigReader<'_>,
    entry: &PositionedValue<'_>,
    bounds: RangeWithDefault<T>,
    value: Option<T>,
    unit: &str,
) -> Option<T> {
    let value = value.filter(|value| bounds.contains(*value));
    if value.is_none() {
        let RangeWithDefault { min, max, .. } = bounds;
        reader.report_error(&entry.position, format!("must be {min} to {max}{unit}"));
    }
    value
}

/// Returns the name of a value's type in messages.
fn type_name(value: &DeValue<'_>) -> &'static str {
    match value {
        DeValue::String(_) => "text",
        DeValue::Integer(_) => "a whole number",
        DeValue::Float(_) => "a number",
        DeValue::Boolean(_) => "true or false",
        DeValue::Datetime(_) => "a date",
        DeValue::Array(_) => "a list",
        DeValue::Table(_) => "a table",
    }
}
