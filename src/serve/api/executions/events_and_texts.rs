//! Parts of the texts and events of an execution.

use algonius_actors::model::access::principal::Right;
use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::execution::event::{TextChannel, TextRange};
use algonius_actors::model::failure::Failure;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use super::detail::text_entry;
use super::{parse_execution_id, stream};
use crate::serve::AppState;
use crate::serve::a2a::sse::accepts_event_stream;
use crate::serve::a2a::transport_metadata::TransportMetadata;
use crate::serve::api::invalid_params;
use crate::serve::auth::caller::AuthenticatedCaller;
use crate::serve::http::path_param::PathParam;
use crate::serve::http::response::{ProblemBody, ok_response, to_json};
use crate::wire::api::history::{EventList, TextPart};

/// Number of bytes of a part if the caller requests none.
const DEFAULT_TEXT_BYTES: u64 = 64 << 10;
/// Maximum number of bytes of a part.
const MAX_TEXT_BYTES: u64 = 1 << 20;
/// Default and maximum number of events of a page.
const MAX_EVENT_PAGE_SIZE: u32 = 1000;

/// Requested part of a text.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextQuery {
    /// Turn number; by default the last turn.
    #[schemars(range(max = u32::MAX))]
    turn: Option<u32>,
    /// Attempt number; by default the last attempt.
    #[schemars(range(max = u32::MAX))]
    attempt: Option<u32>,
    /// Channel of the text; by default standard output.
    channel: Option<TextChannel>,
    /// Position of the first byte.
    #[serde(default)]
    from: u64,
    /// Maximum number of bytes; by default 65536.
    #[schemars(range(min = 4, max = MAX_TEXT_BYTES))]
    limit: Option<u64>,
}

/// Returns a part of a text, by default of the standard output of the last attempt.
///
/// # Errors
/// `invalid-params`, `execution-unknown`; fails also if the ledger cannot be read.
pub async fn text(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    PathParam(id): PathParam,
    query: Result<Query<TextQuery>, QueryRejection>,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Read, None)?;
    let record = app.api.reader.execution(&caller, parse_execution_id(&id)?).await?;
    let hint = "the query takes `turn`, `attempt`, `channel`, `from` and `limit`";
    let Query(query) = query.map_err(|_rejected| invalid_params(hint))?;
    let limit = query.limit.unwrap_or(DEFAULT_TEXT_BYTES);
    if !(4..=MAX_TEXT_BYTES).contains(&limit) {
        return Err(invalid_params("`limit` must be 4 to 1048576").into());
    }
    let attempt_id = AttemptId {
        turn: query.turn.unwrap_or(record.attempt_id.turn),
        attempt: query.attempt.unwrap_or(record.attempt_id.attempt),
    };
    let channel = query.channel.unwrap_or(TextChannel::Stdout);
    let (from, to) = (query.from, query.from.saturating_add(limit));
    // The length is read first: all bytes within that length are readable afterwards.
    let texts = app.api.reader.text_ranges(&record).await?;
    let is_requested = |text: &&TextRange| (text.attempt_id, text.channel) == (attempt_id, channel);
    let empty_range = TextRange { attempt_id, channel, from: 0, to: 0 };
    let entry = text_entry(texts.iter().find(is_requested).copied().unwrap_or(empty_range));
    let slice = app.api.reader.text_slice(&record, TextRange { from, to, ..empty_range }).await?;
    Ok(ok_response(&to_json(&TextPart {
        entry,
        from: slice.start_offset,
        to: slice.end_offset(),
        text: slice.text,
    })?))
}

/// Requested page of events.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventQuery {
    /// Number of the event after which the page starts; by default the page starts with the first event.
    #[schemars(range(max = u64::MAX))]
    after: Option<u64>,
    /// Maximum number of events; by default 1000.
    #[schemars(range(min = 1, max = MAX_EVENT_PAGE_SIZE))]
    limit: Option<u32>,
    /// Channels of the texts that an event stream also contains while they grow, separated by commas.
    #[schemars(regex(
        pattern = r"^(input|stdout|stderr|answer|parts|steps)(,(input|stdout|stderr|answer|parts|steps)){0,5}$"
    ))]
    text: Option<String>,
}

/// Parses the channels that a query names.
fn parse_channels(channel_names: Option<&str>) -> Result<Vec<TextChannel>, Failure> {
    let mut channels = Vec::new();
    for name in channel_names.into_iter().flat_map(|text| text.split(',')) {
        let channel = TextChannel::parse(name);
        let channel = channel.ok_or_else(|| {
            invalid_params(
                "`text` takes `input`, `stdout`, `stderr`, `answer`, `parts` and `steps`, with commas",
            )
        })?;
        if !channels.contains(&channel) {
            channels.push(channel);
        }
    }
    Ok(channels)
}

/// Returns a page of events or, for a client that accepts event streams, a stream of all events up to the end of the
/// execution.
///
/// # Errors
/// `invalid-params`, `execution-unknown`; fails also if the ledger cannot be read.
pub async fn events(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    PathParam(id): PathParam,
    headers: HeaderMap,
    query: Result<Query<EventQuery>, QueryRejection>,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Read, None)?;
    let record = app.api.reader.execution(&caller, parse_execution_id(&id)?).await?;
    let Query(query) = query.map_err(|_rejected| {
        invalid_params("the query takes `after` and `limit`, both numbers, and `text`")
    })?;
    let limit = query.limit.unwrap_or(MAX_EVENT_PAGE_SIZE);
    if !(1..=MAX_EVENT_PAGE_SIZE).contains(&limit) {
        return Err(invalid_params("`limit` must be 1 to 1000").into());
    }
    if accepts_event_stream(&headers) {
        // A browser that reconnects repeats the address with the old `after`, so the header is the newer position.
        let header_position = TransportMetadata::from_headers(&headers)?.resume_after;
        let after = header_position.unwrap_or_else(|| query.after.unwrap_or_default().into());
        let channels = parse_channels(query.text.as_deref())?;
        return Ok(stream::response(app.api.clone(), record, &after, &channels));
    }
    let after = query.after.unwrap_or_default();
    let events = app.api.reader.next_events(&record, after, limit).await?;
    let last_event = events.last().map_or(after, |event| event.number);
    let list = EventList {
        after: last_event,
        more: last_event < record.last_event_number,
        state: record.effective_state(),
        attempt_id: record.attempt_id,
        ended: record.outcome.is_some(),
        events,
    };
    Ok(ok_response(&to_json(&list)?))
}
