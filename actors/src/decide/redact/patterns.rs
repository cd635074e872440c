//! The configured patterns: one search of a line tells which of them match in it.

use regex::bytes::{RegexSet, RegexSetBuilder};

use crate::model::redaction::Pattern;

/// The most memory that all patterns together may take, in bytes; beyond it each is tried by itself.
const SIZE: usize = 64 << 20;

/// The most memory that a search may take for what it has seen, in bytes.
const SEEN: usize = 8 << 20;

/// Patterns, in the order of the configuration.
#[derive(Default)]
pub(super) struct Patterns {
    all: Vec<Pattern>,
    /// Nothing where they are too large for one search, or where it would save nothing.
    together: Option<RegexSet>,
}

impl Patterns {
    pub(super) fn new(all: Vec<Pattern>) -> Self {
        let texts = all.iter().map(|pattern| pattern.regex().as_str());
        let mut builder = RegexSetBuilder::new(texts);
        builder.unicode(false).size_limit(SIZE).dfa_size_limit(SEEN);
        let together = (all.len() > 1).then(|| builder.build().ok()).flatten();
        Self { all, together }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Those that match somewhere in a line.
    pub(super) fn in_line(&self, line: &[u8]) -> impl Iterator<Item = &Pattern> {
        let found = self.together.as_ref().map(|together| together.matches(line));
        let is_in = move |at: usize| found.as_ref().is_none_or(|found| found.matched(at));
        self.all.iter().enumerate().filter(move |(at, _)| is_in(*at)).map(|(_, pattern)| pattern)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The search of all finds what each finds by itself, also at the ends of a line and in any bytes.
    #[test]
    fn those_that_match_are_found_together_as_each_is_alone() {
        let texts = ["EMP-[0-9]{3}", "^x{2}", "end$", r"\bword\b", "(?i)caf\u{e9}", "(?s-u:.)\\n"];
        let made = |text: &&str| Pattern::new(text, text, 0).unwrap();
        let all: Vec<_> = texts.iter().map(made).collect();
        let patterns = Patterns::new(all.clone());
        assert!(patterns.together.is_some());
        let lines: [&[u8]; 7] = [
            b"EMP-123 xx",
            b"xx EMP-12",
            b"the end",
            b"end. words",
            b"a word",
            b"CAF\xc3\x89",
            b"\xff\n",
        ];
        for line in lines {
            let together: Vec<_> = patterns.in_line(line).map(Pattern::name).collect();
            let alone = all.iter().filter(|pattern| pattern.regex().is_match(line));
            assert_eq!(together, alone.map(Pattern::name).collect::<Vec<_>>(), "{line:?}");
        }
    }
}
