//! History of a task: the messages of its caller and the questions of its agent.

use algonius_a2a::v1::{HistoryLength, Message};
use algonius_actors::model::execution::event::{EventKind, MessageRole};
use algonius_actors::model::execution::message_details::{MessageDetails, PartMetadata};
use algonius_actors::model::failure::Failure;

use super::{TaskView, recorded_message};

impl TaskView<'_> {
    /// Returns the messages of the history, without the message in the status.
    pub(super) async fn history(&self, length: HistoryLength) -> Result<Vec<Message>, Failure> {
        let awaits_answer = self.record.awaits_answer();
        let mut recorded_messages = Vec::new();
        for event in &self.events {
            if let EventKind::Message { speaker, message, pieces, details } = &event.data
                && matches!(speaker, MessageRole::User | MessageRole::AgentQuestion)
            {
                recorded_messages.push((*speaker, message, pieces, details));
            }
        }
        // The status shows the open question already.
        if awaits_answer
            && recorded_messages
                .last()
                .is_some_and(|(speaker, ..)| *speaker == MessageRole::AgentQuestion)
        {
            recorded_messages.pop();
        }
        let skipped_count = match length {
            HistoryLength::All => 0,
            HistoryLength::Last(count) => recorded_messages.len().saturating_sub(count),
        };
        let mut messages = Vec::new();
        for (speaker, message, pieces, details) in recorded_messages.into_iter().skip(skipped_count)
        {
            let message = recorded_message(self.api, self.record, speaker, message, pieces).await?;
            messages.push(match details {
                Some(details) => add_details(message, details),
                None => message,
            });
        }
        Ok(messages)
    }
}

/// Returns a message of the caller with its metadata and references. Those of the request were no part of it.
fn add_details(message: Message, details: &MessageDetails) -> Message {
    let MessageDetails { metadata, part_metadata, extensions, reference_tasks, request: _ } =
        details.clone();
    let mut message =
        Message { metadata, extensions, reference_task_ids: reference_tasks, ..message };
    for PartMetadata { part: index, metadata } in part_metadata {
        if let Some(part) = message.parts.get_mut(index) {
            part.metadata = metadata;
        }
    }
    message
}
