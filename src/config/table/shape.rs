//! Shapes of the file's keys, as recorded by their readers.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::bounds::RangeWithDefault;

/// Permitted values of a key.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum ValueShape {
    /// No reader has recorded a shape.
    Unknown,
    /// Text.
    Text,
    /// One of these words.
    Keyword(Vec<String>),
    /// Boolean, with its default if it has one.
    Flag(Option<bool>),
    /// Whole number; true if it has the default of the bounds.
    Count(RangeWithDefault<u64>, bool),
    /// Number; true if it has the default of the bounds.
    Number(RangeWithDefault<f64>, bool),
    /// Duration in seconds; true if it has the default of the bounds.
    Seconds(RangeWithDefault<f64>, bool),
    /// A date and time.
    Date,
    /// A list.
    List,
    /// A list of texts, or of tables of known keys in their place.
    TextOrTableList,
    /// A list of texts.
    TextList,
    /// A list of some of these words.
    KeywordList(Vec<String>),
    /// A table of known keys.
    Table,
    /// Tables of known keys, each with a name.
    NamedTables,
    /// Any JSON value.
    Any,
    /// Table with arbitrary keys, whose values are texts, numbers or flags.
    AnyKeys,
}

/// Recorded shapes and descriptions by path. The last record counts; an unknown shape replaces no other.
#[derive(Debug, Default)]
pub(crate) struct KeyRecorder {
    shapes: RefCell<BTreeMap<String, ValueShape>>,
    descriptions: RefCell<BTreeMap<String, &'static str>>,
}

/// Shapes and descriptions of keys, by path.
#[derive(Debug, Default)]
pub(crate) struct RecordedKeys {
    pub(crate) shapes: BTreeMap<String, ValueShape>,
    /// Descriptions of the keys that have a row.
    pub(crate) descriptions: BTreeMap<String, &'static str>,
}

impl KeyRecorder {
    /// Records the shape of a key.
    pub(crate) fn record_shape(&self, path: &str, shape: ValueShape) {
        let mut shapes = self.shapes.borrow_mut();
        if shape != ValueShape::Unknown || !shapes.contains_key(path) {
            shapes.insert(path.to_owned(), shape);
        }
    }

    /// Records the description of a key.
    pub(crate) fn record_description(&self, path: &str, text: &'static str) {
        self.descriptions.borrow_mut().insert(path.to_owned(), text);
    }

    /// Returns all records.
    pub(crate) fn into_recorded_keys(self) -> RecordedKeys {
        RecordedKeys {
            shapes: self.shapes.into_inner(),
            descriptions: self.descriptions.into_inner(),
        }
    }
}
