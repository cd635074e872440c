//! Spans to redact, their merging when they overlap, and their replacement text.

use std::ops::Range;

/// Length from which a secret shows its prefix and its last four characters, in bytes.
const MIN_BYTES_FOR_TAIL: usize = 20;

/// Replacement of a secret that shows nothing.
pub(super) const STARS: &str = "***";

/// Text between the prefix and the last four characters.
pub(super) const DOTS: &str = "...";

/// Visible part of a secret. The number is the length of the kept prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum VisiblePart {
    /// Prefix, dots and the last four characters if the secret is long, otherwise stars.
    PrefixAndTail(usize),
    /// Prefix and stars.
    PrefixOnly(usize),
}

/// Span to redact.
#[derive(Debug, Clone)]
pub(super) struct SecretSpan {
    /// Range of the secret.
    pub(super) secret: Range<usize>,
    /// Start of the context that identifies the secret.
    pub(super) context_start: usize,
    /// Form of the replacement.
    pub(super) visible_part: VisiblePart,
}

impl SecretSpan {
    /// Creates the span of a secret that is identified by its own format.
    pub(super) const fn without_context(secret: Range<usize>, visible_part: VisiblePart) -> Self {
        Self { context_start: secret.start, secret, visible_part }
    }

    fn covers(&self, range: &Range<usize>) -> bool {
        self.secret.start <= range.start && self.secret.end >= range.end
    }
}

/// Merges overlapping spans, so that no span starts before another one ends.
///
/// A span that covers its neighbours determines the form; earlier spans in `spans` win a tie. If any span shows
/// nothing, the merged span shows nothing.
pub(super) fn merge_spans(mut spans: Vec<SecretSpan>) -> Vec<SecretSpan> {
    spans.retain(|span| !span.secret.is_empty());
    // The sort is stable, so that the order of the rules decides a tie.
    spans.sort_by_key(|span| span.secret.start);
    let mut merged = Vec::with_capacity(spans.len());
    let mut group: Vec<SecretSpan> = Vec::new();
    let mut group_end = 0;
    for span in spans {
        if !group.is_empty() && span.secret.start >= group_end {
            merged.extend(merge_group(&group));
            group.clear();
            group_end = 0;
        }
        group_end = group_end.max(span.secret.end);
        group.push(span);
    }
    merged.extend(merge_group(&group));
    merged
}

fn merge_group(group: &[SecretSpan]) -> Option<SecretSpan> {
    let start = group.iter().map(|span| span.secret.start).min()?;
    let end = group.iter().map(|span| span.secret.end).max()?;
    let context_start = group.iter().map(|span| span.context_start).min()?;
    let range = start..end;
    // One rule that shows nothing is enough: the others may have judged a part of the secret only.
    let hides_all = group.iter().any(|span| span.visible_part == VisiblePart::PrefixOnly(0));
    let covering_span = group.iter().find(|span| span.covers(&range)).filter(|_| !hides_all);
    let visible_part = covering_span.map_or(VisiblePart::PrefixOnly(0), |span| span.visible_part);
    Some(SecretSpan { secret: range, context_start, visible_part })
}

/// Returns the replacement of `secret`. It has the same number of lines, so that the line structure stays.
pub(super) fn render_replacement(secret: &str, visible_part: VisiblePart) -> String {
    if secret.contains('\n') {
        let lines = secret.split('\n').map(|line| if line.is_empty() { "" } else { STARS });
        return lines.collect::<Vec<_>>().join("\n");
    }
    let (VisiblePart::PrefixAndTail(prefix_bytes) | VisiblePart::PrefixOnly(prefix_bytes)) =
        visible_part;
    let prefix = secret.get(..prefix_bytes).unwrap_or("");
    match visible_part {
        VisiblePart::PrefixOnly(_) => format!("{prefix}{STARS}"),
        VisiblePart::PrefixAndTail(_) => last_four(secret)
            // The last four characters of a short secret would make the rest guessable.
            .filter(|_| secret.len() >= MIN_BYTES_FOR_TAIL)
            .map_or_else(|| STARS.to_owned(), |last| format!("{prefix}{DOTS}{last}")),
    }
}

/// Returns the last four characters, if tokens usually end in such characters.
fn last_four(secret: &str) -> Option<&str> {
    let last = secret.get(secret.len().checked_sub(4)?..)?;
    let is_ordinary = |byte: u8| byte.is_ascii_alphanumeric() || b"_-+/=".contains(&byte);
    last.bytes().all(is_ordinary).then_some(last)
}
