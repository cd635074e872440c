//! Where a line that is too long to be held back is cut: never within what could be a secret.

use super::Redactor;
use super::ansi::Visible;
use super::edge::is_token;
use super::rules::next_word;
use super::stream::open_block;
use crate::model::redaction::Pattern;

/// A line that is no longer is held back as a whole.
const WINDOW: usize = 8 * 1024;

/// So much stays behind a cut, to see what begins before it.
const AHEAD: usize = 1024;
const _: () = assert!(AHEAD >= Pattern::LONGEST, "a match that begins before a cut is seen whole");

/// Escapes may make a line so many times longer than what is seen of it.
const STRETCH: usize = 16;

/// A cut that leaves less than this part of a window behind is none.
const LEAST: usize = 8;

/// What to do with a long line.
pub(super) enum Cut {
    /// Release what stands before this place.
    At(usize),
    /// Release what stands before the first place, and mask from there over the second up to white
    /// space.
    Swallow(usize, usize),
    /// Mask what stands before this place.
    Mask(usize),
    /// Wait for more: there is little to see as yet.
    Later,
}

impl Redactor {
    /// How much is held back at most of a line.
    pub(super) fn window(&self) -> usize {
        WINDOW.max(3 * self.scanner.exact.longest())
    }

    /// The length of the beginning of `text`, an unfinished line, that holds no secret and cannot
    /// be a part or the announcement of one.
    pub(super) fn safe_prefix(&self, text: &str) -> usize {
        if self.scanner.is_thorough() {
            return 0;
        }
        let bytes = text.as_bytes();
        let word = next_word(bytes, 0).map(|found| found.0);
        let exact = self.scanner.exact.next(bytes, 0);
        let partial = self.scanner.exact.partial_at(bytes);
        let known = [word, exact, partial].into_iter().flatten().min().unwrap_or(text.len());
        let head = text.get(..text.floor_char_boundary(known)).unwrap_or_default();
        head.rfind([' ', '\t', '\n']).map_or(0, |space| space + 1)
    }
}

/// Decides where to cut `text`, which has no line end within the window.
pub(super) fn cut(redactor: &Redactor, text: &str) -> Cut {
    let visible = Visible::of(text.as_bytes());
    let line: &[u8] = &visible.text;
    let window = redactor.window();
    if line.len() < window / 2 && text.len() < STRETCH * window {
        return Cut::Later;
    }
    let block = open_block(text).map(|(head, _)| head);
    let ahead = AHEAD.max(redactor.scanner.exact.longest());
    let spans = redactor.scanner.spans(line);
    let taken = |at: usize| {
        let after = spans.partition_point(|span| span.secret.end <= at);
        spans.get(after).is_some_and(|span| span.context < at)
    };
    let free = |at: usize| {
        let raw = visible.raw_at(at);
        !taken(at) && text.is_char_boundary(raw) && block.is_none_or(|head| raw <= head)
    };
    let most = line.len().saturating_sub(ahead);
    let place = last_place(line, most, |byte| byte.is_ascii_whitespace(), free)
        .filter(|at| *at >= most / 2)
        .or_else(|| last_place(line, most, |byte| !is_token(byte) && byte.is_ascii(), free));
    match (place, block) {
        (Some(at), _) if at >= most / LEAST => Cut::At(visible.raw_at(at)),
        (Some(at), Some(_)) => Cut::At(visible.raw_at(at)),
        (None, Some(head)) if head > 0 => Cut::Mask(head),
        (place, _) => {
            let at = place.unwrap_or(0);
            let crossing = spans.iter().find(|span| span.secret.end > at && span.context < most);
            let end = crossing.map_or(at, |span| span.secret.end);
            Cut::Swallow(visible.raw_at(at), visible.raw_at(end))
        }
    }
}

/// The last place up to `most` that stands behind such a byte and is free.
fn last_place(
    line: &[u8],
    most: usize,
    ends: impl Fn(u8) -> bool,
    free: impl Fn(usize) -> bool,
) -> Option<usize> {
    let behind = line.get(..most).unwrap_or_default().iter().enumerate().rev();
    behind.filter(|(_, byte)| ends(**byte)).map(|(at, _)| at + 1).find(|at| free(*at))
}
