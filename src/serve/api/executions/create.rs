//! Creation of executions: new requests and retries.

use std::time::Duration;

use algonius_a2a::json_object::document::parse_document;
use algonius_a2a::v1_json::read;
use algonius_a2a::{OVERRIDES_EXTENSION, PARAMETERS_EXTENSION};
use algonius_actors::api::SubmitReply;
use algonius_actors::decide::access::override_policy;
use algonius_actors::model::access::principal::{Caller, Right};
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::request::Trigger;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::{detail, parse_execution_id};
use crate::serve::AppState;
use crate::serve::a2a::exposure;
use crate::serve::a2a::operations::message;
use crate::serve::a2a::operations::message_details::ForwardedRequestFields;
use crate::serve::a2a::transport_metadata::TransportMetadata;
use crate::serve::api::invalid_params;
use crate::serve::auth::caller::AuthenticatedCaller;
use crate::serve::http::body;
use crate::serve::http::path_param::PathParam;
use crate::serve::http::response::{self, EarlyRefusal, ProblemBody, to_json};
use crate::wire::api::create_execution::{ExecutionRequest, MAX_WAIT_SECONDS, PART_MEMBERS};

/// Creates an execution. Responds with 200 after the end of the execution, or with 202 while it continues.
///
/// # Errors
/// Fails like a message over A2A: in that case the service has recorded nothing.
pub async fn create(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    request: Request,
) -> Result<Response, EarlyRefusal> {
    let metadata = TransportMetadata::from_headers(request.headers())?;
    let execution_request = read_request(&body::read_json_bytes(&app, request).await?)?;
    let agent = app.agents.resolve_id(&execution_request.agent)?;
    let caller = caller.require_right(Right::Run, Some(&agent))?;
    if let Some(spec) = app.agents.get(&agent) {
        app.access_control.rate_limiter.try_acquire(spec).await?;
    }
    let wait_seconds = execution_request.wait;
    let submit_reply = submit(&app, &caller, &agent, (execution_request, metadata)).await?;
    Ok(wait_and_respond(&app, &caller, submit_reply, wait_seconds).await?)
}

/// Retries an execution with the same request.
///
/// # Errors
/// `execution-unknown`, `execution-unfinished`, `not-replayable`, or an error as for a message over A2A.
pub async fn retry(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    PathParam(id): PathParam,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Run, None)?;
    let submit_reply = app.api.requests.retry(&caller, parse_execution_id(&id)?).await?;
    Ok(wait_and_respond(&app, &caller, submit_reply, 0).await?)
}

fn read_request(bytes: &[u8]) -> Result<ExecutionRequest, Failure> {
    let hint = "the body must be an object with `agent`, and with `text` or `parts`";
    let document = Some(parse_document(bytes)?).filter(Value::is_object);
    let execution_request: ExecutionRequest = document
        .and_then(|document| serde_json::from_value(document).ok())
        .ok_or_else(|| invalid_params(hint))?;
    if execution_request.wait > MAX_WAIT_SECONDS {
        return Err(invalid_params("`wait` must be 0 to 3600 seconds"));
    }
    if execution_request.idempotency_key.as_ref().is_some_and(|key| key.trim().is_empty()) {
        return Err(invalid_params("`idempotencyKey` must not be empty")); // As the header must not.
    }
    Ok(execution_request)
}

async fn submit(
    app: &AppState,
    caller: &Caller,
    agent: &AgentId,
    (execution_request, metadata): (ExecutionRequest, TransportMetadata),
) -> Result<SubmitReply, Failure> {
    let idempotency_key =
        execution_request.idempotency_key.clone().or_else(|| metadata.idempotency_key.clone());
    let is_probe = execution_request.probe;
    // The request takes the path of a message of 1.0, so that both have the same checks and the same defaults.
    let message =
        read::send_request(json!({ "message": message_json(execution_request)? }))?.message;
    if let Some(spec) = app.agents.get(agent) {
        exposure::check_media_types(spec, &message.parts)?;
    }
    let metadata = TransportMetadata { idempotency_key, ..metadata };
    let message_and_fields = (message, ForwardedRequestFields::default(), metadata);
    let mut request = message::build_request(caller, agent, message_and_fields, None)?;
    if let Some(spec) = app.agents.get(agent) {
        override_policy::check_params(&spec.override_policy, request.input.params.keys())?;
    }
    if is_probe {
        request.origin.trigger = Trigger::Probe;
    }
    app.api.requests.submit(caller, request).await
}

/// Converts a request for an execution into an A2A message.
fn message_json(execution_request: ExecutionRequest) -> Result<Value, Failure> {
    let parts = match (execution_request.text, execution_request.parts) {
        (Some(text), None) => json!([{ "text": text }]),
        (None, Some(parts)) => {
            check_part_members(&parts)?;
            parts
        }
        _ => return Err(invalid_params("the request must have either `text` or `parts`")),
    };
    let metadata = [
        (PARAMETERS_EXTENSION, execution_request.parameters),
        (OVERRIDES_EXTENSION, execution_request.overrides),
    ];
    let metadata = metadata.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let mut message = json!({
        "role": "ROLE_USER",
        "messageId": execution_request.message_id.unwrap_or_else(|| Uuid::new_v4().to_string()),
        "parts": parts,
        "metadata": Value::Object(metadata.collect::<Map<_, _>>()),
    });
    if let (Some(context), Value::Object(message)) = (execution_request.context_id, &mut message) {
        message.insert("contextId".to_owned(), context.into());
    }
    Ok(message)
}

/// Refuses a member of a part that has no meaning, as every other one of the request. A2A itself ignores such members.
fn check_part_members(parts: &Value) -> Result<(), Failure> {
    let parts = parts.as_array().into_iter().flatten().map(Value::as_object);
    for (index, part) in parts.enumerate() {
        let mut names = part.into_iter().flat_map(Map::keys);
        if names.any(|name| !PART_MEMBERS.contains(&name.as_str())) {
            let names = PART_MEMBERS.map(|name| format!("`{name}`")).join(", ");
            let message = format!("`parts[{index}]` may have only {names}");
            return Err(Failure::new(Code::InvalidParams, message));
        }
    }
    Ok(())
}

/// Waits up to `wait_seconds` for the end and returns the state of the execution.
async fn wait_and_respond(
    app: &AppState,
    caller: &Caller,
    submit_reply: SubmitReply,
    wait_seconds: u64,
) -> Result<Response, Failure> {
    let record = app.api.reader.execution(caller, submit_reply.execution).await?;
    if wait_seconds > 0 {
        let end_or_question = app.api.requests.wait_for_end_or_question(
            &record.agent,
            record.id,
            submit_reply.progress_receiver,
        );
        // After the waiting time the caller receives the current state.
        if let Ok(wait_result) =
            tokio::time::timeout(Duration::from_secs(wait_seconds), end_or_question).await
        {
            wait_result?;
        }
    }
    // The record above is older than the wait.
    let record = app.api.reader.reread(&record).await?;
    let status = if record.outcome.is_some() { StatusCode::OK } else { StatusCode::ACCEPTED };
    let detail = to_json(&detail::read_detail(&app.api, &record).await?)?;
    Ok(response::streaming_json_response("application/json", status, detail).into_response())
}
