//! Inspection of a line that is too long to be held back as a whole, one window at a time.
//!
//! A window has three parts: text that is released already and serves only as context, text that the window
//! releases, and text that is read ahead to judge it. Every rule recognizes a secret within the part that is
//! read ahead, however long the secret is. The start and the end of a window depend on the text alone, and
//! not on the pieces in which the text arrives.

use std::ops::Range;

use crate::Redactor;
use crate::configured::Pattern;
use crate::rules::discord_token::next_bot_token;
use crate::rules::next_keyword;
use crate::rules::pem::{PemBlock, find_block, has_body};
use crate::scan::{MAX_ROUNDS, Replacement, Scanner, apply_replacements, visible_replacements};
use crate::spans::{STARS, SecretSpan, VisiblePart, merge};
use crate::text::ansi::VisibleText;
use crate::text::boundary::is_token;

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
    /// The line continues after the window. The last attempt releases text, however
    /// little of the window is visible.
    Open { is_last_attempt: bool },
    /// The window ends with its line.
    Line,
    /// The window ends with its text.
    Text,
}

/// A secret that is longer than a window, at the start of the text to release.
#[derive(Debug, Clone, Copy)]
pub(crate) struct OversizedSecret {
    /// End of the known part of the secret, in the pending text.
    pub(crate) known: usize,
    /// Form of its replacement.
    pub(crate) form: VisiblePart,
}

/// A window of a long line.
pub(crate) struct Window<'t> {
    pub(crate) text: &'t str,
    /// Length of the context.
    pub(crate) context: usize,
    pub(crate) oversized: Option<OversizedSecret>,
    pub(crate) end: WindowEnd,
}

/// Result of the inspection of a window.
pub(crate) enum InspectedWindow {
    /// Too little of the window is visible to judge it.
    NeedsMoreText,
    /// The text from the context up to `to` may be shown, or `replacement` in its place. The next window has the
    /// text after `keep` as its context.
    Release { to: usize, keep: usize, replacement: Option<(String, u64)> },
    /// The middle of a secret, which is longer than the window, is not needed.
    DropMiddle(Range<usize>, OversizedSecret),
    /// The body of a private key starts at this position and is longer than the window.
    DropKeyBody(usize),
}

impl Redactor {
    fn lookahead(&self) -> usize {
        MIN_LOOKAHEAD_BYTES.max(self.scanner.literals.max_form_bytes() + TRAILING_CONTEXT_BYTES)
    }

    /// Returns the length from which on a line is long, in bytes.
    pub(crate) fn window_bytes(&self) -> usize {
        WINDOW_STEP_BYTES.max(self.scanner.literals.max_form_bytes()) + self.lookahead()
    }

    /// Returns the length of the start of `text`, an unfinished line, that contains no secret and cannot be a part or
    /// the announcement of one.
    pub(crate) fn safe_prefix(&self, text: &str) -> usize {
        // Configured patterns and personal numbers have no literal that announces them.
        if self.scanner.inspects_every_line() {
            return 0;
        }
        let bytes = text.as_bytes();
        let word = next_keyword(bytes, 0).map(|found| found.0);
        let literals = self.scanner.literals.next(bytes, 0);
        // A registered value may have arrived only in part.
        let partial = self.scanner.literals.partial_form_start(bytes);
        let bot = next_bot_token(bytes, 0).map(|bot| bot.start);
        let known =
            [word, literals, bot, partial].into_iter().flatten().min().unwrap_or(text.len());
        let head = text.get(..text.floor_char_boundary(known)).unwrap_or_default();
        // The last word may be the first half of a literal.
        head.rfind([' ', '\t', '\n']).map_or(0, |space| space + 1)
    }

