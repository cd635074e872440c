//! Conversion between values and table columns.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::error::decode_error;
use super::sql::{self, FromColumn, SqlRow};

/// Converts a time into microseconds since the epoch.
pub(crate) fn micros(time: DateTime<Utc>) -> i64 {
    time.timestamp_micros()
}

/// Converts a number of bytes or a position in a sequence. No real number is so large that the limit applies.
pub(crate) fn saturating_i64(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Serializes a value as JSON.
pub(crate) fn to_json(value: &impl Serialize) -> sql::Result<String> {
    serde_json::to_string(value).map_err(|error| sql::Error::Encode(error.into()))
}

/// Columns of one row, by name.
#[derive(Clone, Copy)]
pub(crate) struct Columns<'row>(pub(crate) &'row SqlRow);

impl<'row> Columns<'row> {
    /// Returns a column without conversion.
    pub(crate) fn get<T: FromColumn<'row>>(self, name: &str) -> sql::Result<T> {
        self.0.get(name)
    }

    /// Returns an id.
    pub(crate) fn uuid(self, name: &str) -> sql::Result<Uuid> {
        self.get(name)
    }

    /// Returns bytes of a fixed length.
    pub(crate) fn bytes<const N: usize>(self, name: &str) -> sql::Result<[u8; N]> {
        self.get::<&[u8]>(name)?.try_into().map_err(decode_error)
    }

    /// Returns an integer of a smaller type.
    pub(crate) fn number<T: TryFrom<i64>>(self, name: &str) -> sql::Result<T> {
        narrow(self.get(name)?, name)
    }

    /// Returns an optional integer of a smaller type.
    pub(crate) fn maybe_number<T: TryFrom<i64>>(self, name: &str) -> sql::Result<Option<T>> {
        self.get::<Option<i64>>(name)?.map(|number| narrow(number, name)).transpose()
    }

    /// Returns a time.
    pub(crate) fn time(self, name: &str) -> sql::Result<DateTime<Utc>> {
        timestamp(self.get(name)?, name)
    }

    /// Returns an optional time.
    pub(crate) fn maybe_time(self, name: &str) -> sql::Result<Option<DateTime<Utc>>> {
        self.get::<Option<i64>>(name)?.map(|micros| timestamp(micros, name)).transpose()
    }

    /// Returns a value from its public name.
    pub(crate) fn enum_value<T>(self, name: &str, parse: fn(&str) -> Option<T>) -> sql::Result<T> {
        parse_enum_value(self.get(name)?, name, parse)
    }

    /// Returns an optional value from its public name.
    pub(crate) fn maybe_enum_value<T>(
        self,
        name: &str,
        parse: fn(&str) -> Option<T>,
    ) -> sql::Result<Option<T>> {
        self.get::<Option<&str>>(name)?.map(|word| parse_enum_value(word, name, parse)).transpose()
    }

    /// Deserializes a value from JSON.
    pub(crate) fn json<T: DeserializeOwned>(self, name: &str) -> sql::Result<T> {
        serde_json::from_str(self.get(name)?).map_err(decode_error)
    }

    /// Deserializes an optional value from JSON.
    pub(crate) fn maybe_json<T: DeserializeOwned>(self, name: &str) -> sql::Result<Option<T>> {
        self.get::<Option<&str>>(name)?.map(serde_json::from_str).transpose().map_err(decode_error)
    }
}

fn narrow<T: TryFrom<i64>>(number: i64, name: &str) -> sql::Result<T> {
    T::try_from(number).ok().ok_or_else(|| decode_error(format!("`{name}` is out of range")))
}

fn timestamp(micros: i64, name: &str) -> sql::Result<DateTime<Utc>> {
    DateTime::from_timestamp_micros(micros)
        .ok_or_else(|| decode_error(format!("`{name}` is not a time")))
}

fn parse_enum_value<T>(word: &str, name: &str, parse: fn(&str) -> Option<T>) -> sql::Result<T> {
    parse(word).ok_or_else(|| decode_error(format!("`{name}` is not a known word")))
}
