//! The envelope of older clients, on `message:send`: read, done as any message, answered in kind.

use algonius_actors::model::code::Code;
use algonius_actors::model::exposure::{Binding, Operation, Version};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::principal::Right;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value;
use uuid::Uuid;

use super::a2a::Sending;
use super::auth::Who;
use super::beside::Beside;
use super::perform::Dialect;
use super::{App, a2a, answer, card, exposure, status, version};
use crate::wire::envelope::{Call, Envelope, refusal};
use crate::wire::problem;

/// Answers a body that is an envelope.
pub(super) async fn answer(
    app: &App,
    who: Who,
    agent: &AgentId,
    (body, beside): (Value, Beside),
) -> Response {
    let (id, now) = (Uuid::new_v4().to_string(), || app.gateway.now());
    let envelope = match Envelope::read(body) {
        Ok(envelope) => envelope,
        Err(failure) => return refused(&failure, &refusal(&id, now(), &failure)),
    };
    match done(app, who, agent, &envelope, beside).await {
        Ok(result) => answer::ok(&envelope.response(&id, now(), result)),
        Err(failure) => refused(&failure, &envelope.error(&id, now(), &failure)),
    }
}

async fn done(
    app: &App,
    who: Who,
    agent: &AgentId,
    envelope: &Envelope,
    beside: Beside,
) -> Result<Value, Failure> {
    let version = version::named(envelope.version())?;
    if envelope.to.as_deref().is_some_and(|to| to != agent.as_str()) {
        let message = "`context.to` names another agent than the address";
        return Err(Failure::new(Code::InvalidParams, message));
    }
    let dialect = match version {
        Version::V0_3 => Dialect::Rpc0_3,
        Version::V1_0 => Dialect::V1_0,
    };
    let call = envelope.call()?;
    let (operation, right) = match &call {
        Call::Execute(_) => (Operation::Send, Right::Run),
        Call::Status | Call::Capabilities => (Operation::Get, Right::Read),
    };
    if let Some(spec) = app.agents.get(agent) {
        exposure::check(spec, version, Binding::HttpJson, operation)?;
    }
    let caller = who.may(right, Some(agent))?;
    match call {
        Call::Execute(send) => {
            let sending = Sending { version, beside, send: *send };
            a2a::send(app, &caller, agent, sending).await.map(|reply| dialect.reply(reply))
        }
        Call::Capabilities => card::shown(app, agent, version),
        Call::Status => status::of(app, agent).await,
    }
}

fn refused(failure: &Failure, body: &Value) -> Response {
    let status = StatusCode::from_u16(problem::numbers(failure.code).http);
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    answer::with_failure(answer::json("application/json", status, body), failure)
}
