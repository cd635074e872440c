//! Executions: listed, and called off.

use algonius_actors::model::principal::Right;
use algonius_actors::model::record::Filter;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::execution_id;
use super::query::{self, Asked, LONGEST_PAGE, wrong};
use crate::serve::App;
use crate::serve::answer::{Problem, ok};
use crate::serve::auth::Who;
use crate::serve::segment::Segment;
use crate::serve::status::to_json;
use crate::wire::api::{ExecutionEntry, ExecutionList};

/// Entries on a page when the caller does not say.
const PAGE: u32 = 50;

/// Executions that the caller may see, newest first.
///
/// # Errors
/// `invalid-params`, `forbidden`, or when the ledger could not be read.
pub async fn list(State(app): State<App>, who: Who, asked: Asked) -> Result<Response, Problem> {
    let caller = who.may(Right::Read, None)?;
    let query = query::read(asked)?;
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=LONGEST_PAGE).contains(&limit) {
        return Err(wrong("`limit` must be 1 to 1000").into());
    }
    // One more tells whether there is a next page.
    let filter = Filter { limit: limit + 1, ..query.filter(&caller, app.gateway.now())? };
    let mut records = app.gateway.executions(&caller, filter).await?;
    let more = records.len() > limit as usize;
    records.truncate(limit as usize);
    let next = records.last().filter(|_| more).map(|record| query::cursor(record.id));
    let mut executions = Vec::with_capacity(records.len());
    for record in &records {
        executions.push(ExecutionEntry::of(record, app.gateway.queued(record).await));
    }
    Ok(ok(&to_json(&ExecutionList { executions, next })?))
}

/// Removes an execution that has ended, with all that belongs to it.
///
/// # Errors
/// `execution-unknown` or `execution-unfinished`.
pub async fn remove(
    State(app): State<App>,
    who: Who,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let caller = who.may(Right::Run, None)?;
    app.gateway.remove(&caller, execution_id(&id)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Calls an execution off and answers when it has ended.
///
/// # Errors
/// `execution-unknown` or `execution-ended`.
pub async fn cancel(
    State(app): State<App>,
    who: Who,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let caller = who.may(Right::Run, None)?;
    let (record, progress) = app.gateway.cancel(&caller, execution_id(&id)?).await?;
    app.gateway.ended(&record, progress).await;
    let record = app.gateway.execution(&caller, record.id).await?;
    Ok(ok(&to_json(&ExecutionEntry::from(&record))?))
}
