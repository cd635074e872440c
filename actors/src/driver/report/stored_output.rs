//! Output of another execution, which the ledger stores redacted: read as text, or copied.

use std::sync::Arc;

use super::OutputWriter;
use crate::decide::output::redact_parts::RedactedPart;
use crate::model::execution::content::{PartKind, StoredPart};
use crate::model::execution::event::{EventKind, MessageRole};
use crate::model::id::ExecutionId;
use crate::ports::ledger::{Ledger, LedgerError};

/// Answer of an execution as text.
pub(crate) struct AnswerText {
    /// Texts and data.
    pub(crate) text: String,
    /// Number of files and addresses, which are not in the text.
    pub(crate) file_count: usize,
}

/// Reader of the output of the last attempt of an execution that has ended.
pub(crate) struct StoredOutputReader {
    id: ExecutionId,
    ledger: Arc<dyn Ledger>,
}

impl StoredOutputReader {
    /// Creates the reader of an execution.
    pub(crate) const fn new(id: ExecutionId, ledger: Arc<dyn Ledger>) -> Self {
        Self { id, ledger }
    }

    /// Returns the events of the last attempt. An event without text counts whichever attempt recorded it.
    ///
    /// # Errors
    /// Returns an error if the ledger cannot be read.
    pub(crate) async fn last_attempt_events(&self) -> Result<Vec<EventKind>, LedgerError> {
        let record = self.ledger.execution(self.id).await?;
        let last_attempt = record.map(|record| record.attempt_id);
        let events = self.ledger.events(self.id, 0).await?.into_iter().map(|event| event.data);
        let belongs_to_last_attempt = |event: &EventKind| match event {
            EventKind::Message { pieces, .. } | EventKind::Artifact { pieces, .. } => {
                pieces.first().is_none_or(|piece| Some(piece.text.attempt_id) == last_attempt)
            }
            _ => true,
        };
        Ok(events.filter(belongs_to_last_attempt).collect())
    }

    /// Returns the events of the answer: artifacts, and messages that are answers.
    ///
    /// # Errors
    /// Returns an error if the ledger cannot be read.
    pub(crate) async fn answer_events(&self) -> Result<Vec<EventKind>, LedgerError> {
        let is_answer = |event: &EventKind| {
            matches!(
                event,
                EventKind::Artifact { .. }
                    | EventKind::Message { speaker: MessageRole::AgentAnswer, .. }
            )
        };
        Ok(self.last_attempt_events().await?.into_iter().filter(is_answer).collect())
    }

    /// Returns the text of the answer: its text and data, one artifact or message per line. Files are left out.
    ///
    /// # Errors
    /// Returns an error if the ledger cannot be read.
    pub(crate) async fn answer_text(&self) -> Result<AnswerText, LedgerError> {
        let mut texts: Vec<(Option<String>, AnswerText)> = Vec::new();
        for event in self.answer_events().await? {
            let (id, pieces, append) = match event {
                EventKind::Artifact { id, pieces, append, .. } => (Some(id), pieces, append),
                EventKind::Message { pieces, .. } => (None, pieces, false),
                _ => continue,
            };
            let text = self.read_text(&pieces).await?;
            match texts.iter_mut().find(|(known, _)| id.is_some() && *known == id) {
                Some((_, known_text)) if append => {
                    known_text.text.push_str(&text.text);
                    known_text.file_count += text.file_count;
                }
                Some((_, known_text)) => *known_text = text,
                None => texts.push((id, text)),
            }
        }
        let file_count = texts.iter().map(|(_, text)| text.file_count).sum();
        let texts = texts.into_iter().map(|(_, text)| text.text).filter(|text| !text.is_empty());
        Ok(AnswerText { text: texts.collect::<Vec<_>>().join("\n"), file_count })
    }

    async fn read_text(&self, stored_parts: &[StoredPart]) -> Result<AnswerText, LedgerError> {
        let (mut text, mut file_count) = (String::new(), 0);
        for stored_part in stored_parts {
            match stored_part.kind {
                PartKind::Text => {}
                PartKind::Data if text.is_empty() => {}
                PartKind::Data => text.push('\n'),
                PartKind::Bytes | PartKind::Url => {
                    file_count += 1;
                    continue;
                }
            }
            text.push_str(&self.ledger.text(self.id, stored_part.text).await?);
        }
        Ok(AnswerText { text, file_count })
    }

    /// Copies parts of the output to another execution. Their text is redacted already.
    ///
    /// # Errors
    /// Returns an error if the ledger cannot be read, or did not commit.
    pub(crate) async fn copy_parts(
        &self,
        stored_parts: &[StoredPart],
        output_writer: &mut OutputWriter,
    ) -> Result<Vec<StoredPart>, LedgerError> {
        let mut parts = Vec::with_capacity(stored_parts.len());
        for stored_part in stored_parts {
            let text = self.ledger.text(self.id, stored_part.text).await?;
            parts.push(RedactedPart::from_stored(stored_part, text));
        }
        output_writer.store_parts(parts).await
    }
}
