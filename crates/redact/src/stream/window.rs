//! Inspection of a line that is too long to be held back as a whole, one window at a time.
//!
//! A window has three parts: text that is released already and serves only as context, text that the window
//! releases, and text that is read ahead to judge it. Every rule recognizes a secret within the part that is
//! read ahead, however long the secret is. The start and the end of a window depend on the text alone, and
//! not on the pieces in which the text arrives.

use std::ops::Range;

use crate::Redactor;
use crate::configuration::Pattern;
use crate::rules::pem::{PemBlock, find_pem_block, has_body};
use crate::scan::{MAX_ROUNDS, Replacement, Scanner, apply_replacements, visible_replacements};
use crate::spans::{STARS, SecretSpan, VisiblePart, merge_spans};
use crate::text::ansi::VisibleText;
use crate::text::boundary::is_token_byte;

/// Number of visible bytes that a window releases.
const WINDOW_STEP_BYTES: usize = 8 * 1024;

/// Number of visible bytes that are read ahead.
const MIN_LOOKAHEAD_BYTES: usize = 4 * 1024;
const _: () = assert!(
    MIN_LOOKAHEAD_BYTES >= 2 * Pattern::MAX_MATCH_BYTES,
    "a match that begins before a cut is seen whole"
);

/// Number of visible bytes of context. The rules that inspect the text before a secret use half of it.
pub(crate) const CONTEXT_BYTES: usize = 1024;

/// Maximum number of enlargements of a window, each by a factor of two, until enough of it is visible.
pub(crate) const MAX_ENLARGEMENTS: u32 = 4;

/// Number of bytes of a secret longer than a window that stay in memory until its end is known: more than any rule
/// needs to find it again.
const RETAINED_SECRET_BYTES: usize = 2 * 1024;

/// Number of bytes after the end of a secret that the rules read.
const TRAILING_CONTEXT_BYTES: usize = 64;

/// End of a window, which decides what may still be open there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WindowEnd {
    /// The line continues after the window. A window of the greatest size releases text, however little of it is
    /// visible.
    Open { has_max_size: bool },
    /// The window ends with its line.
    EndOfLine,
    /// The window ends with its text.
    EndOfText,
}

/// A secret that is longer than a window, at the start of the text to release.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OversizedSecret {
    /// End of the known part of the secret, in the pending text.
    pub(crate) end: usize,
    /// Form of its replacement.
    pub(crate) visible_part: VisiblePart,
}

/// A window of a long line.
pub(crate) struct Window<'t> {
    pub(crate) text: &'t str,
    /// Length of the context.
    pub(crate) context_bytes: usize,
    pub(crate) oversized_secret: Option<OversizedSecret>,
    pub(crate) end: WindowEnd,
}

/// Result of the inspection of a window.
pub(crate) enum WindowAction {
    /// Too little of the window is visible to judge it.
    NeedsMoreText,
    /// The text from the context up to `cut` may be shown, or `replacement` in its place. The next window has the text
    /// after `next_context_start` as its context.
    Release { cut: usize, next_context_start: usize, replacement: Option<(String, u64)> },
    /// The middle of a secret, which is longer than the window, is not needed.
    DropSecretMiddle(Range<usize>, OversizedSecret),
    /// The body of a private key starts at this position and is longer than the window.
    DropKeyBody(usize),
}

impl Redactor {
    fn lookahead_bytes(&self) -> usize {
        MIN_LOOKAHEAD_BYTES.max(self.scanner.literals.max_form_bytes() + TRAILING_CONTEXT_BYTES)
    }

    /// Returns the length from which on a line is long, in bytes.
    pub(crate) fn window_bytes(&self) -> usize {
        WINDOW_STEP_BYTES.max(self.scanner.literals.max_form_bytes()) + self.lookahead_bytes()
    }

