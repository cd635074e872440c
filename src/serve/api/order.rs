//! A new execution: asked for, or an old one asked once more.

use std::time::Duration;

use algonius_actors::door::Ticket;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::principal::{Caller, Right};
use algonius_actors::model::request::{Request as Asked, Trigger};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde_json::{Map, Value, json};
use uuid::Uuid;

use super::query::wrong;
use super::{detail, execution_id};
use crate::serve::answer::{self, Problem, Refused};
use crate::serve::auth::Who;
use crate::serve::beside::Beside;
use crate::serve::segment::Segment;
use crate::serve::status::to_json;
use crate::serve::{App, body, exposure, jsonrpc, message};
use crate::wire::a2a::v1::json::read;
use crate::wire::a2a::{OVERRIDES, PARAMETERS};
use crate::wire::api::order::{ExecutionOrder, LONGEST_WAIT};

/// Asks an agent. Answers 200 with what became of it, or 202 while it goes on.
///
/// # Errors
/// As a message by A2A: then nothing was recorded.
pub async fn ask(State(app): State<App>, who: Who, request: Request) -> Result<Response, Refused> {
    let beside = Beside::of(request.headers())?;
    let order = read_order(&body::json(&app, request).await?)?;
    let agent = jsonrpc::known(&app, &order.agent)?;
    let caller = who.may(Right::Run, Some(&agent))?;
    if let Some(spec) = app.agents.get(&agent) {
        app.rates.count(spec).await?;
    }
    let wait = order.wait;
    let ticket = submit(&app, &caller, &agent, (order, beside)).await?;
    Ok(told(&app, &caller, ticket, wait).await?)
}

/// Asks once more what an execution was asked.
///
/// # Errors
/// `execution-unknown`, `execution-unfinished`, `not-replayable`, or as a message by A2A.
pub async fn retry(
    State(app): State<App>,
    who: Who,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let caller = who.may(Right::Run, None)?;
    let ticket = app.gateway.retry(&caller, execution_id(&id)?).await?;
    Ok(told(&app, &caller, ticket, 0).await?)
}

fn read_order(bytes: &[u8]) -> Result<ExecutionOrder, Failure> {
    let order: ExecutionOrder = serde_json::from_slice(bytes).map_err(|error| {
        let code = if error.is_data() { Code::InvalidParams } else { Code::MalformedJson };
        Failure::new(code, "the body must be an object with `agent`, and with `text` or `parts`")
    })?;
    if order.wait > LONGEST_WAIT {
        return Err(wrong("`wait` must be 0 to 3600 seconds"));
    }
    if order.idempotency_key.as_ref().is_some_and(|key| key.trim().is_empty()) {
        return Err(wrong("`idempotencyKey` must not be empty")); // As the header must not.
    }
    Ok(order)
}

async fn submit(
    app: &App,
    caller: &Caller,
    agent: &AgentId,
    (order, beside): (ExecutionOrder, Beside),
) -> Result<Ticket, Failure> {
    let idempotency = order.idempotency_key.clone().or_else(|| beside.idempotency.clone());
    let probe = order.probe;
    let message = read::send(json!({ "message": said(order)? }))?.message;
    if let Some(spec) = app.agents.get(agent) {
        exposure::reads(spec, &message.parts)?;
    }
    let beside = Beside { idempotency, ..beside };
    let request = message::request(caller, agent, (message, beside), None)?;
    let trigger = if probe { Trigger::Probe } else { request.trigger.clone() };
    app.gateway.submit(caller, Asked { trigger, ..request }).await
}

/// The message that an order is.
fn said(order: ExecutionOrder) -> Result<Value, Failure> {
    let parts = match (order.text, order.parts) {
        (Some(text), None) => json!([{ "text": text }]),
        (None, Some(parts)) => parts,
        _ => return Err(wrong("either `text` or `parts` says what is asked")),
    };
    let beside = [(PARAMETERS, order.parameters), (OVERRIDES, order.overrides)];
    let beside = beside.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    let mut message = json!({
        "role": "ROLE_USER",
        "messageId": order.message_id.unwrap_or_else(|| Uuid::new_v4().to_string()),
        "parts": parts,
        "metadata": Value::Object(beside.collect::<Map<_, _>>()),
    });
    if let (Some(context), Value::Object(message)) = (order.context_id, &mut message) {
        message.insert("contextId".to_owned(), context.into());
    }
    Ok(message)
}

/// Waits for the end, and tells how far it is.
async fn told(app: &App, caller: &Caller, ticket: Ticket, wait: u64) -> Result<Response, Failure> {
    let record = app.gateway.execution(caller, ticket.execution).await?;
    if wait > 0 {
        let rest = app.gateway.settled(&record.agent, record.id, ticket.progress);
        // Who has waited for long enough is told how far it is.
        _ = tokio::time::timeout(Duration::from_secs(wait), rest).await;
    }
    let record = app.gateway.reread(&record).await?;
    let status = if record.outcome.is_some() { StatusCode::OK } else { StatusCode::ACCEPTED };
    let detail = to_json(&detail::of(&app.gateway, &record).await?)?;
    Ok(answer::long("application/json", status, detail).into_response())
}
