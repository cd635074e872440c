//! A2A over JSON-RPC, both versions: `POST /agents/<id>/v1`.

use algonius_actors::model::code::Code;
use algonius_actors::model::exposure::{Binding, Version};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::Response;

use super::auth::Who;
use super::beside::Beside;
use super::perform::{Asked, Dialect, Told, perform};
use super::segment::Segment;
use super::version::{self, Wanted};
use super::{App, answer, body, sse};
use crate::wire::a2a::Method;
use crate::wire::jsonrpc::{Call, Id, Refusal, failure, parse, success};
use crate::wire::problem;

/// Answers one call. Authentication comes before anything else of the request is looked at.
pub async fn call(
    State(app): State<App>,
    who: Who,
    Segment(agent): Segment,
    request: Request,
) -> Response {
    let wanted = version::wanted(&request);
    let beside = Beside::of(request.headers());
    let reads_events = sse::is_read(request.headers());
    let spoken = wanted.as_ref().map_or(Version::V0_3, |wanted| wanted.version());
    // The bytes are let go of as soon as they are read: whoever waits would hold them, and the buffer
    // of the connection that they are a part of.
    let call = match body::json(&app, request).await {
        Ok(bytes) => parse(&bytes),
        Err(refusal) => return refused(Id::NULL, &refusal, spoken, true),
    };
    let Call { id, method, params } = match call {
        Ok(call) => call,
        Err(Refusal { id, failure }) => return refused(id, &failure, spoken, false),
    };
    let (dialect, operation) = match meant(&method, spoken) {
        Ok(meant) => meant,
        Err(refusal) => return refused(id, &refusal, spoken, false),
    };
    let asked = beside.map(|beside| Asked {
        operation,
        dialect,
        binding: Binding::JsonRpc,
        params,
        beside,
    });
    match told(&app, who, &agent, wanted, asked).await {
        Ok(Told::Whole(result)) => {
            answer::long("application/json", StatusCode::OK, success(id, result))
        }
        Ok(Told::Stream(events)) => {
            let (good, bad) = (id.clone(), id);
            let write = move |event| success(good.clone(), dialect.event(event));
            let fail = move |refusal: &Failure| failure(bad.clone(), refusal, dialect.version());
            sse::response(events, write, fail)
        }
        // Clients of 0.3 that asked for events read nothing else; those of 1.0 want an answer.
        Err(refusal) if reads_events && operation.is_streamed() && dialect == Dialect::Rpc0_3 => {
            sse::refusal(&failure(id, &refusal, dialect.version()))
        }
        Err(refusal) => refused(id, &refusal, dialect.version(), false),
    }
}

async fn told(
    app: &App,
    who: Who,
    agent: &str,
    wanted: Result<Wanted, Failure>,
    asked: Result<Asked, Failure>,
) -> Result<Told, Failure> {
    wanted?;
    perform(app, who, &known(app, agent)?, asked?).await
}

/// What a method means. Its name tells the version; a name that neither knows is refused in the
/// version that the caller speaks.
fn meant(method: &str, spoken: Version) -> Result<(Dialect, Method), Failure> {
    if let Some(operation) = Method::of_1_0(method) {
        return Ok((Dialect::V1_0, operation));
    }
    if let Some(operation) = Method::of_0_3(method) {
        return Ok((Dialect::Rpc0_3, operation));
    }
    let message = format!("there is no such method in A2A {}", spoken.as_str());
    Err(Failure::new(Code::MethodUnknown, message))
}

/// A JSON-RPC error. Its HTTP status is 200 but where the body never became a call, or where the
/// service's own state is the cause, so that a proxy in front can do its part.
fn refused(id: Id, refusal: &Failure, version: Version, is_http: bool) -> Response {
    let told_by_status = is_http || problem::is_unavailable(refusal.code);
    let status = if told_by_status { answer::status(refusal.code) } else { StatusCode::OK };
    let body = failure(id, refusal, version);
    answer::with_failure(answer::json("application/json", status, &body), refusal)
}

/// The id of a configured agent.
///
/// # Errors
/// `agent-unknown`.
pub fn known(app: &App, agent: &str) -> Result<AgentId, Failure> {
    let id = AgentId::new(agent).ok().filter(|id| app.agents.contains_key(id));
    id.ok_or_else(|| Failure::new(Code::AgentUnknown, "there is no such agent"))
}
