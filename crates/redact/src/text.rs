//! Views of a text for the rules: without escape sequences, word boundaries, the extent of a value, compiled patterns.

pub(crate) mod ansi;
pub(crate) mod boundary;
pub(crate) mod pattern;
pub(crate) mod value;
