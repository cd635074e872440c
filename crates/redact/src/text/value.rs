//! Extent of a key's value: in quotes of any depth of escaping, or bare.

use std::ops::Range;

use super::boundary::{find_bytes, is_word_byte};

/// Location of a value in its line.
#[derive(Debug, Clone)]
pub(crate) struct ValueRange {
    /// Range of the value, without quotes.
    pub(crate) range: Range<usize>,
    /// True if the value was quoted.
    pub(crate) is_quoted: bool,
}

/// State of the inspection of a line: the range redacted last, and a budget of repeated inspections, after which all
/// values count as secrets. The budget keeps the time linear for any text.
pub(crate) struct LineInspection {
    remaining_bytes: usize,
    redacted_range: Range<usize>,
}

impl LineInspection {
    /// Creates the state of a line with its full budget.
    pub(crate) const fn for_line(line: &[u8]) -> Self {
        Self { remaining_bytes: 65_536 + 16 * line.len(), redacted_range: 0..0 }
    }

    /// Returns true if the line is already redacted at `at`.
    pub(crate) fn is_redacted_at(&self, at: usize) -> bool {
        self.redacted_range.contains(&at)
    }

    /// Records a redacted range.
    pub(crate) fn mark_redacted(&mut self, range: &Range<usize>) {
        self.redacted_range = range.clone();
    }

    /// Spends `length` and returns true if nothing is left.
    pub(crate) const fn spend_and_check_exhausted(&mut self, length: usize) -> bool {
        self.remaining_bytes = self.remaining_bytes.saturating_sub(length);
        self.remaining_bytes == 0
    }
}

/// Finds the value that starts at `at`.
pub(crate) fn value_at(line: &[u8], at: usize) -> Option<ValueRange> {
    let rest = line.get(at..)?;
    let escape_depth = rest.iter().take_while(|byte| **byte == b'\\').count();
    let location = match rest.get(escape_depth) {
        Some(quote @ (b'"' | b'\'' | b'`')) => {
            // Python and TOML have values between three quotes.
            let is_triple =
                rest.get(escape_depth..).is_some_and(|rest| rest.starts_with(&[*quote; 3]));
            quoted_value(
                line,
                at + escape_depth + if is_triple { 3 } else { 1 },
                *quote,
                escape_depth,
            )
        }
        _ => bare_value(line, at),
    };
    Some(location).filter(|location| !location.range.is_empty())
}

/// Returns the text up to the closing quote of the same depth; without one, up to the end of the line.
fn quoted_value(line: &[u8], start: usize, quote: u8, escape_depth: usize) -> ValueRange {
    let mut backslash_count = 0;
    let rest = line.get(start..).unwrap_or_default();
    let quoted_length =
        rest.iter().take_while(|byte| **byte != b'\n').enumerate().find_map(|(at, byte)| {
            let closes = *byte == quote
                && if escape_depth == 0 {
                    backslash_count % 2 == 0
                } else {
                    backslash_count <= escape_depth
                };
            let length = at - backslash_count.min(escape_depth);
            backslash_count = if *byte == b'\\' { backslash_count + 1 } else { 0 };
            closes.then_some(length)
        });
    let line_end_of = |rest: &[u8]| {
        rest.iter().position(|byte| matches!(byte, b'\n' | b'\r')).unwrap_or(rest.len())
    };
    ValueRange {
        range: start..start + quoted_length.unwrap_or_else(|| line_end_of(rest)),
        is_quoted: true,
    }
}

/// Returns the text up to white space, or to a mark that ends the value; punctuation that closes a sentence stays
/// outside.
pub(crate) fn bare_value(line: &[u8], start: usize) -> ValueRange {
    let rest = line.get(start..).unwrap_or_default();
    let length = (0..rest.len()).find(|at| ends_value_at(rest, *at)).unwrap_or(rest.len());
    let text = rest.get(..length).unwrap_or_default();
    ValueRange { range: start..start + trimmed_length(text), is_quoted: false }
}

fn ends_value_at(rest: &[u8], at: usize) -> bool {
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

/// Returns true if an item of a list ends here.
fn ends_item(after: &[u8]) -> bool {
    after.first().is_none_or(|next| next.is_ascii_whitespace() || b"\"'`\\{[".contains(next))
}

/// Returns true if the next `name=` starts here.
fn starts_pair(after: &[u8]) -> bool {
    let name_length = after
        .iter()
        .take(48)
        .take_while(|byte| is_word_byte(**byte) || b"-. ".contains(byte))
        .count();
    name_length > 0 && matches!(after.get(name_length), Some(b'=' | b':'))
}

/// Returns the length without closing punctuation.
fn trimmed_length(text: &[u8]) -> usize {
    let mut length = text.len();
    while let Some(head) = text.get(..length) {
        let opener = match head.last() {
            Some(b'.' | b',' | b';' | b':') => None,
            Some(b')') => Some(b"("),
            Some(b']') => Some(b"["),
            Some(b'}') => Some(b"{"),
            _ => break,
        };
        // A bracket that was opened within the value belongs to it.
        if opener.is_some_and(|opener| find_bytes(head, opener).is_some()) {
            break;
        }
        length -= 1;
    }
    length
}
