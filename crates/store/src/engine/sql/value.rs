//! Values of columns.

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};
use uuid::Uuid;

/// Value of a column.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ColumnValue {
    /// SQL null.
    Null,
    /// Integer; also a Boolean.
    Integer(i64),
    /// Floating-point number.
    Real(f64),
    /// Text.
    Text(String),
    /// Bytes; also an id.
    Bytes(Vec<u8>),
}

impl ToSql for ColumnValue {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(ToSqlOutput::Borrowed(match self {
            Self::Null => ValueRef::Null,
            Self::Integer(number) => ValueRef::Integer(*number),
            Self::Real(number) => ValueRef::Real(*number),
            Self::Text(text) => ValueRef::Text(text.as_bytes()),
            Self::Bytes(bytes) => ValueRef::Blob(bytes),
        }))
    }
}

impl From<ValueRef<'_>> for ColumnValue {
    fn from(value: ValueRef<'_>) -> Self {
        match value {
            ValueRef::Null => Self::Null,
            ValueRef::Integer(number) => Self::Integer(number),
            ValueRef::Real(number) => Self::Real(number),
            // Text that is not UTF-8 is read as bytes and therefore refused as a text.
            ValueRef::Text(text) => match std::str::from_utf8(text) {
                Ok(text) => Self::Text(text.to_owned()),
                Err(_not_text) => Self::Bytes(text.to_owned()),
            },
            ValueRef::Blob(bytes) => Self::Bytes(bytes.to_owned()),
        }
    }
}

impl From<i64> for ColumnValue {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl From<bool> for ColumnValue {
    fn from(value: bool) -> Self {
        Self::Integer(value.into())
    }
}

impl From<&str> for ColumnValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for ColumnValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&[u8]> for ColumnValue {
    fn from(bytes: &[u8]) -> Self {
        Self::Bytes(bytes.to_owned())
    }
}

impl From<Uuid> for ColumnValue {
    fn from(id: Uuid) -> Self {
        id.as_bytes().as_slice().into()
    }
}

impl<T: Into<Self>> From<Option<T>> for ColumnValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}
