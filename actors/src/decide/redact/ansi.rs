//! The text a reader sees: without the escape sequences of a terminal, with the way back.

use std::borrow::Cow;
use std::ops::Range;

const ESCAPE: u8 = 0x1b;
const BELL: u8 = 0x07;

/// A longer control string is not one: it is read as text.
const LONGEST_STRING: usize = 4096;

/// Text without escape sequences.
pub(super) struct Visible<'t> {
    /// What is left.
    pub(super) text: Cow<'t, [u8]>,
    /// The insides of control strings (titles, links), as places in the raw text.
    pub(super) inner: Vec<Range<usize>>,
    /// Where a piece begins: in the visible text and in the raw text.
    pieces: Vec<(usize, usize)>,
}

impl<'t> Visible<'t> {
    /// Strips the escape sequences.
    pub(super) fn of(raw: &'t [u8]) -> Self {
        if !raw.contains(&ESCAPE) {
            return Self { text: Cow::Borrowed(raw), inner: Vec::new(), pieces: Vec::new() };
        }
        let mut this = Self {
            text: Cow::Owned(Vec::with_capacity(raw.len())),
            inner: Vec::new(),
            pieces: Vec::new(),
        };
        let mut at = 0;
        while let Some(rest) = raw.get(at..).filter(|rest| !rest.is_empty()) {
            let plain = rest.iter().position(|byte| *byte == ESCAPE).unwrap_or(rest.len());
            this.keep(at, rest.get(..plain).unwrap_or_default());
            at += plain;
            at += this.skip(at, rest.get(plain..).unwrap_or_default());
        }
        this
    }

    fn keep(&mut self, at: usize, piece: &[u8]) {
        if !piece.is_empty() {
            self.pieces.push((self.text.len(), at));
            self.text.to_mut().extend_from_slice(piece);
        }
    }

    /// The length of the escape sequence at the head of `rest`.
    fn skip(&mut self, at: usize, rest: &[u8]) -> usize {
        match rest.get(1) {
            None => rest.len(),
            Some(b'[') => control_length(rest),
            Some(b']' | b'P' | b'X' | b'^' | b'_') => {
                string_length(rest).map_or(2, |(inner, length)| {
                    self.inner.push(at + 2..at + inner);
                    length
                })
            }
            Some(b' '..=b'/') => 2 + usize::from(matches!(rest.get(2), Some(b'0'..=b'~'))),
            Some(b'0'..=b'~') => 2,
            Some(_) => 1,
        }
    }

    /// The raw place of a visible range. Escapes at its edges stay outside.
    pub(super) fn raw(&self, range: &Range<usize>) -> Range<usize> {
        let last = range.end.saturating_sub(1).max(range.start);
        self.raw_at(range.start)..self.raw_at(last) + usize::from(!range.is_empty())
    }

    /// The raw place of one visible byte.
    pub(super) fn raw_at(&self, at: usize) -> usize {
        let after = self.pieces.partition_point(|(visible, _)| *visible <= at);
        let piece = after.checked_sub(1).and_then(|index| self.pieces.get(index));
        piece.map_or(at, |(visible, raw)| raw + (at - visible))
    }
}

/// `ESC [`, parameters, intermediates, one final byte.
fn control_length(rest: &[u8]) -> usize {
    let body = rest.iter().skip(2).take_while(|byte| matches!(byte, b' '..=b'?')).count();
    2 + body + usize::from(matches!(rest.get(2 + body), Some(b'@'..=b'~')))
}

/// Where a control string's inside ends and how long it is with its end; nothing if it has no end.
fn string_length(rest: &[u8]) -> Option<(usize, usize)> {
    let ends = |byte: &u8| matches!(*byte, BELL | ESCAPE | b'\n');
    let inner = rest.iter().skip(2).take(LONGEST_STRING).position(ends)? + 2;
    match (rest.get(inner), rest.get(inner + 1)) {
        (Some(&BELL), _) => Some((inner, inner + 1)),
        (Some(&ESCAPE), Some(b'\\')) => Some((inner, inner + 2)),
        _ => None,
    }
}
