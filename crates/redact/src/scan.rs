//! Redaction of one stretch of text: finds all spans in the visible text, repeatedly until none is left.

use std::ops::Range;

use super::configuration::patterns::RedactionPatterns;
use super::literals::matcher::LiteralMatcher;
use super::rules::apply_keyword_rules;
use super::rules::discord_token::find_discord_tokens;
use super::rules::personal_numbers::find_personal_numbers;
use super::spans::{SecretSpan, VisiblePart, merge_spans, render_replacement};
use super::text::ansi::VisibleText;

/// Maximum number of rounds: a redaction may uncover another match beside it.
pub(super) const MAX_ROUNDS: usize = 8;

/// Scanner with all rules.
pub(super) struct Scanner {
    pub(super) literals: LiteralMatcher,
    pub(super) patterns: RedactionPatterns,
    pub(super) redacts_personal_numbers: bool,
    pub(super) redacts_emails: bool,
}

/// Redacted stretch.
pub(super) struct RedactedText {
    pub(super) text: String,
    pub(super) redaction_count: u64,
}

impl Scanner {
    /// Returns true if every line must be inspected.
    pub(super) fn inspects_every_line(&self) -> bool {
        self.redacts_personal_numbers || !self.patterns.is_empty()
    }

    /// Returns all spans to redact in visible text, merged.
    pub(super) fn find_spans(&self, line: &[u8]) -> Vec<SecretSpan> {
        merge_spans(self.find_unmerged_spans(line))
    }

    /// Returns all spans to redact in visible text, in no order. They may overlap.
    pub(super) fn find_unmerged_spans(&self, line: &[u8]) -> Vec<SecretSpan> {
        let mut spans = Vec::new();
        self.literals.push_spans(line, &mut spans);
        apply_keyword_rules(line, self.redacts_emails, &mut spans);
        find_discord_tokens(line, &mut spans);
        self.find_pattern_matches(line, &mut spans);
        if self.redacts_personal_numbers {
            find_personal_numbers(line, &mut spans);
        }
        spans
    }

    /// Finds the matches of the configured patterns, line by line. The rest of a redacted match does not match.
    fn find_pattern_matches(&self, text: &[u8], spans: &mut Vec<SecretSpan>) {
        if self.patterns.is_empty() {
            return;
        }
        let mut from = 0;
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let end = line.iter().rposition(|byte| !b"\r\n".contains(byte)).map_or(0, |at| at + 1);
            let line_content = line.get(..end).unwrap_or_default();
            // Per line, because an operator writes a pattern for what a reader sees, without line ends and escape
            // sequences.
            for pattern in self.patterns.matching_patterns(line_content) {
                let matches = pattern.regex().find_iter(line_content);
                // Otherwise a second redaction of the same text would match its own replacement and count it again.
                let matches = matches.filter(|found| {
                    !has_only_stars(found.as_bytes(), pattern.visible_prefix_bytes())
                });
                spans.extend(matches.map(|found| {
                    let range = from + found.start()..from + found.end();
                    SecretSpan::without_context(
                        range,
                        VisiblePart::PrefixOnly(pattern.visible_prefix_bytes()),
                    )
                }));
            }
            from += line.len();
        }
    }

    /// Redacts `text`; `None` if there is nothing to redact.
    pub(super) fn redact(&self, text: &str) -> Option<RedactedText> {
        let mut redacted: Option<RedactedText> = None;
        // Bounded, because two rules could uncover matches for each other without end.
        for _ in 0..MAX_ROUNDS {
            let current = redacted.as_ref().map_or(text, |redacted| redacted.text.as_str());
            let replacements = self.replacements(current);
            if replacements.is_empty() {
                break;
            }
            let count = redacted.as_ref().map_or(0, |redacted| redacted.redaction_count)
                + replacements.len() as u64;
            redacted = Some(RedactedText {
                text: apply_replacements(current, &replacements),
                redaction_count: count,
            });
        }
        redacted
    }

    /// Returns all places to redact in raw text, in order.
    pub(super) fn replacements(&self, text: &str) -> Vec<Replacement> {
        let visible = VisibleText::from_raw(text.as_bytes());
        let mut replacements =
            visible_replacements(text, &visible, &self.find_spans(&visible.text));
        replacements.extend(self.control_string_replacements(text, &visible));
        replacements.sort_by_key(|(range, _)| range.start);
        replacements
    }

    /// Returns the places to redact within control strings.
    pub(super) fn control_string_replacements(
        &self,
        text: &str,
        visible: &VisibleText<'_>,
    ) -> Vec<Replacement> {
        let string_replacements = |string_range: &Range<usize>| {
            let string = text.as_bytes().get(string_range.clone()).unwrap_or_default();
            let replacements = self.find_spans(string).into_iter().map(|span| {
                let range =
                    string_range.start + span.secret.start..string_range.start + span.secret.end;
                (widen_to_char_boundaries(text, range), replacement_text(string, &span))
            });
            replacements.collect::<Vec<_>>()
        };
        visible.control_strings.iter().flat_map(string_replacements).collect()
    }
}

/// Place in raw text, and its replacement.
pub(super) type Replacement = (Range<usize>, String);

/// Returns the raw places of spans of the visible text.
pub(super) fn visible_replacements(
    text: &str,
    visible: &VisibleText<'_>,
    spans: &[SecretSpan],
) -> Vec<Replacement> {
    let to_replacement = |span: &SecretSpan| {
        (
            widen_to_char_boundaries(text, visible.raw_range(&span.secret)),
            replacement_text(&visible.text, span),
        )
    };
    spans.iter().map(to_replacement).collect()
}

fn replacement_text(text: &[u8], span: &SecretSpan) -> String {
    let secret = text.get(span.secret.clone()).unwrap_or_default();
    render_replacement(&String::from_utf8_lossy(secret), span.visible_part)
}

/// Returns true if only stars follow the visible prefix.
fn has_only_stars(matched: &[u8], prefix_bytes: usize) -> bool {
    matched.get(prefix_bytes..).is_none_or(|rest| rest.iter().all(|byte| *byte == b'*'))
}

pub(super) fn widen_to_char_boundaries(text: &str, range: Range<usize>) -> Range<usize> {
    text.floor_char_boundary(range.start)..text.ceil_char_boundary(range.end)
}

pub(super) fn apply_replacements(text: &str, replacements: &[Replacement]) -> String {
    let mut out = String::with_capacity(text.len());
    let mut copied_to = 0;
    for (range, replacement) in replacements {
        // Places in control strings may overlap places of the visible text; the first one hides both.
        if range.start >= copied_to {
            out.push_str(text.get(copied_to..range.start).unwrap_or_default());
            out.push_str(replacement);
            copied_to = range.end;
        }
    }
    out.push_str(text.get(copied_to..).unwrap_or_default());
    out
}
