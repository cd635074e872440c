//! Values as columns hold them, and back.

use chrono::{DateTime, Utc};
use serde::Serialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::fault::unreadable;
use super::sql::{self, FromColumn, Row};

/// A time: microseconds since the epoch.
pub(super) fn micros(time: DateTime<Utc>) -> i64 {
    time.timestamp_micros()
}

/// A number of bytes or a place in a sequence. None is ever so large that it is cut off.
pub(super) fn integer(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

/// Anything that is stored as JSON.
pub(super) fn json(value: &impl Serialize) -> sql::Result<String> {
    serde_json::to_string(value).map_err(|error| sql::Error::Encode(error.into()))
}

/// The columns of one row, by name.
#[derive(Clone, Copy)]
pub(super) struct Columns<'row>(pub(super) &'row Row);

impl<'row> Columns<'row> {
    /// What a column is by itself.
    pub(super) fn plain<T: FromColumn<'row>>(self, name: &str) -> sql::Result<T> {
        self.0.get(name)
    }

    /// An id.
    pub(super) fn uuid(self, name: &str) -> sql::Result<Uuid> {
        self.plain(name)
    }

    /// Bytes of a known number.
    pub(super) fn bytes<const N: usize>(self, name: &str) -> sql::Result<[u8; N]> {
        self.plain::<&[u8]>(name)?.try_into().map_err(unreadable)
    }

    /// A whole number of a smaller type.
    pub(super) fn number<T: TryFrom<i64>>(self, name: &str) -> sql::Result<T> {
        narrow(self.plain(name)?, name)
    }

    /// A whole number of a smaller type, perhaps.
    pub(super) fn maybe_number<T: TryFrom<i64>>(self, name: &str) -> sql::Result<Option<T>> {
        self.plain::<Option<i64>>(name)?.map(|number| narrow(number, name)).transpose()
    }

    /// A time.
    pub(super) fn time(self, name: &str) -> sql::Result<DateTime<Utc>> {
        moment(self.plain(name)?, name)
    }

    /// A time, perhaps.
    pub(super) fn maybe_time(self, name: &str) -> sql::Result<Option<DateTime<Utc>>> {
        self.plain::<Option<i64>>(name)?.map(|micros| moment(micros, name)).transpose()
    }

    /// A published word.
    pub(super) fn word<T>(self, name: &str, parse: fn(&str) -> Option<T>) -> sql::Result<T> {
        known(self.plain(name)?, name, parse)
    }

    /// A published word, perhaps.
    pub(super) fn maybe_word<T>(
        self,
        name: &str,
        parse: fn(&str) -> Option<T>,
    ) -> sql::Result<Option<T>> {
        self.plain::<Option<&str>>(name)?.map(|word| known(word, name, parse)).transpose()
    }

    /// Anything that is stored as JSON.
    pub(super) fn json<T: DeserializeOwned>(self, name: &str) -> sql::Result<T> {
        serde_json::from_str(self.plain(name)?).map_err(unreadable)
    }

    /// Anything that is stored as JSON, perhaps.
    pub(super) fn maybe_json<T: DeserializeOwned>(self, name: &str) -> sql::Result<Option<T>> {
        self.plain::<Option<&str>>(name)?.map(serde_json::from_str).transpose().map_err(unreadable)
    }
}

fn narrow<T: TryFrom<i64>>(number: i64, name: &str) -> sql::Result<T> {
    T::try_from(number).ok().ok_or_else(|| unreadable(format!("`{name}` is out of range")))
}

fn moment(micros: i64, name: &str) -> sql::Result<DateTime<Utc>> {
    DateTime::from_timestamp_micros(micros)
        .ok_or_else(|| unreadable(format!("`{name}` is not a time")))
}

fn known<T>(word: &str, name: &str, parse: fn(&str) -> Option<T>) -> sql::Result<T> {
    parse(word).ok_or_else(|| unreadable(format!("`{name}` is not a known word")))
}
