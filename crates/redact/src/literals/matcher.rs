//! Search for registered values and for the literals of token formats in a text.

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::encode::forms;
use super::prefilter::{Literal, LiteralPrefilter};
use super::prefix_index::{PREFIX_BYTES, PrefixIndex};
use crate::rules::token_formats::TOKEN_FORMATS;
use crate::rules::{apply_token_formats, keywords};
use crate::spans::{SecretSpan, VisiblePart};

/// Literals of all token formats, followed by the forms of all registered values.
pub(crate) struct LiteralMatcher {
    /// Automaton that finds literals.
    automaton: Option<AhoCorasick>,
    /// Index that finds forms by their first bytes; the rest is compared.
    prefix_index: PrefixIndex,
    /// Prefilter for the positions of literals and key words. `None` if these are not searched for.
    prefilter: Option<LiteralPrefilter>,
    patterns: Vec<Vec<u8>>,
    /// Token format of each literal; the patterns after the literals are forms.
    literal_formats: Vec<usize>,
    /// Prefixes, each up to a line end, of multi-line forms.
    beginnings: Vec<Vec<u8>>,
    max_form_bytes: usize,
}

impl LiteralMatcher {
    pub(crate) fn new(registered: impl IntoIterator<Item = String>) -> Self {
        let literals = || {
            TOKEN_FORMATS.iter().enumerate().flat_map(|(row, token_format)| {
                token_format.literals.iter().map(move |text| (row, text))
            })
        };
        let literal_formats: Vec<usize> = literals().map(|(row, _)| row).collect();
        let mut values: Vec<Vec<u8>> =
            registered.into_iter().flat_map(|value| forms(&value)).collect();
        // Many values share forms, for example when encoding changes nothing.
        values.sort_unstable();
        values.dedup();
        let max_form_bytes = values.iter().map(Vec::len).max().unwrap_or(0);
        let beginnings = values.iter().flat_map(|value| prefixes(value)).collect();
        let patterns: Vec<Vec<u8>> =
            literals().map(|(_, text)| text.as_bytes().to_vec()).chain(values).collect();
        let all = patterns.iter().map(Vec::as_slice).enumerate();
        // Not in the automaton: with 640 registered values that read 163 MB/s of a log, and the index 397 MB/s.
        let prefix_index = PrefixIndex::new(all.skip(literal_formats.len()));
        let literals = || patterns.iter().take(literal_formats.len());
        let kind = Some(AhoCorasickKind::DFA);
        let automaton = AhoCorasick::builder().kind(kind).build(literals()).ok();
        let prefilter = keywords().filter(|_| automaton.is_some()).map(|words| {
            let words = words.map(|word| Literal::CaseInsensitive(word.as_bytes()));
            let literals = literals().map(|literal| Literal::CaseSensitive(literal.as_slice()));
            LiteralPrefilter::new(literals.chain(words))
        });
        Self {
            automaton,
            prefix_index,
            prefilter,
            patterns,
            literal_formats,
            beginnings,
            max_form_bytes,
        }
    }

    /// Returns the length of the longest form of a registered value, in bytes.
    pub(crate) const fn max_form_bytes(&self) -> usize {
        self.max_form_bytes
    }

    /// Returns the ranges that may contain a literal or a key word, in order: each of them lies within one range.
    pub(crate) fn candidate_ranges(&self, text: &[u8]) -> Vec<Range<usize>> {
        let everywhere = || std::iter::once(0..text.len()).collect();
        self.prefilter
            .as_ref()
            .map_or_else(everywhere, |prefilter| prefilter.candidate_ranges(text))
    }

    /// Returns the position of the first literal or form from `at` on.
    pub(crate) fn next(&self, text: &[u8], at: usize) -> Option<usize> {
        let found = [self.next_literal(text, at), self.next_form(text, at)];
        found.into_iter().flatten().map(|found| found.0).min()
    }

    /// Returns the range of the prefix of the first form from `at` on.
    pub(crate) fn next_form(&self, text: &[u8], at: usize) -> Option<(usize, usize)> {
        self.prefix_index.next(text, at).map(|start| (start, start + PREFIX_BYTES))
    }

    /// Returns the range of the first literal from `at` on.
    pub(crate) fn next_literal(&self, text: &[u8], at: usize) -> Option<(usize, usize)> {
        // Without an automaton every position counts as a hit, so that everything is inspected.
        let Some(automaton) = self.automaton.as_ref() else { return Some((at, at)) };
        automaton.find(text.get(at..)?).map(|found| (at + found.start(), at + found.end()))
    }

    /// Finds registered values, and applies the token formats whose literals are in the line.
    pub(crate) fn spans(&self, line: &[u8], spans: &mut Vec<SecretSpan>) {
        let mut found_formats = 0_u128;
        let mut visit = |number: usize, start: usize| {
            let Some(pattern) = self.patterns.get(number) else { return };
            let is_whole = line.get(start..).is_some_and(|rest| rest.starts_with(pattern));
            match self.literal_formats.get(number) {
                _ if !is_whole => {}
                // Each format runs once for a line, however often its literal occurs.
                Some(row) => found_formats |= 1 << row,
                None => spans.push(SecretSpan::without_context(
                    start..start + pattern.len(),
                    VisiblePart::Stars(0),
                )),
            }
        };
        match self.automaton.as_ref() {
            Some(automaton) => automaton
                .find_overlapping_iter(line)
                .for_each(|found| visit(found.pattern().as_usize(), found.start())),
            // A slow search is better than a secret that is shown.
            None => self.one_by_one(line, &mut visit),
        }
        let mut from = 0;
        while let Some(start) = self.prefix_index.next(line, from) {
            self.prefix_index.entries_at(line, start).for_each(|number| visit(number, start));
            from = start + 1;
        }
        apply_token_formats(line, found_formats, spans);
    }

    /// Slow search for the case that there is no automaton.
    fn one_by_one(&self, line: &[u8], visit: &mut impl FnMut(usize, usize)) {
        for number in 0..self.literal_formats.len() {
            (0..line.len()).for_each(|start| visit(number, start));
        }
    }

    /// Returns the start of the longest prefix of a multi-line registered value at the end of `text`, which ends in a
    /// line end.
    pub(crate) fn open_value_start(&self, text: &[u8]) -> Option<usize> {
        let live = self.beginnings.iter().filter(|beginning| text.ends_with(beginning));
        live.map(|beginning| text.len() - beginning.len()).min()
    }

    /// Returns the start of the longest prefix of any form at the end of `text`.
    pub(crate) fn partial_form_start(&self, text: &[u8]) -> Option<usize> {
        let forms = self.patterns.get(self.literal_formats.len()..)?;
        let partial = |form: &Vec<u8>| {
            let lengths = (1..form.len().min(text.len() + 1)).rev();
            lengths
                .into_iter()
                .find(|length| form.get(..*length).is_some_and(|head| text.ends_with(head)))
        };
        forms.iter().filter_map(partial).max().map(|length| text.len() - length)
    }
}

fn prefixes(form: &[u8]) -> Vec<Vec<u8>> {
    let inner = form.get(..form.len().saturating_sub(1)).unwrap_or_default();
    let ends = inner.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    ends.filter_map(|(at, _)| form.get(..=at).map(<[u8]>::to_vec)).collect()
}
