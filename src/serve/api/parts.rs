//! Texts and events of an execution, in parts.

use algonius_actors::model::event::{Channel, Span};
use algonius_actors::model::execution::Stamp;
use algonius_actors::model::principal::Right;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::HeaderMap;
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use super::detail::entry;
use super::query::wrong;
use super::{execution_id, live};
use crate::serve::App;
use crate::serve::answer::{Problem, ok};
use crate::serve::auth::Who;
use crate::serve::beside::Beside;
use crate::serve::segment::Segment;
use crate::serve::sse::is_read;
use crate::serve::status::to_json;
use crate::wire::api::history::{EventList, TextPart};

/// Bytes of a part of a text when the caller does not say.
const PART: u64 = 64 << 10;
/// Bytes of a part of a text at most.
const LONGEST_PART: u64 = 1 << 20;
/// Events of a part when the caller does not say, which is also the most.
const EVENTS: u32 = 1000;

/// Which part of which text.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextQuery {
    /// Of this turn; the last one where nothing is said.
    #[schemars(range(max = u32::MAX))]
    turn: Option<u32>,
    /// Of this attempt; the last one where nothing is said.
    #[schemars(range(max = u32::MAX))]
    attempt: Option<u32>,
    /// Which text; standard output where nothing is said.
    channel: Option<Channel>,
    /// Its first byte.
    #[serde(default)]
    from: u64,
    /// At most so many bytes; 65536 where nothing is said.
    #[schemars(range(min = 4, max = LONGEST_PART))]
    limit: Option<u64>,
}

/// A part of a text: of the last attempt and of standard output when the caller does not say.
///
/// # Errors
/// `invalid-params`, `execution-unknown`, or when the ledger could not be read.
pub async fn text(
    State(app): State<App>,
    who: Who,
    Segment(id): Segment,
    query: Result<Query<TextQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let caller = who.may(Right::Read, None)?;
    let record = app.gateway.execution(&caller, execution_id(&id)?).await?;
    let known = "the query takes `turn`, `attempt`, `channel`, `from` and `limit`";
    let Query(query) = query.map_err(|_rejected| wrong(known))?;
    let limit = query.limit.unwrap_or(PART);
    if !(4..=LONGEST_PART).contains(&limit) {
        return Err(wrong("`limit` must be 4 to 1048576").into());
    }
    let stamp = Stamp {
        turn: query.turn.unwrap_or(record.stamp.turn),
        attempt: query.attempt.unwrap_or(record.stamp.attempt),
    };
    let channel = query.channel.unwrap_or(Channel::Stdout);
    let (from, to) = (query.from, query.from.saturating_add(limit));
    // The length is read first: what it counts is there.
    let texts = app.gateway.texts(&record).await?;
    let is_it = |text: &&Span| (text.stamp, text.channel) == (stamp, channel);
    let none = Span { stamp, channel, from: 0, to: 0 };
    let of = entry(texts.iter().find(is_it).copied().unwrap_or(none));
    let part = app.gateway.passage(&record, Span { from, to, ..none }).await?;
    Ok(ok(&to_json(&TextPart { of, from: part.from, to: part.to(), text: part.text })?))
}

/// After which event.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct EventQuery {
    /// Those that follow the event of this number; all where nothing is said.
    after: Option<u64>,
    /// At most so many; 1000 where nothing is said.
    #[schemars(range(min = 1, max = EVENTS))]
    limit: Option<u32>,
}

/// Events of an execution: a part of them, or, for who reads event streams, each as it happens, up to
/// the end of the execution.
///
/// # Errors
/// `invalid-params`, `execution-unknown`, or when the ledger could not be read.
pub async fn events(
    State(app): State<App>,
    who: Who,
    Segment(id): Segment,
    headers: HeaderMap,
    query: Result<Query<EventQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let caller = who.may(Right::Read, None)?;
    let record = app.gateway.execution(&caller, execution_id(&id)?).await?;
    let Query(query) =
        query.map_err(|_rejected| wrong("the query takes `after` and `limit`, both numbers"))?;
    let limit = query.limit.unwrap_or(EVENTS);
    if !(1..=EVENTS).contains(&limit) {
        return Err(wrong("`limit` must be 1 to 1000").into());
    }
    let after = Beside::of(&headers)?.after.or(query.after).unwrap_or_default();
    if is_read(&headers) {
        return Ok(live::response(app.gateway.follow(record, after, None).past_questions()));
    }
    let events = app.gateway.some_events(&record, after, limit).await?;
    let last = events.last().map_or(after, |event| event.number);
    let list = EventList {
        after: last,
        more: last < record.last_event,
        state: record.shown(),
        stamp: record.stamp,
        ended: record.outcome.is_some(),
        events,
    };
    Ok(ok(&to_json(&list)?))
}
