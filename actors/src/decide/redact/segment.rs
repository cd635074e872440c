//! Cuts a text into the stretches that must be looked at, each of whole lines.
//!
//! What the stretches are depends on the text alone and not on the pieces in which it came.

use std::ops::Range;

use super::exact::Exact;
use super::pem::{Block, block, compact};
use super::rules::next_word;
use super::scan::Scanner;

/// What became of a text.
#[derive(Default)]
pub(super) struct Edits {
    /// Stretches that changed.
    pub(super) edits: Vec<(Range<usize>, String)>,
    /// How much is done. What follows is a stretch that goes on beyond the text.
    pub(super) done: usize,
    /// How many places were masked.
    pub(super) count: u64,
}

impl Edits {
    /// Writes what is done.
    pub(super) fn write(&self, text: &str, out: &mut String) {
        let mut at = 0;
        for (range, instead) in &self.edits {
            out.push_str(text.get(at..range.start).unwrap_or_default());
            out.push_str(instead);
            at = range.end;
        }
        out.push_str(text.get(at..self.done).unwrap_or_default());
    }
}

/// One stretch.
struct Stretch {
    range: Range<usize>,
    open: bool,
}

impl Scanner {
    /// Masks a text of whole lines; `last` tells that no more will come.
    pub(super) fn work(&self, text: &str, last: bool) -> Edits {
        let mut result = Edits::default();
        let places = self.exact.places(text.as_bytes());
        let mut hits = Hits { places: &places, ..Hits::default() };
        while let Some(hit) = hits.next(self, text.as_bytes(), result.done) {
            let stretch = stretch(&self.exact, text, result.done, hit, last);
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

/// The next place that calls for a look. Each of the searches is ahead of the work, once.
#[derive(Default)]
struct Hits<'p> {
    /// Where words and literals may be.
    places: &'p [Range<usize>],
    word: Search,
    literal: Search,
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
        let form = advance(&mut self.form, at, || scanner.exact.next_form(text, at));
        let pattern = advance(&mut self.pattern, at, || scanner.patterns.next(text, at));
        [word, literal, form, pattern].into_iter().flatten().min()
    }
}

/// The first that a search finds from `at` on, where it finds nothing outside of the places.
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

/// The lines around a hit, and those that belong to them.
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
            Block::None => seen = seen.max(before),
            Block::Open(..) => return Stretch { range: start..text.len(), open: true },
            Block::Closed(body) => {
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

fn line_start(text: &str, from: usize, at: usize) -> usize {
    let head = text.as_bytes().get(from..at).unwrap_or_default();
    head.iter().rposition(|byte| *byte == b'\n').map_or(from, |newline| from + newline + 1)
}

/// The end of the line in which the byte before `at` stands, with its newline.
fn line_end(text: &str, at: usize) -> usize {
    let from = at.saturating_sub(1);
    let rest = text.as_bytes().get(from..).unwrap_or_default();
    rest.iter().position(|byte| *byte == b'\n').map_or(text.len(), |newline| from + newline + 1)
}
