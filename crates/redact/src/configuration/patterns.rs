//! Configured patterns: one search of a text finds candidate positions, and one search of a line finds the patterns
//! that match in it.

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Capture, Hir, HirKind, Look, Repetition};

use crate::configuration::Pattern;

/// Memory limit of the combined pattern for each search, in bytes; beyond the limit each pattern is tried separately.
const MAX_COMBINED_BYTES: usize = 32 << 20;

/// Memory limit of the lazy automaton's cache, in bytes.
const MAX_DFA_CACHE_BYTES: usize = 8 << 20;

/// Patterns in the order of the configuration.
#[derive(Default)]
pub(crate) struct RedactionPatterns {
    patterns: Vec<Pattern>,
    /// Pattern that finds positions in a text of many lines where any pattern may match. `None` if the patterns are too
    /// large for one search.
    multiline_regex: Option<Regex>,
    /// Set of all patterns. `None` if the patterns are too large for one search, or if the set would save nothing.
    combined_set: Option<RegexSet>,
}

impl RedactionPatterns {
    pub(crate) fn new(patterns: Vec<Pattern>) -> Self {
        let texts = patterns.iter().map(|pattern| pattern.regex().as_str());
        let mut builder = RegexSetBuilder::new(texts);
        builder.unicode(false).size_limit(MAX_COMBINED_BYTES).dfa_size_limit(MAX_DFA_CACHE_BYTES);
        let combined_set = (patterns.len() > 1).then(|| builder.build().ok()).flatten();
        Self { multiline_regex: build_multiline_regex(&patterns), patterns, combined_set }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.patterns.is_empty()
    }

    /// Returns the first position from `search_start` on, which is the start of a line, where a pattern may match. No
    /// line that ends before the position has a match.
    pub(crate) fn next_candidate_range(
        &self,
        text: &[u8],
        search_start: usize,
    ) -> Option<(usize, usize)> {
        if self.patterns.is_empty() || search_start >= text.len() {
            return None;
        }
        let Some(multiline_regex) = self.multiline_regex.as_ref() else {
            return Some((search_start, search_start));
        };
        multiline_regex.find_at(text, search_start).map(|found| (found.start(), found.end()))
    }

    /// Iterates over the patterns that match somewhere in a line.
    pub(crate) fn matching_patterns(&self, line: &[u8]) -> impl Iterator<Item = &Pattern> {
        let set_matches = self.combined_set.as_ref().map(|regex_set| regex_set.matches(line));
        let is_match =
            move |index: usize| set_matches.as_ref().is_none_or(|set| set.matched(index));
        self.patterns
            .iter()
            .enumerate()
            .filter(move |(index, _)| is_match(*index))
            .map(|(_, pattern)| pattern)
    }
}

/// Builds one expression that matches in a text of many lines wherever a pattern matches in one of the lines, and
/// possibly elsewhere: the pattern itself is tried there.
fn build_multiline_regex(patterns: &[Pattern]) -> Option<Regex> {
    let parse = |pattern: &Pattern| {
        let mut parser = ParserBuilder::new().unicode(false).utf8(false).build();
        parser.parse(pattern.regex().as_str()).ok().map(|pattern| to_multiline(&pattern))
    };
    let alternation =
        Hir::alternation(patterns.iter().map(parse).collect::<Option<_>>()?).to_string();
    RegexBuilder::new(&alternation)
        .size_limit(MAX_COMBINED_BYTES)
        .dfa_size_limit(MAX_DFA_CACHE_BYTES)
        .build()
        .ok()
}

/// Converts a pattern for one line to a pattern for many lines: its anchors become line anchors, and a line may end in
/// `\r\n`. Unicode word boundaries are omitted, because they make a search slow.
fn to_multiline(pattern: &Hir) -> Hir {
    match pattern.kind() {
        HirKind::Look(Look::Start) => Hir::look(Look::StartLF),
        HirKind::Look(Look::End | Look::EndLF) => Hir::look(Look::EndCRLF),
        HirKind::Look(assertion) if is_unicode_boundary(*assertion) => Hir::empty(),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => {
            pattern.clone()
        }
        HirKind::Repetition(Repetition { min, max, greedy, sub }) => Hir::repetition(Repetition {
            min: *min,
            max: *max,
            greedy: *greedy,
            sub: Box::new(to_multiline(sub)),
        }),
        HirKind::Capture(Capture { sub, .. }) => to_multiline(sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(to_multiline).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(to_multiline).collect()),
    }
}

