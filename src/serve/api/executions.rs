//! List, removal and cancellation of executions.

mod attempts;
pub mod create;
pub mod detail;
pub mod events_and_texts;
pub mod export;
mod ndjson;
pub mod query;
pub mod steps;
mod stream;
pub mod tree;

use algonius_actors::api::Api;
use algonius_actors::model::access::principal::Right;
use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::execution::event::{TextChannel, TextRange};
use algonius_actors::model::execution::record::{ExecutionFilter, ExecutionRecord};
use algonius_actors::model::failure::Failure;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use algonius_actors::model::code::Code;
use algonius_actors::model::id::ExecutionId;

use super::invalid_params;
use crate::serve::AppState;
use crate::serve::auth::caller::AuthenticatedCaller;
use crate::serve::http::path_param::PathParam;
use crate::serve::http::response::{ProblemBody, ok_response, to_json};
use crate::wire::api::{ExecutionEntry, ExecutionList, RequestSummary};
use query::{ExtractedListQuery, MAX_PAGE_SIZE};

/// Number of entries on a page if the caller requests none.
const DEFAULT_PAGE_SIZE: u32 = 50;

/// Lists the executions that the caller may see, newest first.
///
/// # Errors
/// `invalid-params`, `forbidden`; fails also if the ledger cannot be read.
pub async fn list(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    parameters: ExtractedListQuery,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Read, None)?;
    let query = query::parse_list_query(parameters)?;
    let limit = query.limit.unwrap_or(DEFAULT_PAGE_SIZE);
    if !(1..=MAX_PAGE_SIZE).contains(&limit) {
        return Err(invalid_params("`limit` must be 1 to 1000").into());
    }
    // One more entry than requested shows whether there is a next page.
    let filter = ExecutionFilter {
        limit: limit + 1,
        ..query.execution_filter(&caller, app.api.reader.now())?
    };
    let mut records = app.api.reader.executions(&caller, filter).await?;
    let has_more = records.len() > limit as usize;
    records.truncate(limit as usize);
    let next = records.last().filter(|_| has_more).map(|record| query::encode_cursor(record.id));
    // The names of all callers are read once, not for each entry.
    let caller_names =
        if query.summary { Some(app.api.reader.principal_names().await?) } else { None };
    let mut executions = Vec::with_capacity(records.len());
    for record in &records {
        let mut entry =
            ExecutionEntry::from_record(record, app.api.reader.queue_position(record).await);
        if let Some(callers) = &caller_names {
            let request = input_summary(&app.api, record).await?;
            entry.summary =
                Some(RequestSummary { caller: callers.get(&record.owner).cloned(), request });
        }
        executions.push(entry);
    }
    Ok(ok_response(&to_json(&ExecutionList { executions, next })?))
}

/// Maximum number of bytes read from a request, followed by the maximum number of characters shown.
const MAX_SUMMARY_BYTES: u64 = 512;
const MAX_SUMMARY_CHARS: usize = 120;

/// Returns the first nonblank line of a request, shortened.
async fn input_summary(api: &Api, record: &ExecutionRecord) -> Result<String, Failure> {
    let range = TextRange {
        attempt_id: AttemptId::FIRST,
        channel: TextChannel::Input,
        from: 0,
        to: MAX_SUMMARY_BYTES,
    };
    let text = api.reader.text_slice(record, range).await?.text;
    let line = text.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or_default();
    if line.chars().count() <= MAX_SUMMARY_CHARS {
        return Ok(line.to_owned());
    }
    Ok(line.chars().take(MAX_SUMMARY_CHARS - 1).chain(['…']).collect())
}

/// Removes an ended execution with all its data.
///
/// # Errors
/// `execution-unknown` or `execution-unfinished`.
pub async fn remove(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    PathParam(id): PathParam,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Run, None)?;
    app.api.requests.remove(&caller, parse_execution_id(&id)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Cancels an execution and responds after its end.
///
/// # Errors
/// `execution-unknown`, `execution-ended`, or `ledger-unavailable` when its end cannot be recorded.
pub async fn cancel(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    PathParam(id): PathParam,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Run, None)?;
    let (record, progress) = app.api.requests.cancel(&caller, parse_execution_id(&id)?).await?;
    app.api.requests.wait_until_ended(&record, progress).await?;
    let record = app.api.reader.execution(&caller, record.id).await?;
    Ok(ok_response(&to_json(&ExecutionEntry::from(&record))?))
}

/// Parses the id of an execution from a path.
fn parse_execution_id(id: &str) -> Result<ExecutionId, Failure> {
    ExecutionId::parse(id)
        .ok_or_else(|| Failure::new(Code::ExecutionUnknown, "there is no such execution"))
}
