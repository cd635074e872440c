//! Requests of earlier processes, read from the ledger.

use std::sync::Arc;

use crate::decide::recovery::InputLoss;
use crate::model::execution::content::{Content, Part, PartKind, StoredPart};
use crate::model::execution::event::{Event, EventKind, MessageRole};
use crate::model::execution::message_details::MessageDetails;
use crate::model::execution::record::ExecutionRecord;
use crate::model::execution::request::{Input, Overrides, Request};
use crate::model::id::MessageId;
use crate::ports::ledger::LedgerError;
use crate::services::Services;
use crate::services::sealed_inputs::unseal_input;

/// Returns the raw input of the latest turn of an execution; `None` if the ledger stores it unchanged.
pub(super) async fn unseal_if_redacted(
    services: &Services,
    record: &ExecutionRecord,
) -> Result<Result<Option<Input>, InputLoss>, LedgerError> {
    if record.stores_raw_input {
        Ok(Ok(None))
    } else {
        Ok(unseal_input(services, record).await?.map(Some))
    }
}

/// Reads the latest request of an execution with its original input.
pub(crate) async fn read_request(
    services: &Services,
    record: &ExecutionRecord,
) -> Result<Result<Arc<Request>, InputLoss>, LedgerError> {
    Ok(match unseal_if_redacted(services, record).await? {
        Ok(raw) => Ok(build_request(services, record, raw).await?),
        Err(input_loss) => Err(input_loss),
    })
}

/// Returns the latest request of an execution, with this raw input or else with the stored one.
pub(super) async fn build_request(
    services: &Services,
    record: &ExecutionRecord,
    raw_input: Option<Input>,
) -> Result<Arc<Request>, LedgerError> {
    let latest_message =
        services.ledger.events(record.id, 0).await?.into_iter().rev().find_map(user_message);
    let StoredMessage { message_id, stored_parts, details } =
        latest_message.unwrap_or_else(|| StoredMessage {
            message_id: record.message_id.clone(),
            stored_parts: Vec::new(),
            details: MessageDetails::default(),
        });
    let input = match raw_input {
        Some(input) => input,
        None => Input { details, ..read_stored_input(services, record, stored_parts).await? },
    };
    Ok(Arc::new(Request {
        agent: record.agent.clone(),
        origin: record.origin(),
        message_id,
        context: record.context.clone(),
        starts_context: false,
        idempotency_key: None,
        continued_execution: None,
        inherited_overrides: Overrides::default(),
        input,
    }))
}

async fn read_stored_input(
    services: &Services,
    record: &ExecutionRecord,
    stored_parts: Vec<StoredPart>,
) -> Result<Input, LedgerError> {
    let mut parts = Vec::new();
    for stored_part in stored_parts {
        let text = services.ledger.text(record.id, stored_part.text).await?;
        parts.push(to_part(stored_part, text));
    }
    Ok(Input {
        parts,
        params: record.params.clone(),
        overrides: record.overrides.clone(),
        details: MessageDetails::default(),
    })
}

/// Message of a caller as the ledger stores it.
struct StoredMessage {
    message_id: MessageId,
    stored_parts: Vec<StoredPart>,
    details: MessageDetails,
}

fn user_message(event: Event) -> Option<StoredMessage> {
    match event.data {
        EventKind::Message { speaker: MessageRole::User, message, pieces, details } => {
            let (message, details) = (MessageId(message), *details.unwrap_or_default());
            Some(StoredMessage { message_id: message, stored_parts: pieces, details })
        }
        _ => None,
    }
}

fn to_part(stored_part: StoredPart, text: String) -> Part {
    let content = match stored_part.kind {
        PartKind::Text => Content::Text(text),
        PartKind::Data => Content::Data(serde_json::from_str(&text).unwrap_or_default()),
        PartKind::Bytes => Content::Bytes(text),
        PartKind::Url => Content::Url(text),
    };
    Part { content, filename: stored_part.filename, media_type: stored_part.media_type }
}