const fn is_unicode_boundary(assertion: Look) -> bool {
    matches!(
        assertion,
        Look::WordUnicode
            | Look::WordUnicodeNegate
            | Look::WordStartUnicode
            | Look::WordEndUnicode
            | Look::WordStartHalfUnicode
            | Look::WordEndHalfUnicode
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The combined search finds the same patterns as single searches, also at the ends of a line and in any bytes.
    #[test]
    fn the_combined_search_finds_the_same_patterns() {
        let texts = ["EMP-[0-9]{3}", "^x{2}", "end$", r"\bword\b", "(?i)caf\u{e9}", "(?s-u:.)\\n"];
        let to_pattern = |text: &&str| Pattern::new(text, text, 0).unwrap();
        let single_patterns: Vec<_> = texts.iter().map(to_pattern).collect();
        let patterns = RedactionPatterns::new(single_patterns.clone());
        assert!(patterns.combined_set.is_some());
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
            let combined: Vec<_> = patterns.matching_patterns(line).map(Pattern::name).collect();
            let alone = single_patterns.iter().filter(|pattern| pattern.regex().is_match(line));
            assert_eq!(combined, alone.map(Pattern::name).collect::<Vec<_>>(), "{line:?}");
        }
    }

    /// Patterns with line anchors and word boundaries, and some that could match beyond a line.
    const PATTERN_TEXTS: [&str; 13] = [
        "EMP-[0-9]{3}",
        "^x{2}",
        r"\Ay{2}",
        "end$",
        "(?m)last$",
        r"tail\z",
        r"\bword\b",
        r"(?u:\b)größe(?u:\b)",
        "(?i)caf\u{e9}",
        r"(?x) a\ b # both",
        "[^a-z]{4}Q",
        r"\Bin\B",
        r"\xff",
    ];

    const LINES: &str = "of EMP-123|xx|no xx|yy|the end|end of|the last|a tail|a word|words|die größe.|\
                         a CAFé|see a b|12 4Q|thing|Q||\r|EMP-12|yy|xx|end|last|tail|word|in|größe";

    /// Returns the candidate ranges of a text, each of whole lines.
    fn candidate_line_ranges(
        patterns: &RedactionPatterns,
        text: &[u8],
    ) -> Vec<std::ops::Range<usize>> {
        let is_newline = |byte: &u8| *byte == b'\n';
        let (mut ranges, mut at) = (Vec::new(), 0);
        while let Some((start, end)) = patterns.next_candidate_range(text, at) {
            let from = text[..start].iter().rposition(is_newline).map_or(0, |newline| newline + 1);
            let last = end.max(start + 1) - 1;
            let newline = text[last..].iter().position(is_newline);
            at = newline.map_or(text.len(), |newline| last + newline + 1);
            ranges.push(from..at);
        }
        ranges
    }

    /// The search reaches each line with a match, whatever its line end and its neighbours.
    #[test]
    fn the_combined_search_reaches_every_line_with_a_match() {
        let to_pattern = |text: &&str| Pattern::new(text, text, 0).unwrap();
        let patterns = RedactionPatterns::new(PATTERN_TEXTS.iter().map(to_pattern).collect());
        assert!(patterns.multiline_regex.is_some());
        let lines: Vec<_> = LINES.split('|').collect();
        for (ending, step) in
            ["\n", "\r\n", "\r\r\n"].into_iter().flat_map(|line_end| [(line_end, 1), (line_end, 5)])
        {
            let (mut text, mut matching_positions) = (String::new(), Vec::new());
            for line in lines.iter().cycle().step_by(step).take(lines.len()) {
                if patterns.patterns.iter().any(|pattern| pattern.regex().is_match(line.as_bytes()))
                {
                    matching_positions.push(text.len());
                }
                text.extend([line, ending]);
            }
            let ranges = candidate_line_ranges(&patterns, text.as_bytes());
            let missed =
                matching_positions.iter().find(|at| !ranges.iter().any(|range| range.contains(at)));
            assert_eq!(missed, None, "{text:?}");
            assert!(matching_positions.len() > 9 && ranges.len() < lines.len() - 4, "{ranges:?}");
        }
    }
}