    /// Decides how much of a window can be released, and what is redacted in it.
    pub(crate) fn inspect(&self, window: &Window<'_>) -> InspectedWindow {
        // Most windows contain no literal; the search for them costs a fraction of all rules.
        if window.oversized.is_none() && !self.scanner.has_hit(window.text) {
            let to = self.cut_without_findings(window);
            return InspectedWindow::Release {
                to,
                keep: to.saturating_sub(CONTEXT_BYTES),
                replacement: None,
            };
        }
        let findings = WindowFindings::of(&self.scanner, window);
        // With less visible text the part that is read ahead would be too short for the rules.
        let min_bytes = self.window_bytes() / 4 * 3;
        if window.end == (WindowEnd::Open { is_last_attempt: false })
            && findings.fresh_bytes() < min_bytes
        {
            return InspectedWindow::NeedsMoreText;
        }
        match findings.decide_cut(self, window) {
            CutDecision::At(to) => {
                let replacement = findings.redacted(&self.scanner, window, to);
                InspectedWindow::Release { to, keep: findings.context_start(to), replacement }
            }
            CutDecision::DropMiddle(range, oversized) => {
                InspectedWindow::DropMiddle(range, oversized)
            }
            CutDecision::DropKeyBody(body) => InspectedWindow::DropKeyBody(body),
        }
    }

    /// Returns the position at which a window without findings is cut.
    fn cut_without_findings(&self, window: &Window<'_>) -> usize {
        let length = window.text.len();
        match window.end {
            WindowEnd::Text => length,
            WindowEnd::Line => self.continued_start(window).unwrap_or(length),
            WindowEnd::Open { .. } => {
                window.text.floor_char_boundary(length.saturating_sub(self.lookahead()))
            }
        }
    }

    /// Returns the start of a registered value that may continue in the next line.
    fn continued_start(&self, window: &Window<'_>) -> Option<usize> {
        let open = self.scanner.literals.open_value_start(window.text.as_bytes());
        open.filter(|at| *at >= window.context && window.end == WindowEnd::Line)
    }
}

/// Decision about the cut of a window. Positions are in raw text.
enum CutDecision {
    At(usize),
    DropMiddle(Range<usize>, OversizedSecret),
    DropKeyBody(usize),
}

/// Secrets of a window. Positions are in the visible text, unless a field is named raw.
struct WindowFindings<'t> {
    visible: VisibleText<'t>,
    /// End of the context.
    from: usize,
    spans: Vec<SecretSpan>,
    /// Bodies of private keys, each with the start of its header.
    bodies: Vec<SecretSpan>,
    /// Raw ranges of the bodies.
    raw_bodies: Vec<Range<usize>>,
    /// Raw positions of the header and of the body of a private key whose footer has not arrived yet.
    open: Option<(usize, usize)>,
}

impl<'t> WindowFindings<'t> {
    fn of(scanner: &Scanner, window: &Window<'t>) -> Self {
        let visible = VisibleText::of(window.text.as_bytes());
        let from = visible.visible_at(window.context);
        // A secret that starts in the context was judged before, when more of the text before it was known.
        let mut spans = scanner.all_spans(&visible.text);
        spans.retain(|span| span.secret.start >= from);
        spans.extend(window.oversized.map(|oversized| {
            SecretSpan::without_context(from..visible.visible_at(oversized.known), oversized.form)
        }));
        let spans = merge(spans);
        let (bodies, raw_bodies, open) = (Vec::new(), Vec::new(), None);
        let mut findings = Self { visible, from, spans, bodies, raw_bodies, open };
        findings.find_keys(window);
        findings
    }

    fn find_keys(&mut self, window: &Window<'_>) {
        let (text, last) = (window.text, window.end == WindowEnd::Text);
        let mut at = 0;
        loop {
            match find_block(text, at..text.len(), last) {
                PemBlock::None => return,
                PemBlock::Closed(head, body) => {
                    at = body.end;
                    self.hide_body(head, body, window.context);
                }
                PemBlock::Open(head, body) => {
                    let is_key = has_body(text, body, last);
                    if is_key && last {
                        self.hide_body(head, body..text.len(), window.context);
                    } else if is_key {
                        self.open = Some((head.max(window.context), body.max(window.context)));
                        self.end_spans_at(self.visible.visible_at(head));
                    }
                    return;
                }
            }
        }
    }

