//! Reading of the file: its tables, its values with their positions and bounds, and the state of a reading.

pub(crate) mod address;
mod bounds;
pub(crate) mod credential;
pub(crate) mod json;
mod key;
mod keyword_list;
pub(crate) mod pattern;
mod position;
mod reader;
pub(crate) mod secret;
mod section;
mod shape;
pub(crate) mod value;

pub(crate) use bounds::RangeWithDefault;
pub(crate) use key::{ConfigKey, Count, Flag, Keyword, Seconds};
pub(crate) use keyword_list::read_keyword_list;
pub(crate) use position::{Positioned, PositionedValue, SourcePosition};
pub(crate) use reader::{ConfigReader, ConfigTextFile, NotUtf8, ReadResult};
pub(crate) use section::Section;
pub(crate) use shape::{KeyRecorder, RecordedKeys, ValueShape};
