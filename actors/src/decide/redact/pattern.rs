//! Patterns over bytes.

use regex::bytes::{Regex, RegexBuilder};

/// Compiles a constant pattern. All constants are tested to compile.
pub(super) fn compiled(pattern: &str) -> Option<Regex> {
    build(pattern).ok()
}

/// Compiles a pattern over bytes.
pub(super) fn build(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).unicode(false).size_limit(16 << 20).build()
}
