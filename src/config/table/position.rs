//! Positions of values in the file.

use std::ops::Range;

use toml::de::DeValue;

/// Position of a value.
#[derive(Debug, Clone)]
pub(crate) struct SourcePosition {
    /// Key with its tables.
    pub(crate) key_path: String,
    /// Bytes of the value, or of the key if there is no value to blame.
    pub(crate) span: Range<usize>,
    /// True if the text of the position may be printed.
    pub(crate) may_quote_source: bool,
}

impl SourcePosition {
    /// Returns the position of a key below this one, at the same bytes.
    pub(crate) fn child(&self, key: &str) -> Self {
        let key_path = if self.key_path.is_empty() {
            key.to_owned()
        } else {
            format!("{}.{key}", self.key_path)
        };
        Self { key_path, ..self.clone() }
    }

    /// Returns the same position at other bytes.
    pub(crate) fn with_span(self, span: Range<usize>) -> Self {
        Self { span, ..self }
    }

    /// Returns the same position, whose text is not printed.
    pub(crate) fn without_excerpt(self) -> Self {
        Self { may_quote_source: false, ..self }
    }
}

/// Value with its position.
#[derive(Debug, Clone)]
pub(crate) struct Positioned<T> {
    pub(crate) value: T,
    pub(crate) position: SourcePosition,
}

/// Value as written, with its position.
pub(crate) type PositionedValue<'c> = Positioned<&'c DeValue<'c>>;
