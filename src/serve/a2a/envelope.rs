//! Envelope of older clients on `message:send`: the request is processed like any message and answered with an
//! envelope.

use algonius_a2a::problem;
use algonius_actors::model::access::endpoint_config::{
    Binding, ProtocolOperation, ProtocolVersion,
};
use algonius_actors::model::access::principal::Right;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use axum::http::StatusCode;
use axum::response::Response;
use serde_json::Value;
use uuid::Uuid;

use super::dispatch::RequestDialect;
use super::operations::{self, SentMessage};
use super::transport_metadata::TransportMetadata;
use super::{card, exposure, version};
use crate::serve::AppState;
use crate::serve::auth::caller::AuthenticatedCaller;
use crate::serve::http::response::{self, to_json};
use crate::wire::envelope::{Envelope, EnvelopeCall, unreadable_envelope_response};

/// Answers a request whose body is an envelope.
pub(super) async fn respond(
    app: &AppState,
    caller: AuthenticatedCaller,
    agent: &AgentId,
    (body, metadata): (Value, TransportMetadata),
) -> Response {
    let (response_id, now) = (Uuid::new_v4().to_string(), || app.api.reader.now());
    let envelope = match Envelope::read(body) {
        Ok(envelope) => envelope,
        Err(failure) => {
            return error_response(
                &failure,
                &unreadable_envelope_response(&response_id, now(), &failure),
            );
        }
    };
    match dispatch_call(app, caller, agent, &envelope, metadata).await {
        Ok(result) => response::ok_response(&envelope.response(&response_id, now(), result)),
        Err(failure) => {
            error_response(&failure, &envelope.error_response(&response_id, now(), &failure))
        }
    }
}

async fn dispatch_call(
    app: &AppState,
    caller: AuthenticatedCaller,
    agent: &AgentId,
    envelope: &Envelope,
    metadata: TransportMetadata,
) -> Result<Value, Failure> {
    let version = version::parse_version(envelope.version())?;
    // The address decides which agent is called and which rights count, so a body must not name another one.
    if envelope.recipient.as_deref().is_some_and(|to| to != agent.as_str()) {
        let message = "`context.to` names another agent than the address";
        return Err(Failure::new(Code::InvalidParams, message));
    }
    let dialect = match version {
        ProtocolVersion::V0_3 => RequestDialect::Rpc0_3,
        ProtocolVersion::V1_0 => RequestDialect::V1_0,
    };
    let call = envelope.requested_call()?;
    let (operation, right) = match &call {
        EnvelopeCall::Execute(_) => (ProtocolOperation::Send, Right::Run),
        EnvelopeCall::Status | EnvelopeCall::Capabilities => (ProtocolOperation::Get, Right::Read),
    };
    if let Some(spec) = app.agents.get(agent) {
        exposure::check_operation(spec, version, Binding::HttpJson, operation)?;
    }
    let caller = caller.require_right(right, Some(agent))?;
    match call {
        EnvelopeCall::Execute(send) => {
            let sent_message = SentMessage { version, metadata, request: *send };
            operations::send(app, &caller, agent, sent_message)
                .await
                .map(|reply| dialect.write_reply(reply))
        }
        EnvelopeCall::Capabilities => card::card_json(app, agent, version, metadata.host.as_ref()),
        EnvelopeCall::Status => to_json(&app.agent_status(agent).await?),
    }
}

fn error_response(failure: &Failure, body: &Value) -> Response {
    let status = StatusCode::from_u16(problem::wire_codes(failure.code).http);
    let status = status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response::add_failure_headers(
        response::json_response("application/json", status, body),
        failure,
    )
}
