//! Executions: listed, and called off.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::{AgentId, ExecutionId};
use algonius_actors::model::principal::Right;
use algonius_actors::model::record::Filter;
use axum::extract::{Query, State};
use axum::response::Response;
use serde::Deserialize;

use super::execution_id;
use crate::serve::App;
use crate::serve::answer::{Problem, ok};
use crate::serve::auth::Who;
use crate::serve::segment::Segment;
use crate::serve::status::to_json;
use crate::wire::api::{ExecutionEntry, ExecutionList};

/// Entries on a page when the caller does not say.
const PAGE: u32 = 50;
/// Entries on a page at most.
const LONGEST_PAGE: u32 = 1000;

/// Which executions to list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    agent: Option<String>,
    #[serde(default)]
    unfinished: bool,
    limit: Option<u32>,
    before: Option<String>,
}

/// Executions that the caller may see, newest first.
///
/// # Errors
/// `invalid-params`, or when the ledger could not be read.
pub async fn list(
    State(app): State<App>,
    who: Who,
    query: Result<Query<ListQuery>, axum::extract::rejection::QueryRejection>,
) -> Result<Response, Problem> {
    let caller = who.may(Right::Read, None)?;
    let wrong = |text: &str| Failure::new(Code::InvalidParams, text);
    let Query(query) = query.map_err(|_rejected| {
        wrong("the query takes `agent`, `unfinished`, `limit` and `before`")
    })?;
    let limit = query.limit.unwrap_or(PAGE);
    if !(1..=LONGEST_PAGE).contains(&limit) {
        return Err(wrong("`limit` must be 1 to 1000").into());
    }
    let agent = query.agent.map(AgentId::new).transpose();
    let before = query.before.map(|text| {
        ExecutionId::parse(&text).ok_or_else(|| wrong("`before` must be the id of an execution"))
    });
    let filter = Filter {
        agent: agent.map_err(|error| wrong(&error.to_string()))?,
        unfinished: query.unfinished,
        before: before.transpose()?,
        limit: limit + 1, // One more tells whether there is a next page.
        ..Filter::default()
    };
    let mut records = app.gateway.executions(&caller, filter).await?;
    let more = records.len() > limit as usize;
    records.truncate(limit as usize);
    let next = records.last().filter(|_| more).map(|record| record.id.to_string());
    let mut executions = Vec::with_capacity(records.len());
    for record in &records {
        executions.push(ExecutionEntry::of(record, app.gateway.queued(record).await));
    }
    Ok(ok(&to_json(&ExecutionList { executions, next })?))
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