    /// Decides how much of a window can be released, and what is redacted in it.
    pub(crate) fn inspect_window(&self, window: &Window<'_>) -> WindowAction {
        // Most windows contain no literal; the search for them costs a fraction of all rules.
        if window.oversized_secret.is_none() && !self.scanner.has_hit(window.text) {
            let cut = self.cut_without_findings(window);
            let next_context_start = cut.saturating_sub(CONTEXT_BYTES);
            return WindowAction::Release { cut, next_context_start, replacement: None };
        }
        let findings = WindowFindings::new(&self.scanner, window);
        // With less visible text the part that is read ahead would be too short for the rules.
        let min_bytes = self.window_bytes() / 4 * 3;
        let can_grow = window.end == (WindowEnd::Open { has_max_size: false });
        if can_grow && findings.bytes_after_context() < min_bytes {
            return WindowAction::NeedsMoreText;
        }
        match findings.decide_cut(self, window) {
            CutDecision::At(cut) => {
                let replacement = findings.redact(&self.scanner, window, cut);
                let next_context_start = findings.next_context_start(cut);
                WindowAction::Release { cut, next_context_start, replacement }
            }
            CutDecision::DropSecretMiddle(range, oversized) => {
                WindowAction::DropSecretMiddle(range, oversized)
            }
            CutDecision::DropKeyBody(body) => WindowAction::DropKeyBody(body),
        }
    }

    /// Returns the position at which a window without findings is cut.
    fn cut_without_findings(&self, window: &Window<'_>) -> usize {
        let length = window.text.len();
        match window.end {
            WindowEnd::EndOfText => length,
            WindowEnd::EndOfLine => self.continued_value_start(window).unwrap_or(length),
            WindowEnd::Open { .. } => {
                window.text.floor_char_boundary(length.saturating_sub(self.lookahead_bytes()))
            }
        }
    }

    /// Returns the start of a registered value that may continue in the next line.
    fn continued_value_start(&self, window: &Window<'_>) -> Option<usize> {
        let open_start = self.scanner.literals.partial_multiline_form_start(window.text.as_bytes());
        open_start.filter(|at| *at >= window.context_bytes && window.end == WindowEnd::EndOfLine)
    }
}

/// Decision about the cut of a window. Positions are in raw text.
enum CutDecision {
    At(usize),
    DropSecretMiddle(Range<usize>, OversizedSecret),
    DropKeyBody(usize),
}

/// Secrets of a window. Positions are in the visible text, unless a field is named raw.
struct WindowFindings<'t> {
    visible: VisibleText<'t>,
    /// End of the context.
    context_end: usize,
    spans: Vec<SecretSpan>,
    /// Bodies of private keys, each with the start of its header.
    key_bodies: Vec<SecretSpan>,
    /// Raw ranges of the bodies.
    raw_key_bodies: Vec<Range<usize>>,
    /// Raw positions of the header and of the body of a private key whose footer has not arrived yet.
    open_key: Option<(usize, usize)>,
}

impl<'t> WindowFindings<'t> {
    fn new(scanner: &Scanner, window: &Window<'t>) -> Self {
        let visible = VisibleText::from_raw(window.text.as_bytes());
        let context_end = visible.to_visible(window.context_bytes);
        // A secret that starts in the context was judged before, when more of the text before it was known.
        let mut spans = scanner.find_unmerged_spans(&visible.text);
        spans.retain(|span| span.secret.start >= context_end);
        spans.extend(window.oversized_secret.map(|it| {
            SecretSpan::without_context(context_end..visible.to_visible(it.end), it.visible_part)
        }));
        let spans = merge_spans(spans);
        let (key_bodies, raw_key_bodies, open_key) = (Vec::new(), Vec::new(), None);
        let mut findings =
            Self { visible, context_end, spans, key_bodies, raw_key_bodies, open_key };
        findings.find_private_keys(window);
        findings
    }

    fn find_private_keys(&mut self, window: &Window<'_>) {
        let (text, is_complete) = (window.text, window.end == WindowEnd::EndOfText);
        let mut from = 0;
        loop {
            match find_pem_block(text, from..text.len(), is_complete) {
                PemBlock::NotFound => return,
                PemBlock::Closed(start, body) => {
                    from = body.end;
                    self.push_key_body(start, body, window.context_bytes);
                }
                PemBlock::Open(start, body_start) => {
                    let is_key = has_body(text, body_start, is_complete);
                    if is_key && is_complete {
                        self.push_key_body(start, body_start..text.len(), window.context_bytes);
                    } else if is_key {
                        let raw_end = window.context_bytes;
                        self.open_key = Some((start.max(raw_end), body_start.max(raw_end)));
                        self.truncate_spans_at(self.visible.to_visible(start));
                    }
                    return;
                }
            }
        }
    }

