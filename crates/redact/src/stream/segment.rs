//! Division of a text into the segments that must be inspected, each of whole lines.
//!
//! The segments depend on the text alone, and not on the pieces in which the text arrived.

use std::ops::Range;

use crate::literals::matcher::LiteralMatcher;
use crate::rules::discord_token::next_discord_token;
use crate::rules::next_keyword;
use crate::rules::pem::{PemBlock, find_pem_block, redact_key_bodies};
use crate::scan::Scanner;

/// Result of the redaction of a text.
#[derive(Default)]
pub(crate) struct TextEdits {
    /// Changed segments with their replacement.
    pub(crate) replacements: Vec<(Range<usize>, String)>,
    /// Length of the finished text. The rest is a segment that continues beyond the text.
    pub(crate) finished_bytes: usize,
    /// Number of redactions.
    pub(crate) redaction_count: u64,
}

impl TextEdits {
    /// Writes the finished text.
    pub(crate) fn write(&self, text: &str, out: &mut String) {
        let mut position = 0;
        for (range, replacement) in &self.replacements {
            out.push_str(text.get(position..range.start).unwrap_or_default());
            out.push_str(replacement);
            position = range.end;
        }
        out.push_str(text.get(position..self.finished_bytes).unwrap_or_default());
    }
}

/// Segment of a text.
struct TextSegment {
    range: Range<usize>,
    is_open: bool,
}

impl Scanner {
    /// Redacts a text of whole lines; `is_complete` is true if no more text follows.
    pub(crate) fn redact_lines(&self, text: &str, is_complete: bool) -> TextEdits {
        let mut result = TextEdits::default();
        let ranges = self.literals.candidate_ranges(text.as_bytes());
        let mut hits = HitSearch { ranges: &ranges, ..HitSearch::default() };
        while let Some(hit) = hits.next_hit(self, text.as_bytes(), result.finished_bytes) {
            let segment =
                segment_around(&self.literals, text, result.finished_bytes, hit, is_complete);
            // Its end is in text that has not arrived; a decision now could differ from the one for the whole text.
            if segment.is_open && !is_complete {
                result.finished_bytes = segment.range.start;
                return result;
            }
            self.redact_segment(text, &segment, is_complete, &mut result);
            result.finished_bytes = segment.range.end;
            if result.finished_bytes >= text.len() {
                break;
            }
        }
        let rest = text.get(result.finished_bytes..).unwrap_or_default();
        let open_start =
            self.literals.partial_multiline_form_start(rest.as_bytes()).filter(|_| !is_complete);
        result.finished_bytes = open_start.map_or(text.len(), |at| {
            line_start(text, result.finished_bytes, result.finished_bytes + at)
        });
        result
    }

    /// Returns true if `text` contains anything that a rule must inspect.
    pub(crate) fn has_hit(&self, text: &str) -> bool {
        let ranges = self.literals.candidate_ranges(text.as_bytes());
        HitSearch { ranges: &ranges, ..HitSearch::default() }
            .next_hit(self, text.as_bytes(), 0)
            .is_some()
    }

    fn redact_segment(
        &self,
        text: &str,
        segment: &TextSegment,
        is_complete: bool,
        edits: &mut TextEdits,
    ) {
        let raw = text.get(segment.range.clone()).unwrap_or_default();
        let (text_without_key_bodies, _) =
            redact_key_bodies(raw, is_complete && segment.range.end == text.len());
        let redacted = self.redact(&text_without_key_bodies);
        let is_changed = *text_without_key_bodies != *raw;
        if let Some(redacted) = redacted {
            edits.redaction_count += redacted.redaction_count + u64::from(is_changed);
            edits.replacements.push((segment.range.clone(), redacted.text));
        } else if is_changed {
            edits.redaction_count += 1;
            edits.replacements.push((segment.range.clone(), text_without_key_bodies.into_owned()));
        }
    }
}

/// Iterator over the next position that requires an inspection. Each search runs ahead of the work by one result.
#[derive(Default)]
struct HitSearch<'p> {
    /// Ranges that may contain words and literals.
    ranges: &'p [Range<usize>],
    keyword: CachedHit,
    literal: CachedHit,
    discord_token: CachedHit,
    form: CachedHit,
    pattern: CachedHit,
}

