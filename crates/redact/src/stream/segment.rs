//! Division of a text into the stretches that must be inspected, each of whole lines.
//!
//! The stretches depend on the text alone, and not on the pieces in which the text arrived.

use std::ops::Range;

use crate::literals::exact::Exact;
use crate::rules::dotted::next_bot;
use crate::rules::next_word;
use crate::rules::pem::{PemBlock, block, compact};
use crate::scan::Scanner;

/// Result of the redaction of a text.
#[derive(Default)]
pub(crate) struct Edits {
    /// Changed stretches with their replacement.
    pub(crate) edits: Vec<(Range<usize>, String)>,
    /// Length of the finished text. The rest is a stretch that continues beyond the text.
    pub(crate) done: usize,
    /// Number of redactions.
    pub(crate) count: u64,
}

impl Edits {
    /// Writes the finished text.
    pub(crate) fn write(&self, text: &str, out: &mut String) {
        let mut at = 0;
        for (range, instead) in &self.edits {
            out.push_str(text.get(at..range.start).unwrap_or_default());
            out.push_str(instead);
            at = range.end;
        }
        out.push_str(text.get(at..self.done).unwrap_or_default());
    }
}

/// Stretch of a text.
struct Stretch {
    range: Range<usize>,
    open: bool,
}

impl Scanner {
    /// Redacts a text of whole lines; `last` is true if no more text follows.
    pub(crate) fn work(&self, text: &str, last: bool) -> Edits {
        let mut result = Edits::default();
        let places = self.exact.places(text.as_bytes());
        let mut hits = Hits { places: &places, ..Hits::default() };
        while let Some(hit) = hits.next(self, text.as_bytes(), result.done) {
            let stretch = stretch(&self.exact, text, result.done, hit, last);
            // Its end is in text that has not arrived; a decision now could differ from the one for the whole text.
            if stretch.open && !last {
                result.done = stretch.range.start;
                return result;
            }
            self.edit(text, &stretch, last, &mut result);
            result.done = stretch.range.end;
            if result.done >= text.len() {
                break;
            }
        }
        let rest = text.get(result.done..).unwrap_or_default();
        let open = self.exact.open_at(rest.as_bytes()).filter(|_| !last);
        result.done = open.map_or(text.len(), |at| line_start(text, result.done, result.done + at));
        result
    }

    /// Returns true if `text` contains anything that a rule must inspect.
    pub(crate) fn has_hit(&self, text: &str) -> bool {
        let places = self.exact.places(text.as_bytes());
        Hits { places: &places, ..Hits::default() }.next(self, text.as_bytes(), 0).is_some()
    }

    fn edit(&self, text: &str, stretch: &Stretch, last: bool, result: &mut Edits) {
        let raw = text.get(stretch.range.clone()).unwrap_or_default();
        let (compacted, _) = compact(raw, last && stretch.range.end == text.len());
        let masked = self.mask(&compacted);
        let changed = *compacted != *raw;
        if let Some(masked) = masked {
            result.count += masked.count + u64::from(changed);
            result.edits.push((stretch.range.clone(), masked.text));
        } else if changed {
            result.count += 1;
            result.edits.push((stretch.range.clone(), compacted.into_owned()));
        }
    }
}

/// Iterator over the next position that requires an inspection. Each search runs ahead of the work by one result.
#[derive(Default)]
struct Hits<'p> {
    /// Ranges that may contain words and literals.
    places: &'p [Range<usize>],
    word: Search,
    literal: Search,
    bot: Search,
    form: Search,
    pattern: Search,
}

type Search = Option<Option<(usize, usize)>>;

impl Hits<'_> {
    fn next(&mut self, scanner: &Scanner, text: &[u8], at: usize) -> Option<(usize, usize)> {
        if scanner.personal {
            return (at < text.len()).then_some((at, at));
        }
        let word = advance(&mut self.word, at, || within(self.places, text, at, next_word));
        let search = |text: &[u8], at| scanner.exact.next_literal(text, at);
        let literal = advance(&mut self.literal, at, || within(self.places, text, at, search));
        let bot = || next_bot(text, at).map(|token| (token.start, token.end));
        let bot = advance(&mut self.bot, at, bot);
        let form = advance(&mut self.form, at, || scanner.exact.next_form(text, at));
        let pattern = advance(&mut self.pattern, at, || scanner.patterns.next(text, at));
        [word, literal, bot, form, pattern].into_iter().flatten().min()
    }
}

/// Returns the first result of a search from `at` on, if the search finds nothing outside of the ranges.
fn within(
    places: &[Range<usize>],
    text: &[u8],
    at: usize,
    search: impl Fn(&[u8], usize) -> Option<(usize, usize)>,
) -> Option<(usize, usize)> {
    let behind = places.partition_point(|place| place.end <= at);
    let ahead = places.get(behind..).unwrap_or_default();
    ahead.iter().find_map(|place| search(text.get(..place.end)?, place.start.max(at)))
}

fn advance(
    known: &mut Search,
    at: usize,
    search: impl FnOnce() -> Option<(usize, usize)>,
) -> Option<(usize, usize)> {
    match *known {
        Some(None) => None,
        Some(Some(found)) if found.0 >= at => Some(found),
        _ => *known.insert(search()),
    }
}

/// Returns the lines around a hit, including the lines that belong to a multi-line secret.
fn stretch(exact: &Exact, text: &str, from: usize, hit: (usize, usize), last: bool) -> Stretch {
    let mut start = line_start(text, from, hit.0);
    let mut end = line_end(text, hit.1.max(hit.0 + 1));
    let mut seen = start;
    loop {
        let before = end;
        let lines = text.as_bytes().get(from..end).unwrap_or_default();
        if let Some(at) = exact.open_at(lines) {
            start = start.min(line_start(text, from, from + at));
            end = line_end(text, end + 1);
            if before == text.len() {
                return Stretch { range: start..end, open: true };
            }
        }
        match block(text, seen..end, last) {
            PemBlock::None => seen = seen.max(before),
            PemBlock::Open(..) => return Stretch { range: start..text.len(), open: true },
            PemBlock::Closed(_, body) => {
                seen = body.end;
                end = end.max(line_end(text, body.end + 1));
                continue;
            }
        }
        if end == before {
            return Stretch { range: start..end, open: false };
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
