//! Steps of a cognitive agent's run.

use algonius_actors::api::Api;
use algonius_actors::model::access::principal::Right;
use algonius_actors::model::execution::event::{Event, EventKind, TextRange};
use algonius_actors::model::execution::record::ExecutionRecord;
use algonius_actors::model::execution::step::{StepErrorCause, StepRecord, StepType};
use algonius_actors::model::failure::Failure;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use super::parse_execution_id;
use crate::serve::AppState;
use crate::serve::api::invalid_params;
use crate::serve::auth::caller::AuthenticatedCaller;
use crate::serve::http::path_param::PathParam;
use crate::serve::http::response::{ProblemBody, ok_response, to_json};
use crate::wire::api::steps::{CallState, StepEntry, StepList};

/// Default and maximum number of steps of a page.
const MAX_STEP_PAGE_SIZE: u32 = 100;
/// Maximum number of bytes of a step's text.
const MAX_STEP_TEXT_BYTES: u64 = 64 << 10;

/// Requested page of steps.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StepQuery {
    /// Number of the step after which the page starts; by default the page starts with the first step.
    #[serde(default)]
    #[schemars(range(max = u32::MAX))]
    after: u32,
    /// Maximum number of steps; by default 100.
    #[schemars(range(min = 1, max = MAX_STEP_PAGE_SIZE))]
    limit: Option<u32>,
}

/// Lists the steps of an execution, in order.
///
/// # Errors
/// `invalid-params`, `execution-unknown`; fails also if the ledger cannot be read.
pub async fn list(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    PathParam(id): PathParam,
    query: Result<Query<StepQuery>, QueryRejection>,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Read, None)?;
    let record = app.api.reader.execution(&caller, parse_execution_id(&id)?).await?;
    let Query(query) =
        query.map_err(|_rejected| invalid_params("the query takes `after` and `limit`"))?;
    let limit = query.limit.unwrap_or(MAX_STEP_PAGE_SIZE);
    if !(1..=MAX_STEP_PAGE_SIZE).contains(&limit) {
        return Err(invalid_params("`limit` must be 1 to 100").into());
    }
    Ok(ok_response(&to_json(&step_list(&app.api, &record, (query.after, limit)).await?)?))
}

async fn step_list(
    api: &Api,
    record: &ExecutionRecord,
    (after, limit): (u32, u32),
) -> Result<StepList, Failure> {
    let mut entries = Vec::new();
    for Event { at, data, .. } in api.reader.events(record, 0).await? {
        let EventKind::RunStep { row, text } = data else { continue };
        let state = (row.step_type == StepType::ToolCall).then_some(CallState::Started);
        let (text, range, redacted) = (String::new(), text.text, text.redacted);
        set_call_state(&mut entries, &row);
        entries.push(StepEntry { row, at, state, text, range, redacted });
    }
    entries.retain(|entry| entry.row.number > after);
    let has_more = entries.len() > limit as usize;
    entries.truncate(limit as usize);
    for entry in &mut entries {
        let to = entry.range.to.min(entry.range.from + MAX_STEP_TEXT_BYTES);
        let range = TextRange { to, ..entry.range };
        entry.text = api.reader.text_slice(record, range).await?.text;
    }
    let next = entries.last().filter(|_| has_more).map(|entry| entry.row.number);
    Ok(StepList { steps: entries, next })
}

/// Sets the state of the call that a step ends.
fn set_call_state(entries: &mut [StepEntry], ending_step: &StepRecord) {
    let call = entries.iter_mut().find(|entry| Some(entry.row.number) == ending_step.call);
    let is_unknown = ending_step.cause == Some(StepErrorCause::Interrupted);
    if let Some(call) = call {
        call.state = Some(if is_unknown { CallState::Unknown } else { CallState::Done });
    }
}
