//! Visible text without terminal escape sequences, with a mapping back to the raw text.

use std::borrow::Cow;
use std::ops::Range;

const ESCAPE: u8 = 0x1b;
const BEL: u8 = 0x07;

/// Longest control string, in bytes; a longer one is read as text.
const MAX_CONTROL_STRING_BYTES: usize = 4096;

/// Text without escape sequences.
pub(crate) struct VisibleText<'t> {
    /// Visible text.
    pub(crate) text: Cow<'t, [u8]>,
    /// Contents of control strings (titles, links), as ranges of the raw text.
    pub(crate) control_strings: Vec<Range<usize>>,
    /// Starts of the pieces: in the visible text and in the raw text.
    piece_offsets: Vec<(usize, usize)>,
}

impl<'t> VisibleText<'t> {
    /// Removes the escape sequences.
    pub(crate) fn from_raw(raw: &'t [u8]) -> Self {
        // Nearly all texts: no copy and no mapping is needed.
        if !raw.contains(&ESCAPE) {
            return Self {
                text: Cow::Borrowed(raw),
                control_strings: Vec::new(),
                piece_offsets: Vec::new(),
            };
        }
        let mut visible_text = Self {
            text: Cow::Owned(Vec::with_capacity(raw.len())),
            control_strings: Vec::new(),
            piece_offsets: Vec::new(),
        };
        let mut at = 0;
        while let Some(rest) = raw.get(at..).filter(|rest| !rest.is_empty()) {
            let visible_length = rest.iter().position(|byte| *byte == ESCAPE).unwrap_or(rest.len());
            visible_text.push_piece(at, rest.get(..visible_length).unwrap_or_default());
            at += visible_length;
            at += visible_text
                .parse_escape_sequence(at, rest.get(visible_length..).unwrap_or_default());
        }
        visible_text
    }

    fn push_piece(&mut self, at: usize, piece: &[u8]) {
        if !piece.is_empty() {
            self.piece_offsets.push((self.text.len(), at));
            self.text.to_mut().extend_from_slice(piece);
        }
    }

    /// Returns the length of the escape sequence at the start of `rest`.
    fn parse_escape_sequence(&mut self, at: usize, rest: &[u8]) -> usize {
        match rest.get(1) {
            // An escape at the end of the text: its sequence has not arrived.
            None => rest.len(),
            Some(b'[') => control_sequence_length(rest),
            Some(b']' | b'P' | b'X' | b'^' | b'_') => {
                measure_control_string(rest).map_or(2, |(content_end, length)| {
                    self.control_strings.push(at + 2..at + content_end);
                    length
                })
            }
            Some(b' '..=b'/') => 2 + usize::from(matches!(rest.get(2), Some(b'0'..=b'~'))),
            Some(b'0'..=b'~') => 2,
            Some(_) => 1,
        }
    }

    /// Returns the raw range of a visible range. Escape sequences at its edges stay outside.
    pub(crate) fn raw_range(&self, range: &Range<usize>) -> Range<usize> {
        // The raw position of the last byte, not of the one after it: between both may be an escape sequence.
        let last = range.end.saturating_sub(1).max(range.start);
        self.to_raw(range.start)..self.to_raw(last) + usize::from(!range.is_empty())
    }

    /// Returns the number of visible bytes before a raw position.
    pub(crate) fn to_visible(&self, raw: usize) -> usize {
        let after = self.piece_offsets.partition_point(|(_, start)| *start <= raw);
        let Some((visible, start)) = after.checked_sub(1).and_then(|at| self.piece_offsets.get(at))
        else {
            return if self.piece_offsets.is_empty() { raw.min(self.text.len()) } else { 0 };
        };
        let next = self.piece_offsets.get(after).map_or(self.text.len(), |(visible, _)| *visible);
        (visible + (raw - start)).min(next)
    }

    /// Returns the raw position of one visible byte.
    pub(crate) fn to_raw(&self, at: usize) -> usize {
        let after = self.piece_offsets.partition_point(|(visible, _)| *visible <= at);
        let piece = after.checked_sub(1).and_then(|index| self.piece_offsets.get(index));
        piece.map_or(at, |(visible, raw)| raw + (at - visible))
    }
}

/// Returns the length of `ESC [`, parameters, intermediates, one final byte.
fn control_sequence_length(rest: &[u8]) -> usize {
    let body_length = rest.iter().skip(2).take_while(|byte| matches!(byte, b' '..=b'?')).count();
    2 + body_length + usize::from(matches!(rest.get(2 + body_length), Some(b'@'..=b'~')))
}

/// Returns the end of a control string's content, and the whole length; `None` if the string has no end.
fn measure_control_string(rest: &[u8]) -> Option<(usize, usize)> {
    // A line end too: a program that never closes a string must not hide the lines after it.
    let is_end = |byte: &u8| matches!(*byte, BEL | ESCAPE | b'\n');
    let content_end = rest.iter().skip(2).take(MAX_CONTROL_STRING_BYTES).position(is_end)? + 2;
    match (rest.get(content_end), rest.get(content_end + 1)) {
        (Some(&BEL), _) => Some((content_end, content_end + 1)),
        (Some(&ESCAPE), Some(b'\\')) => Some((content_end, content_end + 2)),
        _ => None,
    }
}