type CachedHit = Option<Option<(usize, usize)>>;

impl HitSearch<'_> {
    fn next_hit(
        &mut self,
        scanner: &Scanner,
        text: &[u8],
        search_start: usize,
    ) -> Option<(usize, usize)> {
        if scanner.redacts_personal_numbers {
            return (search_start < text.len()).then_some((search_start, search_start));
        }
        let keyword = cached_or_search(&mut self.keyword, search_start, || {
            search_within(self.ranges, text, search_start, next_keyword)
        });
        let search_literals = |text: &[u8], at| scanner.literals.next_literal(text, at);
        let literal = cached_or_search(&mut self.literal, search_start, || {
            search_within(self.ranges, text, search_start, search_literals)
        });
        let search_discord_token =
            || next_discord_token(text, search_start).map(|token| (token.start, token.end));
        let discord_token =
            cached_or_search(&mut self.discord_token, search_start, search_discord_token);
        let form = cached_or_search(&mut self.form, search_start, || {
            scanner.literals.next_form_prefix(text, search_start)
        });
        let pattern = cached_or_search(&mut self.pattern, search_start, || {
            scanner.patterns.next_candidate_range(text, search_start)
        });
        [keyword, literal, discord_token, form, pattern].into_iter().flatten().min()
    }
}

/// Returns the first result of a search from `search_start` on, if the search finds nothing outside of the ranges.
fn search_within(
    ranges: &[Range<usize>],
    text: &[u8],
    search_start: usize,
    search: impl Fn(&[u8], usize) -> Option<(usize, usize)>,
) -> Option<(usize, usize)> {
    let first = ranges.partition_point(|range| range.end <= search_start);
    let remaining = ranges.get(first..).unwrap_or_default();
    remaining.iter().find_map(|range| search(text.get(..range.end)?, range.start.max(search_start)))
}

fn cached_or_search(
    cache: &mut CachedHit,
    search_start: usize,
    search: impl FnOnce() -> Option<(usize, usize)>,
) -> Option<(usize, usize)> {
    match *cache {
        Some(None) => None,
        Some(Some(found)) if found.0 >= search_start => Some(found),
        _ => *cache.insert(search()),
    }
}

/// Returns the lines around a hit, including the lines that belong to a multi-line secret.
fn segment_around(
    literals: &LiteralMatcher,
    text: &str,
    from: usize,
    hit: (usize, usize),
    is_complete: bool,
) -> TextSegment {
    let mut start = line_start(text, from, hit.0);
    let mut end = line_end(text, hit.1.max(hit.0 + 1));
    let mut searched_to = start;
    loop {
        let previous_end = end;
        let lines = text.as_bytes().get(from..end).unwrap_or_default();
        if let Some(at) = literals.partial_multiline_form_start(lines) {
            start = start.min(line_start(text, from, from + at));
            end = line_end(text, end + 1);
            if previous_end == text.len() {
                return TextSegment { range: start..end, is_open: true };
            }
        }
        match find_pem_block(text, searched_to..end, is_complete) {
            PemBlock::NotFound => searched_to = searched_to.max(previous_end),
            PemBlock::Open(..) => return TextSegment { range: start..text.len(), is_open: true },
            PemBlock::Closed(_, body) => {
                searched_to = body.end;
                end = end.max(line_end(text, body.end + 1));
                continue;
            }
        }
        if end == previous_end {
            return TextSegment { range: start..end, is_open: false };
        }
    }
}

pub(crate) fn line_start(text: &str, from: usize, at: usize) -> usize {
    let head = text.as_bytes().get(from..at).unwrap_or_default();
    head.iter().rposition(|byte| *byte == b'\n').map_or(from, |newline| from + newline + 1)
}

/// Returns the end of the line that contains the byte before `at`, including its newline.
fn line_end(text: &str, at: usize) -> usize {
    let from = at.saturating_sub(1);
    let rest = text.as_bytes().get(from..).unwrap_or_default();
    rest.iter().position(|byte| *byte == b'\n').map_or(text.len(), |newline| from + newline + 1)
}