    /// Ends secrets at the header of a key. If the header were released as part of a secret, it would not hide the next
    /// lines.
    fn truncate_spans_at(&mut self, header: usize) {
        for span in self.spans.iter_mut().filter(|span| span.secret.start < header) {
            span.secret.end = span.secret.end.min(header);
        }
    }

    fn push_key_body(&mut self, header_start: usize, body: Range<usize>, raw_context_end: usize) {
        // A window starts within a body only if the header lies in text that was taken for another secret.
        let body = body.start.max(raw_context_end)..body.end;
        if !body.is_empty() {
            let secret = self.visible.to_visible(body.start)..self.visible.to_visible(body.end);
            let context_start = self.visible.to_visible(header_start);
            let visible_part = VisiblePart::PrefixOnly(0);
            self.key_bodies.push(SecretSpan { secret, context_start, visible_part });
            self.raw_key_bodies.push(body);
        }
    }

    /// Returns the number of visible bytes after the context.
    fn bytes_after_context(&self) -> usize {
        self.visible.text.len() - self.context_end
    }

    fn decide_cut(&self, redactor: &Redactor, window: &Window<'_>) -> CutDecision {
        let length = self.visible.text.len();
        let key_start = self.open_key.map(|(header, _)| self.visible.to_visible(header));
        let lookahead_start = length.saturating_sub(redactor.lookahead_bytes());
        let limit = match window.end {
            WindowEnd::Open { has_max_size: false } => lookahead_start,
            WindowEnd::Open { has_max_size: true } => {
                lookahead_start.max(self.context_end + self.bytes_after_context().div_ceil(2))
            }
            WindowEnd::EndOfLine | WindowEnd::EndOfText => {
                let continued_start =
                    redactor.continued_value_start(window).map(|cut| self.visible.to_visible(cut));
                let open_start = [key_start, continued_start].into_iter().flatten().min();
                let cut = open_start.map(|at| self.cut_outside_secrets(at).max(self.context_end));
                let raw_cut = cut.map_or(window.text.len(), |at| self.to_raw(window, at));
                return CutDecision::At(raw_cut);
            }
        };
        let limit = key_start.map_or(limit, |header| limit.min(header));
        let cut = self.cut_position(limit);
        let is_key_droppable = key_start.is_some_and(|at| at <= self.context_end);
        match self.open_key.filter(|_| is_key_droppable) {
            _ if cut > self.context_end => CutDecision::At(self.to_raw_past_context(window, cut)),
            Some((_, body)) => CutDecision::DropKeyBody(body),
            None => self.decide_cut_in_secret(window, limit),
        }
    }

    /// Decides the cut of a window whose text to release starts with a secret that extends beyond `limit`.
    fn decide_cut_in_secret(&self, window: &Window<'_>, limit: usize) -> CutDecision {
        let length = self.visible.text.len();
        let begins_here = |span: &&SecretSpan| span.secret.start == self.context_end;
        let Some(span) = self.spans.iter().chain(&self.key_bodies).find(begins_here) else {
            return CutDecision::At(window.text.len()); // Only escape sequences are left.
        };
        // A cut between a backslash and its character would change how the rules read the rest.
        let from = escape_boundary(&self.visible.text, self.context_end + RETAINED_SECRET_BYTES);
        let to = escape_boundary(&self.visible.text, limit);
        // A rule may extend a secret by text after it, so the end counts only with that text in sight.
        let is_end_known = span.secret.end + TRAILING_CONTEXT_BYTES <= length;
        if is_end_known || to <= from {
            return CutDecision::At(self.to_raw_past_context(window, span.secret.end));
        }
        let dropped = self.to_raw(window, from)..self.to_raw(window, to);
        let end = self.visible.raw_range(&span.secret).end.max(dropped.end) - dropped.len();
        let oversized = OversizedSecret { end, visible_part: span.visible_part };
        CutDecision::DropSecretMiddle(dropped, oversized)
    }

