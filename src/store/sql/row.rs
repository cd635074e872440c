//! A row, and its columns as what they are.

use std::sync::Arc;

use rusqlite::types::ValueRef;
use uuid::Uuid;

use super::{Error, Result, Value};

/// A row while it passes by: nothing of it is copied.
#[derive(Debug)]
pub(in crate::store) struct Passing<'row>(pub(super) &'row rusqlite::Row<'row>);

impl Passing<'_> {
    /// The whole number at this place, from 0.
    pub(in crate::store) fn integer(&self, place: usize) -> Result<i64> {
        Ok(self.0.get(place)?)
    }

    /// The text at this place. It is not looked at: a damaged one may be none.
    pub(in crate::store) fn text(&self, place: usize) -> Result<&[u8]> {
        match self.0.get_ref(place)? {
            ValueRef::Text(text) => Ok(text),
            _ => Err(Error::Decode("a text is of another kind".into())),
        }
    }
}

/// One row of an answer.
#[derive(Debug)]
pub(in crate::store) struct Row {
    pub(super) names: Arc<[Box<str>]>,
    pub(super) values: Vec<Value>,
}

impl Row {
    /// The column of this name.
    pub(in crate::store) fn get<'row, T: FromColumn<'row>>(&'row self, name: &str) -> Result<T> {
        let place = self.names.iter().position(|known| **known == *name);
        let place = place.ok_or_else(|| Error::Decode(format!("there is no `{name}`").into()))?;
        self.at(place)
    }

    /// The column at this place, from 0.
    pub(in crate::store) fn at<'row, T: FromColumn<'row>>(&'row self, place: usize) -> Result<T> {
        let name = || self.names.get(place).map_or("?", |name| name);
        let value = self.values.get(place).unwrap_or(&Value::Null);
        T::read(value)
            .ok_or_else(|| Error::Decode(format!("`{}` is of another kind", name()).into()))
    }
}

/// What a column can be read as.
pub(in crate::store) trait FromColumn<'row>: Sized {
    /// The value, where it is of this kind.
    fn read(value: &'row Value) -> Option<Self>;
}

impl FromColumn<'_> for i64 {
    fn read(value: &Value) -> Option<Self> {
        let Value::Integer(number) = value else { return None };
        Some(*number)
    }
}

impl FromColumn<'_> for bool {
    fn read(value: &Value) -> Option<Self> {
        let Value::Integer(number) = value else { return None };
        Some(*number != 0)
    }
}

impl<'row> FromColumn<'row> for &'row str {
    fn read(value: &'row Value) -> Option<Self> {
        let Value::Text(text) = value else { return None };
        Some(text)
    }
}

impl FromColumn<'_> for String {
    fn read(value: &Value) -> Option<Self> {
        <&str>::read(value).map(str::to_owned)
    }
}

impl<'row> FromColumn<'row> for &'row [u8] {
    fn read(value: &'row Value) -> Option<Self> {
        match value {
            Value::Bytes(bytes) => Some(bytes),
            Value::Text(text) => Some(text.as_bytes()),
            Value::Null | Value::Integer(_) | Value::Real(_) => None,
        }
    }
}

impl FromColumn<'_> for Vec<u8> {
    fn read(value: &Value) -> Option<Self> {
        <&[u8]>::read(value).map(<[u8]>::to_vec)
    }
}

impl FromColumn<'_> for Uuid {
    fn read(value: &Value) -> Option<Self> {
        Self::from_slice(<&[u8]>::read(value)?).ok()
    }
}

impl<'row, T: FromColumn<'row>> FromColumn<'row> for Option<T> {
    fn read(value: &'row Value) -> Option<Self> {
        match value {
            Value::Null => Some(None),
            value => T::read(value).map(Some),
        }
    }
}
