//! What a key of the file may hold, as those who read it say.

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::value::Bounds;

/// What a key may hold.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Shape {
    /// Nobody has said.
    Unsaid,
    /// Text.
    Text,
    /// One of these words.
    Word(Vec<String>),
    /// Yes or no, and what it is when nobody says.
    Flag(Option<bool>),
    /// A whole number; whether its default is one.
    Count(Bounds<u64>, bool),
    /// A number.
    Number(Bounds<f64>, bool),
    /// A span of time.
    Seconds(Bounds<f64>, bool),
    /// A date and time.
    Date,
    /// A list.
    List,
    /// A list of texts.
    Texts,
    /// A list of some of these words.
    Words(Vec<String>),
    /// A table of known keys.
    Table,
    /// Tables of known keys, each with a name.
    Named,
    /// Whatever JSON can say.
    Any,
    /// A table whose keys are the writer's, with texts, numbers or flags.
    Free,
}

/// What was said of each key, by its path. The last word counts; that nobody says anything is none.
#[derive(Debug, Default)]
pub(super) struct Shapes(RefCell<BTreeMap<String, Shape>>);

impl Shapes {
    pub(super) fn note(&self, path: &str, shape: Shape) {
        let mut shapes = self.0.borrow_mut();
        if shape != Shape::Unsaid || !shapes.contains_key(path) {
            shapes.insert(path.to_owned(), shape);
        }
    }

    pub(super) fn into_map(self) -> BTreeMap<String, Shape> {
        self.0.into_inner()
    }
}
