//! Compilation of patterns over bytes.

use regex::bytes::{Regex, RegexBuilder};

/// Compiles a constant pattern. A test verifies that all constants compile.
pub(crate) fn compile_constant(pattern: &str) -> Option<Regex> {
    try_compile(pattern).ok()
}

/// Compiles a pattern over bytes.
pub(crate) fn try_compile(pattern: &str) -> Result<Regex, regex::Error> {
    RegexBuilder::new(pattern).unicode(false).size_limit(16 << 20).build()
}
