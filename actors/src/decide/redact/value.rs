//! Where the value of a key begins and ends: in quotes of any depth of escaping, or bare.

use std::ops::Range;

use super::edge::{find, is_word};

/// A value's place in its line.
#[derive(Debug, Clone)]
pub(super) struct Place {
    /// The value, without quotes.
    pub(super) range: Range<usize>,
    /// Whether it stood in quotes.
    pub(super) quoted: bool,
}

/// How much of a line may be looked at again and again before all is taken for a secret: this
/// keeps the time linear whatever the text.
pub(super) struct Budget {
    left: usize,
    masked: Range<usize>,
}

impl Budget {
    /// The budget of a line.
    pub(super) const fn of(line: &[u8]) -> Self {
        Self { left: 65_536 + 16 * line.len(), masked: 0..0 }
    }

    /// Whether the line is masked at `at` already.
    pub(super) fn is_masked(&self, at: usize) -> bool {
        self.masked.contains(&at)
    }

    /// Notes a place that is masked.
    pub(super) fn mask(&mut self, place: &Range<usize>) {
        self.masked = place.clone();
    }

    /// Spends `length` and tells whether nothing is left.
    pub(super) const fn is_spent(&mut self, length: usize) -> bool {
        self.left = self.left.saturating_sub(length);
        self.left == 0
    }
}

/// Finds the value that begins at `at`.
pub(super) fn value_at(line: &[u8], at: usize) -> Option<Place> {
    let rest = line.get(at..)?;
    let depth = rest.iter().take_while(|byte| **byte == b'\\').count();
    let place = match rest.get(depth) {
        Some(quote @ (b'"' | b'\'' | b'`')) => {
            let triple = rest.get(depth..).is_some_and(|rest| rest.starts_with(&[*quote; 3]));
            quoted(line, at + depth + if triple { 3 } else { 1 }, *quote, depth)
        }
        _ => bare(line, at),
    };
    Some(place).filter(|place| !place.range.is_empty())
}

/// Up to the closing quote of the same depth; without one, up to the line's end.
fn quoted(line: &[u8], start: usize, quote: u8, depth: usize) -> Place {
    let mut slashes = 0;
    let rest = line.get(start..).unwrap_or_default();
    let closing =
        rest.iter().take_while(|byte| **byte != b'\n').enumerate().find_map(|(at, byte)| {
            let closes =
                *byte == quote && if depth == 0 { slashes % 2 == 0 } else { slashes <= depth };
            let length = at - slashes.min(depth);
            slashes = if *byte == b'\\' { slashes + 1 } else { 0 };
            closes.then_some(length)
        });
    let ending = |rest: &[u8]| {
        rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len())
    };
    Place { range: start..start + closing.unwrap_or_else(|| ending(rest)), quoted: true }
}

/// Up to white space, or to a mark that ends values there; what closes a sentence stays outside.
pub(super) fn bare(line: &[u8], start: usize) -> Place {
    let rest = line.get(start..).unwrap_or_default();
    let length = (0..rest.len()).find(|at| ends_at(rest, *at)).unwrap_or(rest.len());
    let text = rest.get(..length).unwrap_or_default();
    Place { range: start..start + trimmed(text), quoted: false }
}

fn ends_at(rest: &[u8], at: usize) -> bool {
    let after = rest.get(at + 1..).unwrap_or_default();
    match rest.get(at) {
        None => true,
        Some(b',' | b';') => ends_item(after) || starts_pair(after),
        Some(b'&') => starts_pair(after) || after.starts_with(b"amp;"),
        Some(b'"' | b'\'' | b'`') => {
            ends_item(after) || after.first().is_some_and(|next| b"),;:]}>|&".contains(next))
        }
        Some(b'<') => after.starts_with(b"/"),
        Some(b'\\') => {
            let next = after.iter().find(|byte| **byte != b'\\');
            next.is_none_or(|next| b"nrt\"'`".contains(next))
        }
        Some(b'%') => after.starts_with(b"26") || after.starts_with(b"20"),
        Some(byte) => byte.is_ascii_whitespace() || *byte == 0,
    }
}

/// Whether an item of a list ends here.
fn ends_item(after: &[u8]) -> bool {
    after.first().is_none_or(|next| next.is_ascii_whitespace() || b"\"'`\\{[".contains(next))
}

/// Whether the next `name=` begins here.
fn starts_pair(after: &[u8]) -> bool {
    let name =
        after.iter().take(48).take_while(|byte| is_word(**byte) || b"-. ".contains(byte)).count();
    name > 0 && matches!(after.get(name), Some(b'=' | b':'))
}

/// The length without closing marks.
fn trimmed(text: &[u8]) -> usize {
    let mut length = text.len();
    while let Some(head) = text.get(..length) {
        let opener = match head.last() {
            Some(b'.' | b',' | b';' | b':') => None,
            Some(b')') => Some(b"("),
            Some(b']') => Some(b"["),
            Some(b'}') => Some(b"{"),
            _ => break,
        };
        if opener.is_some_and(|opener| find(head, opener).is_some()) {
            break;
        }
        length -= 1;
    }
    length
}
