//! Rows of keys: each states the name, the type, the bounds, the default and the description of a key in one place.
//!
//! The reader of a table, the JSON Schema and the reference page come from the same rows.

use std::time::Duration;

use super::bounds::RangeWithDefault;
use super::section::Section;

/// Row of a key.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ConfigKey<K> {
    name: &'static str,
    kind: K,
    /// Description; empty if the name is enough.
    description: &'static str,
}

/// Type of a key, with its bounds and its default.
pub(crate) trait KeyKind: Copy {
    /// Type of the value.
    type Value;

    /// Reads the value of a key; the default if it is absent or wrong.
    fn read(self, section: &mut Section<'_>, name: &'static str) -> Self::Value;

    /// Returns the default.
    fn default(self) -> Self::Value;
}

/// Boolean key, with its default.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Flag(bool);

/// Whole number.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Count(RangeWithDefault<u64>);

/// Duration; its bounds are in seconds.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Seconds(RangeWithDefault<f64>);

/// One of a few words, with the default.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Keyword<T: 'static>(&'static [(&'static str, T)], T);

impl ConfigKey<Flag> {
    /// Returns the row of a boolean.
    pub(crate) const fn flag(name: &'static str, default: bool, description: &'static str) -> Self {
        Self { name, kind: Flag(default), description }
    }
}

impl ConfigKey<Count> {
    /// Returns the row of a whole number.
    pub(crate) const fn count(
        name: &'static str,
        bounds: RangeWithDefault<u64>,
        description: &'static str,
    ) -> Self {
        Self { name, kind: Count(bounds), description }
    }
}

impl ConfigKey<Seconds> {
    /// Returns the row of a duration.
    pub(crate) const fn seconds(
        name: &'static str,
        bounds: RangeWithDefault<f64>,
        description: &'static str,
    ) -> Self {
        Self { name, kind: Seconds(bounds), description }
    }
}

impl<T: Copy> ConfigKey<Keyword<T>> {
    /// Returns the row of a word.
    pub(crate) const fn keyword(
        name: &'static str,
        (known, default): (&'static [(&'static str, T)], T),
        description: &'static str,
    ) -> Self {
        Self { name, kind: Keyword(known, default), description }
    }
}

impl<K: KeyKind> ConfigKey<K> {
    /// Returns the default.
    pub(crate) fn default(&self) -> K::Value {
        self.kind.default()
    }

    /// Reads the key of a table; its default if it is absent or wrong.
    pub(crate) fn read(&self, section: &mut Section<'_>) -> K::Value {
        section.record_description(self.name, self.description);
        self.kind.read(section, self.name)
    }
}

impl KeyKind for Flag {
    type Value = bool;

    fn read(self, section: &mut Section<'_>, name: &'static str) -> bool {
        section.flag(name, self.0)
    }

    fn default(self) -> bool {
        self.0
    }
}

impl KeyKind for Count {
    type Value = u64;

    fn read(self, section: &mut Section<'_>, name: &'static str) -> u64 {
        section.count(name, self.0)
    }

    fn default(self) -> u64 {
        self.0.default
    }
}

impl KeyKind for Seconds {
    type Value = Duration;

    fn read(self, section: &mut Section<'_>, name: &'static str) -> Duration {
        section.duration(name, self.0)
    }

    fn default(self) -> Duration {
        Duration::try_from_secs_f64(self.0.default).unwrap_or_default()
    }
}

impl<T: Copy> KeyKind for Keyword<T> {
    type Value = T;

    fn read(self, section: &mut Section<'_>, name: &'static str) -> T {
        section.keyword(name, self.0).map_or(self.1, |found| found.value)
    }

    fn default(self) -> T {
        self.1
    }
}
