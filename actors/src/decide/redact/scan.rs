//! Masks one stretch of text: finds all spans behind the escapes, until nothing is found any more.

use std::ops::Range;

use super::ansi::Visible;
use super::exact::Exact;
use super::patterns::Patterns;
use super::personal::personal;
use super::rules::by_words;
use super::span::{Form, Span, merge, render};

/// Masking may uncover another match beside it; so often it is tried again.
const ROUNDS: usize = 8;

/// All that is known of secrets.
pub(super) struct Scanner {
    pub(super) exact: Exact,
    pub(super) patterns: Patterns,
    pub(super) personal: bool,
}

/// A masked stretch.
pub(super) struct Masked {
    pub(super) text: String,
    pub(super) count: u64,
}

impl Scanner {
    /// Whether every line must be looked at.
    pub(super) fn is_thorough(&self) -> bool {
        self.personal || !self.patterns.is_empty()
    }

    /// Whether patterns were configured, whose matches may have white space in them.
    pub(super) fn has_patterns(&self) -> bool {
        !self.patterns.is_empty()
    }

    /// All places to mask in visible text, joined.
    pub(super) fn spans(&self, line: &[u8]) -> Vec<Span> {
        let mut spans = Vec::new();
        self.exact.spans(line, &mut spans);
        by_words(line, &mut spans);
        self.configured(line, &mut spans);
        if self.personal {
            personal(line, &mut spans);
        }
        merge(spans)
    }

    /// What the configured patterns match, line by line. What is left of a match that was masked
    /// is none.
    fn configured(&self, text: &[u8], spans: &mut Vec<Span>) {
        if self.patterns.is_empty() {
            return;
        }
        let mut from = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let end = line.iter().rposition(|byte| !b"\r\n".contains(byte)).map_or(0, |at| at + 1);
            let words = line.get(..end).unwrap_or_default();
            for pattern in self.patterns.in_line(words) {
                let found = pattern.regex().find_iter(words);
                let found = found.filter(|found| !is_hidden(found.as_bytes(), pattern.keep()));
                spans.extend(found.map(|found| {
                    let place = from + found.start()..from + found.end();
                    Span::shape(place, Form::Stars(pattern.keep()))
                }));
            }
            from += line.len();
        }
    }

    /// Masks `text`. Nothing if there is nothing to mask.
    pub(super) fn mask(&self, text: &str) -> Option<Masked> {
        let mut masked: Option<Masked> = None;
        for _ in 0..ROUNDS {
            let current = masked.as_ref().map_or(text, |masked| masked.text.as_str());
            let places = self.places(current);
            if places.is_empty() {
                break;
            }
            let count = masked.as_ref().map_or(0, |masked| masked.count) + places.len() as u64;
            masked = Some(Masked { text: write(current, &places), count });
        }
        masked
    }

    /// All places to mask in raw text, in order.
    fn places(&self, text: &str) -> Vec<(Range<usize>, String)> {
        let visible = Visible::of(text.as_bytes());
        let mut places: Vec<_> = self
            .spans(&visible.text)
            .into_iter()
            .map(|span| {
                let secret = visible.text.get(span.secret.clone()).unwrap_or_default();
                (
                    whole_characters(text, visible.raw(&span.secret)),
                    render(&String::from_utf8_lossy(secret), span.form),
                )
            })
            .collect();
        for inner in &visible.inner {
            let string = text.as_bytes().get(inner.clone()).unwrap_or_default();
            places.extend(self.spans(string).into_iter().map(|span| {
                let secret = string.get(span.secret.clone()).unwrap_or_default();
                let range = inner.start + span.secret.start..inner.start + span.secret.end;
                (whole_characters(text, range), render(&String::from_utf8_lossy(secret), span.form))
            }));
        }
        places.sort_by_key(|(range, _)| range.start);
        places
    }
}

/// Whether nothing but stars stands behind what is kept.
fn is_hidden(found: &[u8], keep: usize) -> bool {
    found.get(keep..).is_none_or(|rest| rest.iter().all(|byte| *byte == b'*'))
}

fn whole_characters(text: &str, range: Range<usize>) -> Range<usize> {
    text.floor_char_boundary(range.start)..text.ceil_char_boundary(range.end)
}

fn write(text: &str, places: &[(Range<usize>, String)]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut done = 0;
    for (range, instead) in places {
        if range.start >= done {
            out.push_str(text.get(done..range.start).unwrap_or_default());
            out.push_str(instead);
            done = range.end;
        }
    }
    out.push_str(text.get(done..).unwrap_or_default());
    out
}
