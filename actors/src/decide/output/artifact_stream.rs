//! Artifacts that grow: their text is redacted as one stream, across the events that append to it.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::sync::Arc;

use algonius_redact::Redactor;

use super::early_redaction::EarlyReleaseRedactor;
use super::redact_parts::RedactedPart;
use crate::model::execution::content::{Content, Part};

/// Maximum number of open texts, because each of them uses memory. Beyond it, the text that was idle for longest is
/// finished, so text appended later is redacted separately: a secret that is split at exactly this point is not found.
const MAX_OPEN_TEXTS: usize = 64;

/// Artifact or a continuation of one: raw, or in the form that can be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactPiece<P> {
    /// Id of the artifact within the execution.
    pub id: String,
    /// Display name of the artifact.
    pub name: Option<String>,
    /// Description of the artifact.
    pub description: Option<String>,
    /// Content of the artifact.
    pub parts: Vec<P>,
    /// True if the parts follow those sent earlier under this id.
    pub append: bool,
    /// True if these are the last parts of the artifact.
    pub last: bool,
}

/// Artifacts of an attempt whose text may continue, and the text that is held back of each.
pub struct ArtifactStream {
    redactor: Arc<Redactor>,
    /// Open texts; the one that grew last is the last.
    open_texts: VecDeque<(String, EarlyReleaseRedactor)>,
}

impl ArtifactStream {
    /// Creates a state without artifacts.
    #[must_use]
    pub const fn new(redactor: Arc<Redactor>) -> Self {
        Self { redactor, open_texts: VecDeque::new() }
    }

    /// Adds a piece of an artifact, and returns what can be shown now, in order: of this artifact, and of others that
    /// are no longer held back. A piece that adds nothing visible is omitted, but the start and the end of an artifact
    /// are always shown.
    pub fn push(&mut self, piece: ArtifactPiece<Part>) -> Vec<ArtifactPiece<RedactedPart>> {
        let ArtifactPiece { id, name, description, parts, append, last } = piece;
        let mut open_text = self.take_open_text(&id);
        let mut visible = Vec::new();
        if !append {
            visible.extend(open_text.take().and_then(|text| remaining_piece(&id, text)));
        }
        let was_open = open_text.is_some();
        let parts = if append { join_texts(parts) } else { parts.into() };
        let (mut parts, open_text) = self.redact_piece_parts(open_text, parts, last);
        let is_invisible = parts.is_empty() && was_open && !last;
        if parts.is_empty() {
            parts.push(RedactedPart::from_redacted_text(String::new(), 0));
        }
        if !is_invisible {
            visible.push(ArtifactPiece { id: id.clone(), name, description, parts, append, last });
        }
        visible.extend(open_text.and_then(|text| self.push_within_limit(id, text)));
        visible
    }

    /// Returns the text of all open artifacts that can be shown now, although more text will follow.
    pub fn release_open_texts(&mut self) -> Vec<ArtifactPiece<RedactedPart>> {
        let visible = self.open_texts.iter_mut().filter_map(|(id, text)| {
            let count_before = text.redaction_count();
            let visible =
                visible_part((text.release_line_start(), text.redaction_count() - count_before))?;
            Some(continuation_piece(id.clone(), visible, false))
        });
        visible.collect()
    }

    /// Returns the rest of all open artifacts, which do not continue.
    pub fn finish(&mut self) -> Vec<ArtifactPiece<RedactedPart>> {
        self.open_texts
            .drain(..)
            .map(|(id, mut text)| finished_text_piece(id, finish_text(&mut text), true))
            .collect()
    }

    fn take_open_text(&mut self, id: &str) -> Option<EarlyReleaseRedactor> {
        let index = self.open_texts.iter().position(|(open_id, _)| open_id == id)?;
        self.open_texts.remove(index).map(|(_, text)| text)
    }