    /// Returns the last position up to `limit` to cut at: preferably after white space, because nearly no
    /// secret continues there, and never within a secret.
    fn cut_position(&self, limit: usize) -> usize {
        let separators: [fn(u8) -> bool; 2] =
            [|byte| byte.is_ascii_whitespace(), |byte| byte.is_ascii() && !is_token_byte(byte)];
        // Not before the half: a window that releases little would be inspected again and again.
        let min_cut = self.context_end + limit.saturating_sub(self.context_end) / 2;
        for is_separator in separators {
            let mut end = limit;
            loop {
                let text = self.visible.text.get(min_cut..end).unwrap_or_default();
                let Some(at) = text.iter().rposition(|byte| is_separator(*byte)) else { break };
                let cut = min_cut + at + 1;
                end = self.cut_outside_secrets(cut);
                if end == cut {
                    return cut;
                }
            }
        }
        self.cut_outside_secrets(limit)
    }

    /// Returns the last position up to `cut` that is not within a secret. The position is also not between a
    /// secret and the text that identifies it, unless that text is context already.
    fn cut_outside_secrets(&self, mut cut: usize) -> usize {
        let start_of = |span: &SecretSpan| {
            let start = span.context_start;
            if start > self.context_end { start } else { span.secret.start }
        };
        loop {
            let covers = |span: &&SecretSpan| start_of(span) < cut && cut < span.secret.end;
            let covering = self.spans.iter().chain(&self.key_bodies).filter(covers);
            let Some(earliest) = covering.map(start_of).min() else { return cut };
            cut = earliest;
        }
    }

    /// Returns the raw position of a visible one, between two characters.
    fn to_raw(&self, window: &Window<'_>, at: usize) -> usize {
        window.text.floor_char_boundary(self.visible.to_raw(at)).max(window.context_bytes)
    }

    /// Returns the same position, at least one character after the context.
    fn to_raw_past_context(&self, window: &Window<'_>, at: usize) -> usize {
        self.to_raw(window, at).max(window.text.ceil_char_boundary(window.context_bytes + 1))
    }

    /// Returns the start of the context of the window that starts at the raw position `cut`.
    fn next_context_start(&self, cut: usize) -> usize {
        self.visible.to_raw(self.visible.to_visible(cut).saturating_sub(CONTEXT_BYTES)).min(cut)
    }

    /// Returns the redacted text up to `cut` and the number of redactions.
    fn redact(&self, scanner: &Scanner, window: &Window<'_>, cut: usize) -> Option<(String, u64)> {
        let Window { text, context_bytes, .. } = *window;
        let in_body = |range: &Range<usize>| {
            self.raw_key_bodies.iter().any(|body| body.start < range.end && range.start < body.end)
        };
        let mut replacements = visible_replacements(text, &self.visible, &self.spans);
        replacements.extend(scanner.control_string_replacements(text, &self.visible));
        replacements.retain(|(range, _)| !in_body(range));
        replacements
            .extend(self.raw_key_bodies.iter().map(|body| (body.clone(), STARS.to_owned())));
        let mut output = text.get(context_bytes..cut).unwrap_or_default().to_owned();
        let mut count = 0;
        // A replacement may complete another match beside it, as in a whole text.
        for _ in 0..MAX_ROUNDS {
            let shifted = rebase(replacements, context_bytes, output.len());
            if shifted.is_empty() {
                break;
            }
            count += shifted.len() as u64;
            output = apply_replacements(&output, &shifted);
            // With the context around it, or a rule that inspects the text before a secret decides otherwise.
            let (head, tail) = (text.get(..context_bytes), text.get(cut..));
            let parts = [head.unwrap_or_default(), &output, tail.unwrap_or_default()];
            replacements = scanner.replacements(&parts.concat());
        }
        (count > 0).then_some((output, count))
    }
}

/// Returns the places within `length` bytes after `origin`, relative to that position, in order.
fn rebase(replacements: Vec<Replacement>, origin: usize, length: usize) -> Vec<Replacement> {
    let shift = |(range, replacement): Replacement| {
        let start = range.start.checked_sub(origin)?;
        (range.end - origin <= length).then_some((start..range.end - origin, replacement))
    };
    let mut shifted: Vec<Replacement> = replacements.into_iter().filter_map(shift).collect();
    shifted.sort_by_key(|(range, _)| range.start);
    shifted
}

/// Returns the last position up to `at` that does not follow a backslash, so that an escape is not split; among
/// backslashes only, a position after an even number of them.
fn escape_boundary(text: &[u8], at: usize) -> usize {
    let head = text.get(..at).unwrap_or(text);
    let backslash_count = head.iter().rev().take_while(|byte| **byte == b'\\').count();
    head.len() - backslash_count % 2
}
