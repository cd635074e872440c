//! Bounds of numbers.

/// Bounds of a number, and its default.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct RangeWithDefault<T> {
    pub(crate) min: T,
    pub(crate) max: T,
    pub(crate) default: T,
}

impl<T: PartialOrd + Copy> RangeWithDefault<T> {
    /// Returns bounds with a default.
    pub(crate) const fn new(min: T, max: T, default: T) -> Self {
        Self { min, max, default }
    }

    /// Returns true if a value lies within the bounds.
    pub(crate) fn contains(&self, value: T) -> bool {
        self.min <= value && value <= self.max
    }
}
