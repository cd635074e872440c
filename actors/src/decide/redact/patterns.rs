//! The configured patterns: one search of a text tells where to look for them, and one of a line which of
//! them match in it.

use regex::bytes::{Regex, RegexBuilder, RegexSet, RegexSetBuilder};
use regex_syntax::ParserBuilder;
use regex_syntax::hir::{Capture, Hir, HirKind, Look, Repetition};

use crate::model::redaction::Pattern;

/// The most memory that all patterns together may take for each search, in bytes; beyond it each is tried
/// by itself.
const SIZE: usize = 32 << 20;

/// The most memory that a search may take for what it has seen, in bytes.
const SEEN: usize = 8 << 20;

/// Patterns, in the order of the configuration.
#[derive(Default)]
pub(super) struct Patterns {
    all: Vec<Pattern>,
    /// Finds where any of them may match in a text of many lines. Nothing where they are too large for
    /// one search.
    anywhere: Option<Regex>,
    /// Nothing where they are too large for one search, or where it would save nothing.
    together: Option<RegexSet>,
}

impl Patterns {
    pub(super) fn new(all: Vec<Pattern>) -> Self {
        let texts = all.iter().map(|pattern| pattern.regex().as_str());
        let mut builder = RegexSetBuilder::new(texts);
        builder.unicode(false).size_limit(SIZE).dfa_size_limit(SEEN);
        let together = (all.len() > 1).then(|| builder.build().ok()).flatten();
        Self { anywhere: anywhere(&all), all, together }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// The first place from `at` on, the beginning of a line, where one of them may match. No line that
    /// ends before it has a match.
    pub(super) fn next(&self, text: &[u8], at: usize) -> Option<(usize, usize)> {
        if self.all.is_empty() || at >= text.len() {
            return None;
        }
        let Some(anywhere) = self.anywhere.as_ref() else { return Some((at, at)) };
        anywhere.find_at(text, at).map(|found| (found.start(), found.end()))
    }

    /// Those that match somewhere in a line.
    pub(super) fn in_line(&self, line: &[u8]) -> impl Iterator<Item = &Pattern> {
        let found = self.together.as_ref().map(|together| together.matches(line));
        let is_in = move |at: usize| found.as_ref().is_none_or(|found| found.matched(at));
        self.all.iter().enumerate().filter(move |(at, _)| is_in(*at)).map(|(_, pattern)| pattern)
    }
}

/// One expression that matches in a text of many lines wherever a pattern matches in one of them, and
/// perhaps elsewhere: the pattern itself is tried there.
fn anywhere(all: &[Pattern]) -> Option<Regex> {
    let parsed = |pattern: &Pattern| {
        let mut parser = ParserBuilder::new().unicode(false).utf8(false).build();
        parser.parse(pattern.regex().as_str()).ok().map(|pattern| among_lines(&pattern))
    };
    let all = Hir::alternation(all.iter().map(parsed).collect::<Option<_>>()?).to_string();
    RegexBuilder::new(&all).size_limit(SIZE).dfa_size_limit(SEEN).build().ok()
}

/// A pattern of one line, for a text of many: its ends are those of a line, whose end may be `\r\n`.
/// Where words of all scripts begin and end is left open, for that is what makes a search slow.
fn among_lines(pattern: &Hir) -> Hir {
    match pattern.kind() {
        HirKind::Look(Look::Start) => Hir::look(Look::StartLF),
        HirKind::Look(Look::End | Look::EndLF) => Hir::look(Look::EndCRLF),
        HirKind::Look(look) if is_of_all_scripts(*look) => Hir::empty(),
        HirKind::Empty | HirKind::Literal(_) | HirKind::Class(_) | HirKind::Look(_) => {
            pattern.clone()
        }
        HirKind::Repetition(Repetition { min, max, greedy, sub }) => Hir::repetition(Repetition {
            min: *min,
            max: *max,
            greedy: *greedy,
            sub: Box::new(among_lines(sub)),
        }),
        HirKind::Capture(Capture { sub, .. }) => among_lines(sub),
        HirKind::Concat(parts) => Hir::concat(parts.iter().map(among_lines).collect()),
        HirKind::Alternation(parts) => Hir::alternation(parts.iter().map(among_lines).collect()),
    }
}

const fn is_of_all_scripts(look: Look) -> bool {
    matches!(
        look,
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

    /// Patterns that say something about the ends of lines and of words, and some that could go beyond.
    const TEXTS: [&str; 13] = [
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

    /// The places that a text is looked at, each of whole lines.
    fn looked_at(patterns: &Patterns, text: &[u8]) -> Vec<std::ops::Range<usize>> {
        let is_end = |byte: &u8| *byte == b'\n';
        let (mut places, mut at) = (Vec::new(), 0);
        while let Some((start, end)) = patterns.next(text, at) {
            let from = text[..start].iter().rposition(is_end).map_or(0, |newline| newline + 1);
            let last = end.max(start + 1) - 1;
            let newline = text[last..].iter().position(is_end);
            at = newline.map_or(text.len(), |newline| last + newline + 1);
            places.push(from..at);
        }
        places
    }

    /// Each line with a match is come to, whatever its end is and whatever stands beside it.
    #[test]
    fn the_search_of_a_text_comes_to_every_line_in_which_one_matches() {
        let made = |text: &&str| Pattern::new(text, text, 0).unwrap();
        let patterns = Patterns::new(TEXTS.iter().map(made).collect());
        assert!(patterns.anywhere.is_some());
        let lines: Vec<_> = LINES.split('|').collect();
        for (ending, step) in ["\n", "\r\n", "\r\r\n"].into_iter().flat_map(|it| [(it, 1), (it, 5)])
        {
            let (mut text, mut matching) = (String::new(), Vec::new());
            for line in lines.iter().cycle().step_by(step).take(lines.len()) {
                if patterns.all.iter().any(|it| it.regex().is_match(line.as_bytes())) {
                    matching.push(text.len());
                }
                text.extend([line, ending]);
            }
            let places = looked_at(&patterns, text.as_bytes());
            let missed = matching.iter().find(|at| !places.iter().any(|place| place.contains(at)));
            assert_eq!(missed, None, "{text:?}");
            assert!(matching.len() > 9 && places.len() < lines.len() - 4, "{places:?}");
        }
    }
}
