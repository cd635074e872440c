//! Conversions that both versions share: JSON, times, bytes and optional texts.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use chrono::{DateTime, Datelike, Utc};
use prost_types::value::Kind;
use prost_types::{ListValue, Struct, Timestamp};
use serde_json::{Number, Value};

use crate::base64;
use crate::v1::Metadata;

/// Limit up to which a gRPC number represents every whole number exactly.
const MAX_EXACT_INTEGER: f64 = 9_007_199_254_740_992.0;

/// Returns the failure of invalid parameters.
pub fn invalid_params(message: impl Into<String>) -> Failure {
    Failure::new(Code::InvalidParams, message)
}

/// Returns a required field.
pub fn required_field<T>(field: Option<T>, name: &str) -> Result<T, Failure> {
    field.ok_or_else(|| invalid_params(format!("`{name}` must be given")))
}

/// Returns a required text that is not empty.
pub fn required_text(text: String, name: &str) -> Result<String, Failure> {
    if text.is_empty() {
        Err(invalid_params(format!("`{name}` must not be empty")))
    } else {
        Ok(text)
    }
}

/// Returns `None` for an empty text: the wire format cannot distinguish it from an absent text.
pub fn optional_text(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

/// Converts a count, which must not be negative.
pub fn read_count<T: TryFrom<i32>>(number: i32, name: &str) -> Result<T, Failure> {
    T::try_from(number)
        .map_err(|_negative| invalid_params(format!("`{name}` must not be negative")))
}

/// Reads free-form data.
pub fn read_metadata(proto: Option<Struct>) -> Result<Metadata, Failure> {
    proto.map_or_else(|| Ok(Metadata::new()), read_object)
}

/// Writes free-form data; returns `None` if it is empty.
pub fn write_metadata(metadata: Metadata) -> Option<Struct> {
    Some(metadata).filter(|metadata| !metadata.is_empty()).map(to_proto_struct)
}

/// Reads an object.
pub fn read_object(proto: Struct) -> Result<Metadata, Failure> {
    let fields = proto.fields.into_iter();
    fields.map(|(name, value)| read_json(value).map(|value| (name, value))).collect()
}

/// Writes an object.
pub fn to_proto_struct(object: Metadata) -> Struct {
    let fields = object.into_iter().map(|(name, value)| (name, to_proto_value(value)));
    Struct { fields: fields.collect() }
}

/// Reads any JSON value. A whole number becomes an integer: the wire format has only one kind of number.
pub fn read_json(proto: prost_types::Value) -> Result<Value, Failure> {
    Ok(match proto.kind {
        None | Some(Kind::NullValue(_)) => Value::Null,
        Some(Kind::BoolValue(flag)) => Value::Bool(flag),
        Some(Kind::NumberValue(number)) => Value::Number(json_number(number)?),
        Some(Kind::StringValue(text)) => Value::String(text),
        Some(Kind::ListValue(list)) => {
            Value::Array(list.values.into_iter().map(read_json).collect::<Result<_, _>>()?)
        }
        Some(Kind::StructValue(fields)) => Value::Object(read_object(fields)?),
    })
}

fn json_number(number: f64) -> Result<Number, Failure> {
    // Otherwise `1` would come back as `1.0`, which is another value for a schema that wants an integer.
    if number.fract() == 0.0 && number.abs() <= MAX_EXACT_INTEGER {
        #[expect(clippy::cast_possible_truncation, reason = "whole and small enough")]
        return Ok(Number::from(number as i64));
    }
    Number::from_f64(number).ok_or_else(|| invalid_params("a number must be finite"))
}

/// Writes any JSON value.
pub fn to_proto_value(json: Value) -> prost_types::Value {
    let kind = match json {
        Value::Null => Kind::NullValue(0),
        Value::Bool(flag) => Kind::BoolValue(flag),
        // A `Struct` has only this kind of number; larger integers lose their last digits.
        Value::Number(number) => Kind::NumberValue(number.as_f64().unwrap_or_default()),
        Value::String(text) => Kind::StringValue(text),
        Value::Array(list) => {
            Kind::ListValue(ListValue { values: list.into_iter().map(to_proto_value).collect() })
        }
        Value::Object(object) => Kind::StructValue(to_proto_struct(object)),
    };
    prost_types::Value { kind: Some(kind) }
}

/// Reads a time.
pub fn read_time(timestamp: Timestamp, name: &str) -> Result<DateTime<Utc>, Failure> {
    let nanos = u32::try_from(timestamp.nanos).ok();
    nanos
        .and_then(|nanos| DateTime::from_timestamp(timestamp.seconds, nanos))
        .filter(|time| (1..=9999).contains(&time.year())) // As JSON has them.
        .ok_or_else(|| invalid_params(format!("`{name}` must be a valid time")))
}

/// Writes a time.
pub fn to_timestamp(time: DateTime<Utc>) -> Timestamp {
    // In a leap second the fraction exceeds a second, which the wire format does not allow.
    let nanos = time.timestamp_subsec_nanos().min(999_999_999);
    Timestamp { seconds: time.timestamp(), nanos: i32::try_from(nanos).unwrap_or_default() }
}

/// Decodes the bytes of a file for the wire.
pub fn decode_base64(text: &str) -> Result<Vec<u8>, Failure> {
    let decode_failure = || Failure::new(Code::Internal, "a file's bytes are not in base64");
    base64::decode(text).ok_or_else(decode_failure)
}

/// Converts a number, limited to the maximum of the wire format.
pub fn saturating_i32<T>(number: T) -> i32
where
    i32: TryFrom<T>,
{
    i32::try_from(number).unwrap_or(i32::MAX)
}
