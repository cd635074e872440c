//! A2A 0.3 over JSON-RPC: `POST /agents/<id>/v1`.

use algonius_actors::model::code::Code;
use algonius_actors::model::exposure::{Binding, Operation, Version};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::principal::{Caller, Right};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value;

use super::auth::Who;
use super::segment::Segment;
use super::{App, a2a, answer, body, exposure};
use crate::wire::a2a::v0_3;
use crate::wire::jsonrpc::{Call, Id, failure, parse, success};
use crate::wire::problem;

/// Answers one call. Authentication comes before anything else of the request is looked at.
pub async fn call(
    State(app): State<App>,
    who: Who,
    Segment(agent): Segment,
    request: Request,
) -> Response {
    let bytes = match body::json(&app, request).await {
        Ok(bytes) => bytes,
        Err(refusal) => return refused(Id::NULL, &refusal, answer::status(refusal.code)),
    };
    let Call { id, method, params } = match parse(&bytes) {
        Ok(call) => call,
        Err(refusal) => return refused(refusal.id, &refusal.failure, StatusCode::OK),
    };
    match dispatch(&app, who, &agent, &method, params).await {
        Ok(result) => answer::ok(&success(id, result)),
        Err(refusal) if problem::is_unavailable(refusal.code) => {
            refused(id, &refusal, StatusCode::SERVICE_UNAVAILABLE)
        }
        Err(refusal) => refused(id, &refusal, StatusCode::OK),
    }
}

fn refused(id: Id, refusal: &Failure, status: StatusCode) -> Response {
    let body = failure(id, refusal);
    answer::with_failure(answer::json("application/json", status, &body), refusal)
}

async fn dispatch(
    app: &App,
    who: Who,
    agent: &str,
    method: &str,
    params: Value,
) -> Result<Value, Failure> {
    let agent = known(app, agent)?;
    if let (Some(spec), Some(operation)) = (app.agents.get(&agent), operation(method)) {
        exposure::check(spec, Version::V0_3, Binding::JsonRpc, operation)?;
    }
    match method {
        "message/send" => {
            let caller = who.may(Right::Run, Some(&agent))?;
            let request = v0_3::send_request(params)?;
            a2a::send(app, &caller, &agent, request).await.and_then(v0_3::reply)
        }
        "tasks/get" => {
            let caller = who.may(Right::Read, Some(&agent))?;
            let query = v0_3::task_query(params)?;
            a2a::get(app, &caller, &agent, query).await.and_then(v0_3::task)
        }
        "tasks/cancel" => {
            let caller = who.may(Right::Run, Some(&agent))?;
            cancel(app, &caller, &agent, params).await
        }
        "message/stream" | "tasks/resubscribe" | "agent/getAuthenticatedExtendedCard" => {
            let message = "this agent does not offer this operation yet; see its card";
            Err(Failure::new(Code::Unsupported, message))
        }
        method if method.starts_with("tasks/pushNotificationConfig/") => {
            let message = "this agent does not send push notifications";
            Err(Failure::new(Code::PushUnsupported, message))
        }
        _ => Err(Failure::new(Code::MethodUnknown, "there is no such method in A2A 0.3")),
    }
}

/// What a method asks for.
fn operation(method: &str) -> Option<Operation> {
    match method {
        "message/send" => Some(Operation::Send),
        "message/stream" => Some(Operation::Stream),
        "tasks/get" => Some(Operation::Get),
        "tasks/cancel" => Some(Operation::Cancel),
        "tasks/resubscribe" => Some(Operation::Subscribe),
        "agent/getAuthenticatedExtendedCard" => Some(Operation::ExtendedCard),
        _ if method.starts_with("tasks/pushNotificationConfig/") => Some(Operation::Push),
        _ => None,
    }
}

async fn cancel(
    app: &App,
    caller: &Caller,
    agent: &AgentId,
    params: Value,
) -> Result<Value, Failure> {
    let query = v0_3::task_query(params)?;
    a2a::cancel(app, caller, agent, &query.id).await.and_then(v0_3::task)
}

/// The id of a configured agent.
///
/// # Errors
/// `agent-unknown`.
pub fn known(app: &App, agent: &str) -> Result<AgentId, Failure> {
    let id = AgentId::new(agent).ok().filter(|id| app.agents.contains_key(id));
    id.ok_or_else(|| Failure::new(Code::AgentUnknown, "there is no such agent"))
}
