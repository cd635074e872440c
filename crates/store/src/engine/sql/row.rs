//! Rows and typed access to their columns.

use std::sync::Arc;

use rusqlite::types::ValueRef;
use uuid::Uuid;

use super::{ColumnValue, Error, Result};

/// Current row of a running statement; nothing is copied.
#[derive(Debug)]
pub(crate) struct RowRef<'row>(pub(in crate::engine::sql) &'row rusqlite::Row<'row>);

impl RowRef<'_> {
    /// Returns the integer at this position, from 0.
    pub(crate) fn integer(&self, index: usize) -> Result<i64> {
        Ok(self.0.get(index)?)
    }

    /// Returns the text at this position as bytes, without a check of its encoding: a damaged text may not be UTF-8.
    pub(crate) fn text(&self, index: usize) -> Result<&[u8]> {
        match self.0.get_ref(index)? {
            ValueRef::Text(text) => Ok(text),
            _ => Err(Error::Decode("a text is of another kind".into())),
        }
    }
}

/// Row of a result.
#[derive(Debug)]
pub(crate) struct SqlRow {
    pub(in crate::engine::sql) column_names: Arc<[Box<str>]>,
    pub(in crate::engine::sql) values: Vec<ColumnValue>,
}

impl SqlRow {
    /// Returns the column with this name.
    pub(crate) fn get<'row, T: FromColumn<'row>>(&'row self, name: &str) -> Result<T> {
        let index = self.column_names.iter().position(|known| **known == *name);
        let index = index.ok_or_else(|| Error::Decode(format!("there is no `{name}`").into()))?;
        self.column_at(index)
    }

    /// Returns the column at this position, from 0.
    pub(crate) fn column_at<'row, T: FromColumn<'row>>(&'row self, index: usize) -> Result<T> {
        let name = || self.column_names.get(index).map_or("?", |name| name);
        let value = self.values.get(index).unwrap_or(&ColumnValue::Null);
        T::from_column(value)
            .ok_or_else(|| Error::Decode(format!("`{}` is of another kind", name()).into()))
    }
}

/// Type that a column can be read as.
pub(crate) trait FromColumn<'row>: Sized {
    /// Returns the value, or `None` if it has another type.
    fn from_column(value: &'row ColumnValue) -> Option<Self>;
}

impl FromColumn<'_> for i64 {
    fn from_column(value: &ColumnValue) -> Option<Self> {
        let ColumnValue::Integer(number) = value else { return None };
        Some(*number)
    }
}

impl FromColumn<'_> for bool {
    fn from_column(value: &ColumnValue) -> Option<Self> {
        let ColumnValue::Integer(number) = value else { return None };
        Some(*number != 0)
    }
}

impl<'row> FromColumn<'row> for &'row str {
    fn from_column(value: &'row ColumnValue) -> Option<Self> {
        let ColumnValue::Text(text) = value else { return None };
        Some(text)
    }
}

impl FromColumn<'_> for String {
    fn from_column(value: &ColumnValue) -> Option<Self> {
        <&str>::from_column(value).map(str::to_owned)
    }
}

impl<'row> FromColumn<'row> for &'row [u8] {
    fn from_column(value: &'row ColumnValue) -> Option<Self> {
        match value {
            ColumnValue::Bytes(bytes) => Some(bytes),
            ColumnValue::Text(text) => Some(text.as_bytes()),
            ColumnValue::Null | ColumnValue::Integer(_) | ColumnValue::Real(_) => None,
        }
    }
}

impl FromColumn<'_> for Vec<u8> {
    fn from_column(value: &ColumnValue) -> Option<Self> {
        <&[u8]>::from_column(value).map(<[u8]>::to_vec)
    }
}

impl FromColumn<'_> for Uuid {
    fn from_column(value: &ColumnValue) -> Option<Self> {
        Self::from_slice(<&[u8]>::from_column(value)?).ok()
    }
}

impl<'row, T: FromColumn<'row>> FromColumn<'row> for Option<T> {
    fn from_column(value: &'row ColumnValue) -> Option<Self> {
        match value {
            ColumnValue::Null => Some(None),
            value => T::from_column(value).map(Some),
        }
    }
}
