//! Versions of programs, and ranges of tested versions.

use std::cmp::Ordering;
use std::fmt;

/// Numbers of a version, such as 2.1.330. Text after the numbers is omitted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramVersion(Vec<u64>);

impl ProgramVersion {
    /// Parses a text such as `2.1.330`; a leading `v` and any text after the numbers are ignored.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim().trim_start_matches('v');
        let end = text.find(|char: char| !(char.is_ascii_digit() || char == '.'));
        let numbers = text.get(..end.unwrap_or(text.len()))?.trim_end_matches('.');
        let numbers: Option<Vec<u64>> = numbers.split('.').map(|part| part.parse().ok()).collect();
        numbers.map(Self)
    }

    /// Compares number by number; a missing number is 0.
    fn compare(&self, other: &Self) -> Ordering {
        let number_at =
            |version: &Self, index: usize| version.0.get(index).copied().unwrap_or_default();
        let length = self.0.len().max(other.0.len());
        let orderings =
            (0..length).map(|index| number_at(self, index).cmp(&number_at(other, index)));
        orderings.fold(Ordering::Equal, Ordering::then)
    }
}

impl fmt::Display for ProgramVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let numbers: Vec<_> = self.0.iter().map(ToString::to_string).collect();
        f.write_str(&numbers.join("."))
    }
}

/// Comparison operator of a bound.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum BoundOperator {
    AtLeast,
    Above,
    AtMost,
    Below,
    Equal,
}

const OPERATORS: [(&str, BoundOperator); 5] = [
    (">=", BoundOperator::AtLeast),
    (">", BoundOperator::Above),
    ("<=", BoundOperator::AtMost),
    ("<", BoundOperator::Below),
    ("=", BoundOperator::Equal),
];

/// Range of versions, such as `>=2.1, <3`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionRange {
    text: String,
    bounds: Vec<(BoundOperator, ProgramVersion)>,
}

impl VersionRange {
    /// Parses bounds that are separated by commas.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let bound = |part: &str| {
            let part = part.trim();
            let (symbol, operator) =
                OPERATORS.iter().find(|(symbol, _)| part.starts_with(symbol))?;
            let version = part.strip_prefix(symbol)?.trim();
            let is_plain = version.chars().all(|char| char.is_ascii_digit() || char == '.');
            Some((*operator, ProgramVersion::parse(version).filter(|_| is_plain)?))
        };
        let bounds: Option<Vec<_>> = text.split(',').map(bound).collect();
        bounds.map(|bounds| Self { text: text.trim().to_owned(), bounds })
    }

    /// Returns true if a version lies within all bounds.
    #[must_use]
    pub fn contains(&self, version: &ProgramVersion) -> bool {
        self.bounds.iter().all(|(operator, limit)| {
            let ordering = version.compare(limit);
            match operator {
                BoundOperator::AtLeast => ordering.is_ge(),
                BoundOperator::Above => ordering.is_gt(),
                BoundOperator::AtMost => ordering.is_le(),
                BoundOperator::Below => ordering.is_lt(),
                BoundOperator::Equal => ordering.is_eq(),
            }
        })
    }
}

impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::{ProgramVersion, VersionRange};

    #[test]
    fn a_version_range_contains_versions_within_all_bounds() {
        for (range, version, expected) in [
            (">=2.1, <3", "2.1.330", true),
            (">=2.1, <3", "2.1", true),
            (">=2.1, <3", "2.0.9", false),
            (">=2.1, <3", "3.0", false),
            (">=2.1,<3", "v2.10.0-beta.3", true),
            (">1.9", "1.10", true),
            (">1.9", "1.9.0", false),
            ("<=1.9", "1.9.0", true),
            ("=0.36", "0.36.0", true),
            ("=0.36", "0.36.1", false),
        ] {
            let range = VersionRange::parse(range).unwrap();
            assert_eq!(
                range.contains(&ProgramVersion::parse(version).unwrap()),
                expected,
                "{version}"
            );
        }
    }

    #[test]
    fn invalid_versions_and_ranges_are_rejected() {
        for text in ["", "x", ".", "1..2", "beta-1"] {
            assert_eq!(ProgramVersion::parse(text), None, "{text}");
        }
        for text in ["", "2.1", ">=", ">=2.x", ">=2 <3", ">=2,"] {
            assert_eq!(VersionRange::parse(text), None, "{text}");
        }
        assert_eq!(ProgramVersion::parse("2.1.330 (Claude)").unwrap().to_string(), "2.1.330");
    }
}
