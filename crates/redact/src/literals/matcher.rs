//! Search for registered values and for the literals of token formats in a text.

use std::ops::Range;

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use super::encode::encoded_forms;
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
    needles: Vec<Vec<u8>>,
    /// Token format of each literal; the patterns after the literals are forms.
    literal_format_indexes: Vec<usize>,
    /// Prefixes, each up to a line end, of multi-line forms.
    multiline_form_prefixes: Vec<Vec<u8>>,
    max_form_bytes: usize,
}

impl LiteralMatcher {
    pub(crate) fn new(registered_values: impl IntoIterator<Item = String>) -> Self {
        let literals_with_format = || {
            TOKEN_FORMATS.iter().enumerate().flat_map(|(format_index, token_format)| {
                token_format.literals.iter().map(move |text| (format_index, text))
            })
        };
        let literal_format_indexes: Vec<usize> =
            literals_with_format().map(|(format_index, _)| format_index).collect();
        let mut all_forms: Vec<Vec<u8>> =
            registered_values.into_iter().flat_map(|value| encoded_forms(&value)).collect();
        // Many values share forms, for example when encoding changes nothing.
        all_forms.sort_unstable();
        all_forms.dedup();
        let max_form_bytes = all_forms.iter().map(Vec::len).max().unwrap_or(0);
        let multiline_form_prefixes =
            all_forms.iter().flat_map(|value| prefixes_at_line_ends(value)).collect();
        let needles: Vec<Vec<u8>> = literals_with_format()
            .map(|(_, text)| text.as_bytes().to_vec())
            .chain(all_forms)
            .collect();
        let numbered_patterns = needles.iter().map(Vec::as_slice).enumerate();
        // Not in the automaton: with 640 registered values that read 163 MB/s of a log, and the index 397 MB/s.
        let prefix_index = PrefixIndex::new(numbered_patterns.skip(literal_format_indexes.len()));
        let literals = || needles.iter().take(literal_format_indexes.len());
        let automaton_kind = Some(AhoCorasickKind::DFA);
        let automaton = AhoCorasick::builder().kind(automaton_kind).build(literals()).ok();
        let prefilter = keywords().filter(|_| automaton.is_some()).map(|keywords| {
            let keywords = keywords.map(|keyword| Literal::CaseInsensitive(keyword.as_bytes()));
            let literals = literals().map(|literal| Literal::CaseSensitive(literal.as_slice()));
            LiteralPrefilter::new(literals.chain(keywords))
        });
        Self {
            automaton,
            prefix_index,
            prefilter,
            needles,
            literal_format_indexes,
            multiline_form_prefixes,
            max_form_bytes,
        }
    }

    /// Returns the length of the longest form of a registered value, in bytes.
    pub(crate) const fn max_form_bytes(&self) -> usize {
        self.max_form_bytes
    }

    /// Returns the ranges that may contain a literal or a key word, in order: each of them lies within one range.
    pub(crate) fn candidate_ranges(&self, text: &[u8]) -> Vec<Range<usize>> {
        let whole_text = || std::iter::once(0..text.len()).collect();
        self.prefilter
            .as_ref()
            .map_or_else(whole_text, |prefilter| prefilter.candidate_ranges(text))
    }

    /// Returns the position of the first literal or form from `search_start` on.
    pub(crate) fn next_position(&self, text: &[u8], search_start: usize) -> Option<usize> {
        let found =
            [self.next_literal(text, search_start), self.next_form_prefix(text, search_start)];
        found.into_iter().flatten().map(|found| found.0).min()
    }

    /// Returns the range of the prefix of the first form from `search_start` on.
    pub(crate) fn next_form_prefix(
        &self,
        text: &[u8],
        search_start: usize,
    ) -> Option<(usize, usize)> {
        self.prefix_index
            .next_position(text, search_start)
            .map(|start| (start, start + PREFIX_BYTES))
    }

    /// Returns the range of the first literal from `search_start` on.
    pub(crate) fn next_literal(&self, text: &[u8], search_start: usize) -> Option<(usize, usize)> {
        // Without an automaton every position counts as a hit, so that everything is inspected.
        let Some(automaton) = self.automaton.as_ref() else {
            return Some((search_start, search_start));
        };
        automaton
            .find(text.get(search_start..)?)
            .map(|found| (search_start + found.start(), search_start + found.end()))
    }

    /// Finds registered values, and applies the token formats whose literals are in the line.
    pub(crate) fn push_spans(&self, line: &[u8], spans: &mut Vec<SecretSpan>) {
        let mut found_format_bits = 0_u128;
        let mut visit = |index: usize, start: usize| {
            let Some(pattern) = self.needles.get(index) else { return };
            let matches_whole_pattern =
                line.get(start..).is_some_and(|rest| rest.starts_with(pattern));
            match self.literal_format_indexes.get(index) {
                _ if !matches_whole_pattern => {}
                // Each format runs once for a line, however often its literal occurs.
                Some(format_index) => found_format_bits |= 1 << format_index,
                None => spans.push(SecretSpan::without_context(
                    start..start + pattern.len(),
                    VisiblePart::PrefixOnly(0),
                )),
            }
        };
        match self.automaton.as_ref() {
            Some(automaton) => automaton
                .find_overlapping_iter(line)
                .for_each(|found| visit(found.pattern().as_usize(), found.start())),
            // A slow search is better than a secret that is shown.
            None => self.visit_every_position(line, &mut visit),
        }
        let mut from = 0;
        while let Some(start) = self.prefix_index.next_position(line, from) {
            self.prefix_index.entry_numbers_at(line, start).for_each(|index| visit(index, start));
            from = start + 1;
        }
        apply_token_formats(line, found_format_bits, spans);
    }

    /// Slow search for the case that there is no automaton.
    fn visit_every_position(&self, line: &[u8], visit: &mut impl FnMut(usize, usize)) {
        for index in 0..self.literal_format_indexes.len() {
            (0..line.len()).for_each(|start| visit(index, start));
        }
    }

    /// Returns the start of the longest prefix of a multi-line registered value at the end of `text`, which ends in a
    /// line end.
    pub(crate) fn partial_multiline_form_start(&self, text: &[u8]) -> Option<usize> {
        let open_prefixes =
            self.multiline_form_prefixes.iter().filter(|prefix| text.ends_with(prefix));
        open_prefixes.map(|prefix| text.len() - prefix.len()).min()
    }

    /// Returns the start of the longest prefix of any form at the end of `text`.
    pub(crate) fn partial_form_start(&self, text: &[u8]) -> Option<usize> {
        let forms = self.needles.get(self.literal_format_indexes.len()..)?;
        let partial_length = |form: &Vec<u8>| {
            let lengths = (1..form.len().min(text.len() + 1)).rev();
            lengths
                .into_iter()
                .find(|length| form.get(..*length).is_some_and(|prefix| text.ends_with(prefix)))
        };
        forms.iter().filter_map(partial_length).max().map(|length| text.len() - length)
    }
}

fn prefixes_at_line_ends(form: &[u8]) -> Vec<Vec<u8>> {
    let inner = form.get(..form.len().saturating_sub(1)).unwrap_or_default();
    let newlines = inner.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    newlines.filter_map(|(at, _)| form.get(..=at).map(<[u8]>::to_vec)).collect()
}