    /// Adds an open text. Beyond the limit, finishes the text that was idle for longest and returns its rest.
    fn push_within_limit(
        &mut self,
        id: String,
        text: EarlyReleaseRedactor,
    ) -> Option<ArtifactPiece<RedactedPart>> {
        self.open_texts.push_back((id, text));
        if self.open_texts.len() <= MAX_OPEN_TEXTS {
            return None;
        }
        let (id, text) = self.open_texts.pop_front()?;
        remaining_piece(&id, text)
    }

    /// Returns the visible form of further parts, and the text that stays open after them. Only a text in the last
    /// position can continue.
    fn redact_piece_parts(
        &self,
        open_text: Option<EarlyReleaseRedactor>,
        mut parts: VecDeque<Part>,
        last: bool,
    ) -> (Vec<RedactedPart>, Option<EarlyReleaseRedactor>) {
        let mut visible = Vec::new();
        if let Some(mut text) = open_text {
            let next_part = parts.pop_front_if(|part| is_plain_text(part));
            let continues = parts.is_empty() && !last;
            let count_before = text.redaction_count();
            let mut released = push_part(&mut text, next_part);
            if !continues {
                released.push_str(&text.finish());
            }
            visible.extend(visible_part((released, text.redaction_count() - count_before)));
            if continues {
                return (visible, Some(text));
            }
        }
        let open_part = if last { None } else { parts.pop_back_if(|part| is_plain_text(part)) };
        visible.extend(parts.iter().map(|part| RedactedPart::redact(part, &self.redactor)));
        let open_text = open_part.map(|open_part| {
            let mut text = EarlyReleaseRedactor::new(Arc::clone(&self.redactor));
            let released = push_part(&mut text, Some(open_part));
            visible.extend(visible_part((released, text.redaction_count())));
            text
        });
        (visible, open_text)
    }
}

/// Joins consecutive texts of an append, because a reader sees them as one text and they must be redacted as one.
fn join_texts(parts: Vec<Part>) -> VecDeque<Part> {
    let mut joined: VecDeque<Part> = VecDeque::new();
    for part in parts {
        match (joined.back_mut(), &part) {
            (Some(Part { content: Content::Text(text), filename: None, .. }), next_part)
                if is_plain_text(next_part) =>
            {
                text.push_str(plain_text(next_part));
            }
            _ => joined.push_back(part),
        }
    }
    joined
}

fn is_plain_text(part: &Part) -> bool {
    matches!(part, Part { content: Content::Text(_), filename: None, .. })
}

fn plain_text(part: &Part) -> &str {
    if let Content::Text(text) = &part.content { text } else { "" }
}

fn push_part(text: &mut EarlyReleaseRedactor, part: Option<Part>) -> String {
    part.map(|part| text.push(plain_text(&part).as_bytes())).unwrap_or_default()
}

/// Redacted text with the number of redactions.
type TextWithRedactionCount = (String, u64);

fn finish_text(text: &mut EarlyReleaseRedactor) -> TextWithRedactionCount {
    let count_before = text.redaction_count();
    (text.finish(), text.redaction_count() - count_before)
}

fn visible_part((text, redacted): TextWithRedactionCount) -> Option<RedactedPart> {
    (!text.is_empty()).then(|| RedactedPart::from_redacted_text(text, redacted))
}

/// Returns the text that was held back, if there is any.
fn remaining_piece(
    id: &str,
    mut text: EarlyReleaseRedactor,
) -> Option<ArtifactPiece<RedactedPart>> {
    let text = finish_text(&mut text);
    (!text.0.is_empty()).then(|| finished_text_piece(id.to_owned(), text, false))
}

fn finished_text_piece(
    id: String,
    (text, redacted): TextWithRedactionCount,
    last: bool,
) -> ArtifactPiece<RedactedPart> {
    continuation_piece(id, RedactedPart::from_redacted_text(text, redacted), last)
}

fn continuation_piece(id: String, part: RedactedPart, last: bool) -> ArtifactPiece<RedactedPart> {
    ArtifactPiece { id, name: None, description: None, parts: vec![part], append: true, last }
}
