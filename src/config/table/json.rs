//! Conversion of values of the file to JSON.

use serde_json::{Map, Number, Value};
use toml::de::{DeTable, DeValue};

use super::position::PositionedValue;
use super::reader::ConfigReader;
use super::value;

/// Greatest nesting depth that is read.
const MAX_DEPTH: usize = 32;

/// Converts a value to JSON; a fault if it is, or contains, a value that JSON does not have.
pub(crate) fn from_toml(reader: &ConfigReader<'_>, entry: &PositionedValue<'_>) -> Option<Value> {
    let value = convert(entry.value, MAX_DEPTH);
    if value.is_none() {
        reader.report_error(
            &entry.position,
            "holds a date or another value that JSON has not, or has more than 32 levels",
        );
    }
    value
}

fn convert(value: &DeValue<'_>, depth: usize) -> Option<Value> {
    let depth = depth.checked_sub(1)?;
    Some(match value {
        DeValue::String(text) => Value::String(text.to_string()),
        DeValue::Boolean(flag) => Value::Bool(*flag),
        DeValue::Integer(number) => {
            let number =
                value::parse_integer(number).and_then(|number| i64::try_from(number).ok())?;
            Value::Number(number.into())
        }
        DeValue::Float(number) => {
            Value::Number(Number::from_f64(number.as_str().replace('_', "").parse().ok()?)?)
        }
        DeValue::Array(items) => {
            let items = items.iter().map(|item| convert(item.get_ref(), depth));
            Value::Array(items.collect::<Option<_>>()?)
        }
        DeValue::Table(table) => Value::Object(convert_members(table, depth)?),
        DeValue::Datetime(_) => return None,
    })
}

fn convert_members(table: &DeTable<'_>, depth: usize) -> Option<Map<String, Value>> {
    let members = table.iter().map(|(name, item)| {
        let name: &str = name.get_ref();
        Some((name.to_owned(), convert(item.get_ref(), depth)?))
    });
    members.collect()
}