    /// Ends secrets at the header of a key. If the header were released as part of a secret, it would not hide the next
    /// lines.
    fn end_spans_at(&mut self, head: usize) {
        for span in self.spans.iter_mut().filter(|span| span.secret.start < head) {
            span.secret.end = span.secret.end.min(head);
        }
    }

    fn hide_body(&mut self, head: usize, body: Range<usize>, context: usize) {
        // A window starts within a body only if the header lies in text that was taken for another secret.
        let body = body.start.max(context)..body.end;
        if !body.is_empty() {
            let secret = self.visible.visible_at(body.start)..self.visible.visible_at(body.end);
            let context = self.visible.visible_at(head);
            self.bodies.push(SecretSpan { secret, context, form: VisiblePart::Stars(0) });
            self.raw_bodies.push(body);
        }
    }

    /// Returns the number of visible bytes after the context.
    fn fresh_bytes(&self) -> usize {
        self.visible.text.len() - self.from
    }

    fn decide_cut(&self, redactor: &Redactor, window: &Window<'_>) -> CutDecision {
        let length = self.visible.text.len();
        let open = self.open.map(|(head, _)| self.visible.visible_at(head));
        let ahead = length.saturating_sub(redactor.lookahead());
        let limit = match window.end {
            WindowEnd::Open { is_last_attempt: false } => ahead,
            WindowEnd::Open { is_last_attempt: true } => {
                ahead.max(self.from + self.fresh_bytes().div_ceil(2))
            }
            WindowEnd::Line | WindowEnd::Text => {
                let continued =
                    redactor.continued_start(window).map(|at| self.visible.visible_at(at));
                let open_start = [open, continued].into_iter().flatten().min();
                let at =
                    open_start.map(|open_start| self.before_secrets(open_start).max(self.from));
                return CutDecision::At(at.map_or(window.text.len(), |at| self.raw(window, at)));
            }
        };
        let limit = open.map_or(limit, |head| limit.min(head));
        let at = self.cut_position(limit);
        let droppable_body = self.open.filter(|_| open.is_some_and(|head| head <= self.from));
        match droppable_body {
            _ if at > self.from => CutDecision::At(self.forward(window, at)),
            Some((_, body)) => CutDecision::DropKeyBody(body),
            None => self.cut_secret(window, limit),
        }
    }

    /// Cuts a window whose text to release starts with a secret that extends beyond `limit`.
    fn cut_secret(&self, window: &Window<'_>, limit: usize) -> CutDecision {
        let length = self.visible.text.len();
        let begins_here = |span: &&SecretSpan| span.secret.start == self.from;
        let Some(span) = self.spans.iter().chain(&self.bodies).find(begins_here) else {
            return CutDecision::At(window.text.len()); // Only escape sequences are left.
        };
        // A cut between a backslash and its character would change how the rules read the rest.
        let head = escape_boundary(&self.visible.text, self.from + RETAINED_SECRET_BYTES);
        let tail = escape_boundary(&self.visible.text, limit);
        // A rule may extend a secret by text after it, so the end counts only with that text in sight.
        let ends = span.secret.end + TRAILING_CONTEXT_BYTES <= length;
        if ends || tail <= head {
            return CutDecision::At(self.forward(window, span.secret.end));
        }
        let dropped = self.raw(window, head)..self.raw(window, tail);
        let known = self.visible.raw(&span.secret).end.max(dropped.end) - dropped.len();
        CutDecision::DropMiddle(dropped, OversizedSecret { known, form: span.form })
    }

