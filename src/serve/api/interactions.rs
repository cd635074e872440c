//! Questions of agents: list, answers, and the permission decisions.

use algonius_actors::api::CallerAnswer;
use algonius_actors::model::access::principal::Right;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::{AgentId, ExecutionId};
use algonius_actors::model::interaction::{InteractionFilter, InteractionId, InteractionState};
use algonius_actors::model::permission::DecisionFilter;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::response::Response;
use schemars::JsonSchema;
use serde::Deserialize;

use super::{invalid_params, read_json_body};
use crate::serve::AppState;
use crate::serve::auth::caller::AuthenticatedCaller;
use crate::serve::http::path_param::PathParam;
use crate::serve::http::response::{ProblemBody, ok_response, to_json};
use crate::wire::api::interactions::{
    AnswerRequest, DecisionEntry, DecisionList, InteractionEntry, InteractionList,
};

/// Number of entries on a page if the caller requests none.
const DEFAULT_PAGE_SIZE: u32 = 50;

/// Maximum number of entries on a page.
const MAX_PAGE_SIZE: u32 = 1000;

/// Filter of interactions.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct InteractionQuery {
    /// State of the interactions; by default all.
    #[schemars(with = "Option<InteractionState>")]
    state: Option<String>,
    /// Id of the execution.
    #[schemars(with = "Option<ExecutionId>")]
    execution: Option<String>,
    /// Maximum number of interactions; by default 50.
    #[schemars(range(min = 1, max = MAX_PAGE_SIZE))]
    limit: Option<u32>,
    /// Cursor of the page: the value of `next` of the previous page.
    #[schemars(with = "Option<InteractionId>")]
    cursor: Option<String>,
}

/// Filter of permission decisions.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DecisionQuery {
    /// Id of the agent.
    #[schemars(with = "Option<AgentId>")]
    agent: Option<String>,
    /// Id of the execution.
    #[schemars(with = "Option<ExecutionId>")]
    execution: Option<String>,
    /// Number after which the page begins; by default 0.
    #[schemars(range(max = u64::MAX))]
    after: Option<u64>,
    /// Maximum number of decisions; by default 50.
    #[schemars(range(min = 1, max = MAX_PAGE_SIZE))]
    limit: Option<u32>,
}

/// Lists the interactions that the caller may see, newest first.
///
/// # Errors
/// `invalid-params`, `forbidden`; fails also if the ledger cannot be read.
pub async fn list(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    query: Result<Query<InteractionQuery>, QueryRejection>,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Read, None)?;
    let hint = "the query takes `state`, `execution`, `limit` (1 to 1000) and `cursor`";
    let query = query.map(|Query(query)| query).map_err(|_rejected| invalid_params(hint))?;
    let limit = page_size(query.limit).ok_or_else(|| invalid_params(hint))?;
    let state = parse_optional(query.state.as_deref(), InteractionState::parse);
    let execution = parse_optional(query.execution.as_deref(), ExecutionId::parse);
    let before = parse_optional(query.cursor.as_deref(), InteractionId::parse);
    let (Some(state), Some(execution), Some(before)) = (state, execution, before) else {
        return Err(invalid_params(hint).into());
    };
    let filter = InteractionFilter {
        state,
        execution,
        before_id: before,
        // One more entry than requested shows whether there is a next page.
        limit: limit + 1,
        ..InteractionFilter::default()
    };
    let mut interactions = app.api.interactions.interactions(&caller, filter).await?;
    let has_more = interactions.len() > limit as usize;
    interactions.truncate(limit as usize);
    let next = interactions.last().filter(|_| has_more).map(|interaction| interaction.id);
    let interactions = interactions.into_iter().map(InteractionEntry::from).collect();
    Ok(ok_response(&to_json(&InteractionList { interactions, next })?))
}

/// Returns one interaction.
///
/// # Errors
/// `interaction-unknown`, `forbidden`.
pub async fn show(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    PathParam(id): PathParam,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Read, None)?;
    let interaction = app.api.interactions.interaction(&caller, parse_interaction_id(&id)?).await?;
    Ok(ok_response(&to_json(&InteractionEntry::from(interaction))?))
}

/// Answers an interaction. The response follows after the answer is recorded.
///
/// # Errors
/// `interaction-unknown`, `interaction-closed`, `interaction-changed`, `answer-invalid`, `forbidden`.
pub async fn answer(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    PathParam(id): PathParam,
    request: Request,
) -> Result<Response, ProblemBody> {
    // A caller that may see the interaction learns why the answer is refused. For others it does not exist.
    let caller = caller.require_right(Right::Read, None)?;
    let id = parse_interaction_id(&id)?;
    let body: AnswerRequest = read_json_body(&app, request).await?;
    let Some(value) = body.answer_value() else {
        let message = "the body needs exactly one of `verdict` (allow or deny), `option`, `text`, `values` and \
                        `decline`; `reason` goes with the verdict deny only";
        return Err(Failure::new(Code::AnswerInvalid, message).into());
    };
    let answer = CallerAnswer { value, digest: body.digest, channel: "api", message_id: None };
    let reply = app.api.interactions.answer(&caller, id, answer).await?;
    Ok(ok_response(&to_json(&InteractionEntry::from(reply.interaction))?))
}

/// Lists the permission decisions, oldest first.
///
/// # Errors
/// `invalid-params`, `forbidden`.
pub async fn decisions(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    query: Result<Query<DecisionQuery>, QueryRejection>,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Admin, None)?;
    let hint = "the query takes `agent`, `execution`, `after` and `limit` (1 to 1000)";
    let query = query.map(|Query(query)| query).map_err(|_rejected| invalid_params(hint))?;
    let limit = page_size(query.limit).ok_or_else(|| invalid_params(hint))?;
    let agent = parse_optional(query.agent.as_deref(), |id| AgentId::new(id).ok());
    let execution = parse_optional(query.execution.as_deref(), ExecutionId::parse);
    let (Some(agent), Some(execution)) = (agent, execution) else {
        return Err(invalid_params(hint).into());
    };
    let after = query.after.unwrap_or_default();
    let filter = DecisionFilter { agent, execution, after, limit: limit + 1 };
    let mut decisions = app.api.interactions.permission_decisions(&caller, filter).await?;
    let has_more = decisions.len() > limit as usize;
    decisions.truncate(limit as usize);
    let next = decisions.last().filter(|_| has_more).map(|(number, _)| *number);
    let decisions = decisions.into_iter().map(DecisionEntry::from).collect();
    Ok(ok_response(&to_json(&DecisionList { decisions, next })?))
}

fn page_size(requested: Option<u32>) -> Option<u32> {
    let limit = requested.unwrap_or(DEFAULT_PAGE_SIZE);
    (1..=MAX_PAGE_SIZE).contains(&limit).then_some(limit)
}

/// Parses an optional parameter; `None` if it is present and invalid.
fn parse_optional<T>(value: Option<&str>, parse: impl Fn(&str) -> Option<T>) -> Option<Option<T>> {
    match value {
        None => Some(None),
        Some(text) => parse(text).map(Some),
    }
}

fn parse_interaction_id(id: &str) -> Result<InteractionId, Failure> {
    let unknown = || Failure::new(Code::InteractionUnknown, "there is no such interaction");
    InteractionId::parse(id).ok_or_else(unknown)
}
