//! Masks a text that arrives in pieces, and holds back only what could still become a secret.

use std::sync::Arc;

use super::Redactor;
use super::pem::{Block, FORGOTTEN, block, compact, has_body, possible_foot};
use super::span::STARS;
use super::window::{Cut, cut};

/// A longer piece is taken in parts, so that a long line is not searched again and again.
const PIECE: usize = 8 * 1024;

/// Masks a text that arrives in pieces.
///
/// However the text is cut, the pieces that come out are together what [`Redactor::redact`] makes
/// of the whole text, as long as its lines are no longer than 8 KiB. A line that is longer is
/// masked in overlapping windows; a stretch of such a line that has no place to cut within a
/// window is masked as a whole, up to the next white space, or up to the line's end where patterns
/// are configured.
pub struct Stream {
    redactor: Arc<Redactor>,
    undecoded: Vec<u8>,
    pending: String,
    /// How much of `pending` holds no line end that has not been tried.
    tried: usize,
    swallowing: bool,
    /// So long `pending` may become before it is looked at again.
    patience: usize,
    count: u64,
}

impl Stream {
    /// A new text.
    #[must_use]
    pub fn new(redactor: Arc<Redactor>) -> Self {
        let pending = String::new();
        Self {
            redactor,
            undecoded: Vec::new(),
            pending,
            tried: 0,
            swallowing: false,
            patience: 0,
            count: 0,
        }
    }

    /// Takes bytes and gives what is safe to show by now.
    ///
    /// Bytes that are not UTF-8 become U+FFFD; a character may be split between two calls.
    pub fn push(&mut self, bytes: &[u8]) -> String {
        let mut out = String::new();
        self.push_to(bytes, &mut out);
        out
    }

    /// The same, behind what is there already.
    pub fn push_to(&mut self, bytes: &[u8], out: &mut String) {
        for piece in bytes.chunks(PIECE) {
            self.decode(piece);
            while self.advance(out) {}
        }
    }

    /// Gives what is safe to show although the source has paused in the middle of a line: words
    /// that neither are nor announce a secret, and none of which the source may still be writing.
    pub fn idle(&mut self) -> String {
        let safe = self.redactor.safe_prefix(&self.pending);
        if self.swallowing || safe == 0 {
            return String::new();
        }
        self.tried = self.tried.saturating_sub(safe);
        self.take(safe)
    }

    /// Gives the rest. The stream is then as new.
    pub fn finish(&mut self) -> String {
        if !std::mem::take(&mut self.undecoded).is_empty() {
            self.pending.push(char::REPLACEMENT_CHARACTER);
        }
        self.skip_run();
        let mut out = String::new();
        let rest = std::mem::take(&mut self.pending);
        let edits = self.redactor.scanner.work(&rest, true);
        edits.write(&rest, &mut out);
        self.count += edits.count;
        (self.tried, self.swallowing, self.patience) = (0, false, 0);
        out
    }

    /// How much is held back, in bytes.
    #[must_use]
    pub const fn held(&self) -> usize {
        self.pending.len() + self.undecoded.len()
    }

    /// How many places were masked so far.
    #[must_use]
    pub const fn count(&self) -> u64 {
        self.count
    }

    fn decode(&mut self, bytes: &[u8]) {
        let joined;
        let mut rest = bytes;
        if !self.undecoded.is_empty() {
            self.undecoded.extend_from_slice(bytes);
            joined = std::mem::take(&mut self.undecoded);
            rest = &joined;
        }
        if let Ok(text) = std::str::from_utf8(rest) {
            return self.pending.push_str(text); // As most texts are, and soon known.
        }
        let mut chunks = rest.utf8_chunks().peekable();
        while let Some(chunk) = chunks.next() {
            self.pending.push_str(chunk.valid());
            if chunks.peek().is_none() && is_beginning(chunk.invalid()) {
                self.undecoded = chunk.invalid().to_vec();
            } else if !chunk.invalid().is_empty() {
                self.pending.push(char::REPLACEMENT_CHARACTER);
            }
        }
    }