    /// Returns the last position up to `limit` to cut at: preferably after white space, because nearly no
    /// secret continues there, and never within a secret.
    fn cut_position(&self, limit: usize) -> usize {
        let separators: [fn(u8) -> bool; 2] =
            [|byte| byte.is_ascii_whitespace(), |byte| byte.is_ascii() && !is_token(byte)];
        // Not before the half: a window that releases little would be inspected again and again.
        let min_cut = self.from + limit.saturating_sub(self.from) / 2;
        for is_separator in separators {
            let mut end = limit;
            loop {
                let text = self.visible.text.get(min_cut..end).unwrap_or_default();
                let Some(at) = text.iter().rposition(|byte| is_separator(*byte)) else { break };
                let cut = min_cut + at + 1;
                end = self.before_secrets(cut);
                if end == cut {
                    return cut;
                }
            }
        }
        self.before_secrets(limit)
    }

    /// Returns the last position up to `at` that is not within a secret. The position is also not between a
    /// secret and the text that identifies it, unless that text is context already.
    fn before_secrets(&self, mut at: usize) -> usize {
        let starts = |span: &SecretSpan| {
            if span.context > self.from { span.context } else { span.secret.start }
        };
        loop {
            let within = |span: &&SecretSpan| starts(span) < at && at < span.secret.end;
            let found = self.spans.iter().chain(&self.bodies).filter(within).map(starts).min();
            let Some(earlier) = found else { return at };
            at = earlier;
        }
    }

    /// Returns the raw position of a visible one, between two characters.
    fn raw(&self, window: &Window<'_>, at: usize) -> usize {
        window.text.floor_char_boundary(self.visible.raw_at(at)).max(window.context)
    }

    /// Returns the same position, at least one character after the context.
    fn forward(&self, window: &Window<'_>, at: usize) -> usize {
        self.raw(window, at).max(window.text.ceil_char_boundary(window.context + 1))
    }

    /// Returns the start of the context of the window that starts at the raw position `to`.
    fn context_start(&self, to: usize) -> usize {
        self.visible.raw_at(self.visible.visible_at(to).saturating_sub(CONTEXT_BYTES)).min(to)
    }

    /// Returns the redacted text up to `to` and the number of redactions.
    fn redacted(&self, scanner: &Scanner, window: &Window<'_>, to: usize) -> Option<(String, u64)> {
        let Window { text, context, .. } = *window;
        let in_body = |range: &Range<usize>| {
            self.raw_bodies.iter().any(|body| body.start < range.end && range.start < body.end)
        };
        let mut replacements = visible_replacements(text, &self.visible, &self.spans);
        replacements.extend(scanner.control_string_replacements(text, &self.visible));
        replacements.retain(|(range, _)| !in_body(range));
        replacements.extend(self.raw_bodies.iter().map(|body| (body.clone(), STARS.to_owned())));
        let mut output = text.get(context..to).unwrap_or_default().to_owned();
        let mut count = 0;
        // A replacement may complete another match beside it, as in a whole text.
        for _ in 0..MAX_ROUNDS {
            let within = shifted(replacements, context, output.len());
            if within.is_empty() {
                break;
            }
            count += within.len() as u64;
            output = apply_replacements(&output, &within);
            // With the context around it, or a rule that inspects the text before a secret decides otherwise.
            let head = text.get(..context).unwrap_or_default();
            let with_context = [head, output.as_str(), text.get(to..).unwrap_or_default()].concat();
            replacements = scanner.replacements(&with_context);
        }
        (count > 0).then_some((output, count))
    }
}

/// Returns the places within `length` bytes after `context`, relative to that position, in order.
fn shifted(replacements: Vec<Replacement>, context: usize, length: usize) -> Vec<Replacement> {
    let within = |(range, replacement): Replacement| {
        let start = range.start.checked_sub(context)?;
        (range.end - context <= length).then_some((start..range.end - context, replacement))
    };
    let mut within: Vec<Replacement> = replacements.into_iter().filter_map(within).collect();
    within.sort_by_key(|(range, _)| range.start);
    within
}

/// Returns the last position up to `at` that does not follow a backslash, so that an escape is not split; among
/// backslashes only, a position after an even number of them.
fn escape_boundary(text: &[u8], at: usize) -> usize {
    let head = text.get(..at).unwrap_or(text);
    let slashes = head.iter().rev().take_while(|byte| **byte == b'\\').count();
    head.len() - slashes % 2
}
