//! Single values: their types, their bounds, and how time is written.

use std::fmt::Display;

use toml::de::{DeArray, DeTable, DeValue};

use super::fault::said;
use super::reader::{Place, Reader};
use super::section::Entry;
use super::shape::Shape;

/// What a number may be, and what it is when nobody says.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Bounds<T> {
    pub(super) min: T,
    pub(super) max: T,
    pub(super) default: T,
}

impl<T: PartialOrd + Copy> Bounds<T> {
    /// Bounds with a default.
    pub(super) const fn new(min: T, max: T, default: T) -> Self {
        Self { min, max, default }
    }

    /// Whether a value lies within.
    pub(super) fn hold(&self, value: T) -> bool {
        self.min <= value && value <= self.max
    }
}

/// The entry as text.
pub(super) fn text<'c>(reader: &Reader<'_>, entry: &Entry<'c>) -> Option<&'c str> {
    let text = entry.value.as_str();
    match text {
        None => mistyped(reader, entry, "text in quotes"),
        Some(text) if text.contains('\0') => {
            reader.error(&entry.place, "must not hold a NUL character");
            return None;
        }
        Some(_) => {}
    }
    text
}

/// The entry as text, or a number or flag in its written form.
pub(super) fn scalar(reader: &Reader<'_>, entry: &Entry<'_>) -> Option<String> {
    match entry.value {
        DeValue::Integer(number) => whole(number).map(|number| number.to_string()),
        DeValue::Float(number) => Some(number.as_str().to_owned()),
        DeValue::Boolean(flag) => Some(flag.to_string()),
        _ => text(reader, entry).map(str::to_owned),
    }
}

/// The entry as yes or no.
pub(super) fn flag(reader: &Reader<'_>, entry: &Entry<'_>) -> Option<bool> {
    reader.note(|| entry.place.clone(), || Shape::Flag(None));
    let flag = entry.value.as_bool();
    if flag.is_none() {
        mistyped(reader, entry, "true or false");
    }
    flag
}

/// The entry as a table.
pub(super) fn table<'c>(reader: &Reader<'_>, entry: &Entry<'c>) -> Option<&'c DeTable<'c>> {
    let table = entry.value.as_table();
    if table.is_none() {
        mistyped(reader, entry, "a table");
    }
    table
}

/// The entry as a list.
pub(super) fn list<'c>(reader: &Reader<'_>, entry: &Entry<'c>) -> Option<&'c DeArray<'c>> {
    let list = entry.value.as_array();
    if list.is_none() {
        mistyped(reader, entry, "a list in brackets");
    }
    list
}

/// The entry as a whole number within bounds.
pub(super) fn count(reader: &Reader<'_>, entry: &Entry<'_>, bounds: Bounds<u64>) -> Option<u64> {
    reader.note(|| entry.place.clone(), || Shape::Count(bounds, false));
    let Some(number) = entry.value.as_integer() else {
        mistyped(reader, entry, "a whole number");
        return None;
    };
    let number = whole(number).and_then(|number| u64::try_from(number).ok());
    within(reader, entry, bounds, number, "")
}

/// The entry as a number within bounds.
pub(super) fn number(reader: &Reader<'_>, entry: &Entry<'_>, bounds: Bounds<f64>) -> Option<f64> {
    if !matches!(entry.value, DeValue::Integer(_) | DeValue::Float(_)) {
        mistyped(reader, entry, "a number");
        return None;
    }
    within(reader, entry, bounds, decimal(entry.value), "")
}

/// The entry as seconds within bounds: a number, or text such as `5m`.
pub(super) fn seconds(reader: &Reader<'_>, entry: &Entry<'_>, bounds: Bounds<f64>) -> Option<f64> {
    reader.note(|| entry.place.clone(), || Shape::Seconds(bounds, false));
    let given = match entry.value {
        DeValue::String(text) => match time(text) {
            Some(seconds) => Some(seconds),
            None => {
                let complaint = said("is not a time").hint("write seconds, or text such as `5m`");
                reader.error(&entry.place, complaint);
                return None;
            }
        },
        DeValue::Integer(_) | DeValue::Float(_) => decimal(entry.value),
        _ => {
            mistyped(reader, entry, "seconds, or text such as `5m`");
            return None;
        }
    };
    within(reader, entry, bounds, given, " seconds")
}

/// A whole number in whatever base it is written; nothing when it is beyond all reason.
pub(super) fn whole(number: &toml::de::DeInteger<'_>) -> Option<i128> {
    i128::from_str_radix(number.as_str(), number.radix()).ok()
}

/// Says which type was wanted and which was found. Prints numbers and flags alone: a text in the
/// wrong place may be anything.
pub(super) fn mistyped(reader: &Reader<'_>, entry: &Entry<'_>, wanted: &str) {
    let is_harmless = !(entry.value.is_str() || entry.value.is_array() || entry.value.is_table());
    let place = Place { shown: entry.place.shown && is_harmless, ..entry.place.clone() };
    reader.error(&place, format!("must be {wanted}, not {}", kind(entry.value)));
}

/// A number as it is computed with.
fn decimal(value: &DeValue<'_>) -> Option<f64> {
    let written = match value {
        DeValue::Integer(number) => whole(number)?.to_string(),
        DeValue::Float(number) => number.as_str().to_owned(),
        _ => return None,
    };
    written.parse().ok().filter(|number: &f64| number.is_finite())
}

/// Seconds of a text such as `300s`, `1.5h` or `250ms`.
fn time(text: &str) -> Option<f64> {
    let digits = text.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
    let scale = match text.strip_prefix(digits)? {
        "ms" => 0.001,
        "s" => 1.0,
        "m" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return None,
    };
    let number: f64 = digits.trim_end().parse().ok()?;
    (number.is_finite() && number >= 0.0).then_some(number * scale)
}

/// The value if it lies within bounds; a fault otherwise.
fn within<T: PartialOrd + Copy + Display>(
    reader: &Reader<'_>,
    entry: &Entry<'_>,
    bounds: Bounds<T>,
    value: Option<T>,
    unit: &str,
) -> Option<T> {
    let value = value.filter(|value| bounds.hold(*value));
    if value.is_none() {
        let Bounds { min, max, .. } = bounds;
        reader.error(&entry.place, format!("must be {min} to {max}{unit}"));
    }
    value
}

/// What people call the type of a value.
fn kind(value: &DeValue<'_>) -> &'static str {
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