    /// One step; whether another may follow.
    fn advance(&mut self, out: &mut String) -> bool {
        if self.skip_run() {
            return false;
        }
        let fresh = self.pending.as_bytes().get(self.tried..).unwrap_or_default();
        if let Some(newline) = fresh.iter().rposition(|byte| *byte == b'\n') {
            self.lines(self.tried + newline + 1, out);
        }
        self.tried = self.pending.len();
        self.is_too_long() && self.shorten(out)
    }

    /// Whether the unfinished line must be cut. Whole lines that wait for it to be known, as the head of
    /// a key does, do not count as a part of it; but no more of them than a line may have.
    fn is_too_long(&self) -> bool {
        let window = self.redactor.window();
        if self.pending.len() < window.max(self.patience) {
            return false;
        }
        let whole = self.pending.rfind('\n').map_or(0, |newline| newline + 1);
        self.pending.len() >= (window + whole.min(window)).max(self.patience)
    }

    /// Masks all whole lines but those that go on.
    fn lines(&mut self, end: usize, out: &mut String) {
        let lines = self.pending.get(..end).unwrap_or_default();
        let edits = self.redactor.scanner.work(lines, false);
        edits.write(lines, out);
        self.count += edits.count;
        self.take(edits.done);
        self.forget_body();
    }

    /// Makes room in a line that is too long; whether that succeeded.
    fn shorten(&mut self, out: &mut String) -> bool {
        self.forget_body();
        if !self.is_too_long() {
            return false;
        }
        match cut(&self.redactor, &self.pending) {
            Cut::Later => {
                self.patience = 2 * self.pending.len();
                return false;
            }
            Cut::At(at) => self.release(at, out),
            Cut::Swallow(at, end) => {
                self.release(at, out);
                self.drop_masked(end - at, out);
                self.swallowing = true;
            }
            Cut::Mask(end) => self.drop_masked(end, out),
        }
        (self.tried, self.patience) = (0, 0);
        true
    }

    fn release(&mut self, at: usize, out: &mut String) {
        let piece = self.take(at);
        let edits = self.redactor.scanner.work(&piece, true);
        edits.write(&piece, out);
        self.count += edits.count;
    }

    fn drop_masked(&mut self, length: usize, out: &mut String) {
        self.take(length);
        self.count += 1;
        out.push_str(STARS);
    }

    /// Drops what came of an open block's body, but for what may be its foot.
    fn forget_body(&mut self) {
        let open = open_block(&self.pending).map(|(_, body)| body);
        let Some(body) = open.filter(|body| has_body(&self.pending, *body, false)) else { return };
        let foot = possible_foot(&self.pending, body);
        let dropped = self.pending.len() - foot.len() - body;
        if dropped == 0 {
            return;
        }
        let head = self.pending.get(..body).unwrap_or_default();
        let compacted = format!("{head}{FORGOTTEN}{foot}");
        if compacted.len() < self.pending.len() && compact(&compacted, false).1 {
            self.pending = compacted;
            self.tried = self.pending.len();
        }
    }

    /// Drops the rest of a run that is masked already; whether it goes on.
    fn skip_run(&mut self) -> bool {
        if self.swallowing {
            // What is dropped may be the beginning of a match that has white space in it.
            let by_line = self.redactor.scanner.has_patterns();
            let end = self
                .pending
                .find(|part: char| if by_line { part == '\n' } else { part.is_ascii_whitespace() });
            self.take(end.unwrap_or(self.pending.len()));
            self.swallowing = end.is_none();
            self.tried = 0;
        }
        self.swallowing
    }

    fn take(&mut self, length: usize) -> String {
        let rest = self.pending.split_off(self.pending.floor_char_boundary(length));
        std::mem::replace(&mut self.pending, rest)
    }
}

/// The last block, if it is open.
pub(super) fn open_block(text: &str) -> Option<(usize, usize)> {
    let mut from = 0;
    loop {
        match block(text, from..text.len(), false) {
            Block::None => return None,
            Block::Open(head, body) => return Some((head, body)),
            Block::Closed(body) => from = body.end,
        }
    }
}

/// Whether bytes that are not a character may become one.
fn is_beginning(bytes: &[u8]) -> bool {
    !bytes.is_empty() && std::str::from_utf8(bytes).is_err_and(|error| error.error_len().is_none())
}
