//! Messages of the service itself on the status of a task.

use algonius_a2a::interaction::{PauseMessage, pause_message};
use algonius_a2a::problem;
use algonius_a2a::v1::{A2aPart, Message, Metadata, Role};
use algonius_actors::model::agent::queue::Queued;
use algonius_actors::model::execution::event::DeadlineKind;
use algonius_actors::model::execution::record::ExecutionRecord;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::interaction::Interaction;
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::Value;

/// Metadata member that states whether the agent continued its conversation, and its only value.
pub(super) const CONTINUITY_KEY: &str = "continuity";
pub(super) const CONTINUITY_LOST: &str = "lost";

/// Returns the service's message about a failure.
pub(super) fn failure_message(record: &ExecutionRecord, failure: &Failure) -> Message {
    let id = format!("{}-failure", record.id);
    let mut message = new_message(record, id, Role::Agent, vec![A2aPart::text(&*failure.message)]);
    if let Value::Object(details) = problem::error_details(failure) {
        message.metadata = details;
    }
    message
}

/// Returns the service's message about an agent that needs authentication and did not name its purpose.
pub(super) fn auth_required_message(record: &ExecutionRecord) -> Message {
    let text = "the agent needs you to authenticate before it can continue";
    let id = format!("{}-auth", record.id);
    new_message(record, id, Role::Agent, vec![A2aPart::text(text)])
}

/// Returns the service's message with the open interactions of a task; `None` if there are none.
pub(super) fn interaction_message(
    record: &ExecutionRecord,
    interactions: &[Interaction],
) -> Option<Message> {
    let newest = interactions.last()?;
    let PauseMessage { parts, metadata, extensions } = pause_message(interactions);
    let message = new_message(record, format!("{}-interaction", newest.id), Role::Agent, parts);
    Some(Message { metadata, extensions, ..message })
}

/// Returns the service's message about a deadline that is near.
#[must_use]
pub fn deadline_message(
    record: &ExecutionRecord,
    (deadline_kind, at): (DeadlineKind, DateTime<Utc>),
    text: &str,
) -> Message {
    let id = format!("{}-{}-deadline", record.id, deadline_kind.as_str());
    let mut message = new_message(record, id, Role::Agent, vec![A2aPart::text(text)]);
    message.metadata.insert("limit".to_owned(), deadline_kind.as_str().into());
    let at = at.to_rfc3339_opts(SecondsFormat::Millis, true);
    message.metadata.insert("endsAt".to_owned(), at.into());
    message
}

/// Returns the service's message about an agent that does not continue a conversation.
#[must_use]
pub fn session_lost_message(record: &ExecutionRecord, text: &str) -> Message {
    let id = format!("{}-continuity", record.id);
    let mut message = new_message(record, id, Role::Agent, vec![A2aPart::text(text)]);
    message.metadata.insert(CONTINUITY_KEY.to_owned(), CONTINUITY_LOST.into());
    message
}

/// Message of the service about something that callers should know while the agent works.
#[must_use]
pub fn warning_message(record: &ExecutionRecord, (number, text): (u64, &str)) -> Message {
    let id = format!("{}-{number}-warning", record.id);
    let mut message = new_message(record, id, Role::Agent, vec![A2aPart::text(text)]);
    message.metadata.insert("warning".to_owned(), true.into());
    message
}

/// Returns the service's message about an execution that waits.
#[must_use]
pub fn queue_message(record: &ExecutionRecord, queued: Queued) -> Message {
    let id = format!("{}-queue", record.id);
    let mut message = new_message(record, id, Role::Agent, vec![A2aPart::text(queued.to_string())]);
    if let Ok(Value::Object(details)) = serde_json::to_value(queued) {
        message.metadata = details;
    }
    message
}

pub(super) fn new_message(
    record: &ExecutionRecord,
    message_id: String,
    role: Role,
    parts: Vec<A2aPart>,
) -> Message {
    Message {
        message_id,
        context_id: Some(record.context.0.clone()),
        task_id: Some(record.id.to_string()),
        role,
        parts,
        metadata: Metadata::new(),
        extensions: Vec::new(),
        reference_task_ids: Vec::new(),
    }
}
