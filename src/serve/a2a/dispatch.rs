//! Dispatch of operations in JSON, shared by JSON-RPC and HTTP+JSON and by both versions.

use algonius_a2a::A2aMethod;
use algonius_a2a::v0_3::{self, rest};
use algonius_a2a::v1::{
    ListPage, ListRequest, PushConfig, PushConfigQuery, SendRequest, SendResponse, StreamEvent,
    Task, TaskQuery,
};
use algonius_a2a::v1_json as json;
use algonius_actors::model::access::endpoint_config::{
    Binding, ProtocolOperation, ProtocolVersion,
};
use algonius_actors::model::access::principal::{Caller, Right};
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use axum::http::HeaderValue;
use serde_json::Value;

use super::operations::{self, SentMessage, push};
use super::streaming::ResumableEvents;
use super::transport_metadata::TransportMetadata;
use super::{card, exposure};
use crate::serve::AppState;
use crate::serve::auth::caller::AuthenticatedCaller;

/// Dialect in which a request is read and its answer is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RequestDialect {
    /// Dialect of 0.3 over JSON-RPC.
    Rpc0_3,
    /// Dialect of 0.3 over HTTP.
    Rest0_3,
    /// Dialect of 1.0 over JSON-RPC and HTTP.
    V1_0,
}

/// Request to an agent with parameters that are not read yet.
pub struct OperationRequest {
    /// Called method.
    pub a2a_method: A2aMethod,
    /// Dialect of the request.
    pub dialect: RequestDialect,
    /// Protocol binding of the request.
    pub binding: Binding,
    /// Parameters of the request.
    pub params: Value,
    /// Metadata of the request.
    pub metadata: TransportMetadata,
}

/// Response of an operation.
pub enum OperationResponse {
    /// Single answer.
    Complete(Value),
    /// Stream of events, each to be written in the dialect.
    Stream(ResumableEvents),
}

impl RequestDialect {
    /// Returns the protocol version of the dialect.
    #[must_use]
    pub const fn version(self) -> ProtocolVersion {
        match self {
            Self::Rpc0_3 | Self::Rest0_3 => ProtocolVersion::V0_3,
            Self::V1_0 => ProtocolVersion::V1_0,
        }
    }

    /// Writes one event of a stream.
    #[must_use]
    pub fn write_event(self, event: StreamEvent) -> Value {
        match self {
            Self::Rpc0_3 => v0_3::write::event(event),
            Self::Rest0_3 => rest::write::event(event),
            Self::V1_0 => json::write::event(event),
        }
    }

    fn read_send_request(self, params: Value) -> Result<SendRequest, Failure> {
        match self {
            Self::Rpc0_3 => v0_3::read::send_request(params),
            Self::Rest0_3 => rest::read::send_request(params),
            Self::V1_0 => json::read::send_request(params),
        }
    }

    fn read_sent_message(
        self,
        params: Value,
        metadata: TransportMetadata,
    ) -> Result<SentMessage, Failure> {
        Ok(SentMessage {
            version: self.version(),
            metadata,
            request: self.read_send_request(params)?,
        })
    }

    fn read_task_query(self, params: Value) -> Result<TaskQuery, Failure> {
        match self {
            Self::Rpc0_3 => v0_3::read::task_query(params),
            Self::Rest0_3 => rest::read::task_query(params),
            Self::V1_0 => json::read::task_query(params),
        }
    }

    fn read_task_id(self, params: Value) -> Result<String, Failure> {
        match self {
            Self::Rpc0_3 => v0_3::read::cancel_request(params),
            Self::Rest0_3 => rest::read::cancel_request(params),
            Self::V1_0 => json::read::cancel_request(params),
        }
    }

    fn read_list_request(self, params: Value) -> Result<ListRequest, Failure> {
        match self {
            // 0.3 has no method for lists over JSON-RPC, so no call of that dialect arrives here.
            Self::Rpc0_3 | Self::V1_0 => json::read::list_request(params),
            Self::Rest0_3 => rest::read::list_request(params),
        }
    }

    /// Writes the answer to a message.
    #[must_use]
    pub fn write_reply(self, reply: SendResponse) -> Value {
        match self {
            Self::Rpc0_3 => v0_3::write::send_response(reply),
            Self::Rest0_3 => rest::write::send_response(reply),
            Self::V1_0 => json::write::send_response(reply),
        }
    }

    fn write_task(self, task: Task) -> Value {
        match self {
            Self::Rpc0_3 => v0_3::write::task(task),
            Self::Rest0_3 => rest::write::task(task),
            Self::V1_0 => json::write::task(task),
        }
    }

    fn read_push_config(self, params: Value) -> Result<PushConfig, Failure> {
        match self {
            Self::Rpc0_3 => v0_3::read::push_set_request(params),
            Self::Rest0_3 => rest::read::push_set_request(params),
            Self::V1_0 => json::read::push_set_request(params),
        }
    }

    fn read_push_query(self, params: Value) -> Result<PushConfigQuery, Failure> {
        match self {
            Self::Rpc0_3 => v0_3::read::push_query(params),
            Self::Rest0_3 => rest::read::push_query(params),
            Self::V1_0 => json::read::push_query(params),
        }
    }

    fn read_push_list_task_id(self, params: Value) -> Result<String, Failure> {
        match self {
            Self::Rpc0_3 => v0_3::read::push_list_request(params),
            Self::Rest0_3 => rest::read::push_list_request(params),
            Self::V1_0 => json::read::push_list_request(params),
        }
    }

    fn write_push_config(self, config: PushConfig) -> Value {
        match self {
            Self::Rpc0_3 => v0_3::write::push_config(config),
            Self::Rest0_3 => rest::write::push_config(config),
            Self::V1_0 => json::write::push_config(config),
        }
    }

    fn write_push_configs(self, configs: Vec<PushConfig>) -> Value {
        match self {
            Self::Rpc0_3 => v0_3::write::push_configs(configs),
            Self::Rest0_3 => rest::write::push_configs(configs),
            Self::V1_0 => json::write::push_configs(configs),
        }
    }

    fn write_empty_response(self) -> Value {
        match self {
            Self::Rpc0_3 => v0_3::write::empty_response(),
            Self::Rest0_3 => rest::write::empty_response(),
            Self::V1_0 => json::write::empty_response(),
        }
    }

    fn write_page(self, page: ListPage) -> Value {
        match self {
            Self::Rpc0_3 | Self::V1_0 => json::write::page(page),
            Self::Rest0_3 => rest::write::page(page),
        }
    }
}

/// Runs an operation, if the agent offers it and the caller has the right.
///
/// # Errors
/// Fails if the operation is refused.
pub async fn perform_operation(
    app: &AppState,
    caller: AuthenticatedCaller,
    agent: &AgentId,
    request: OperationRequest,
) -> Result<OperationResponse, Failure> {
    let OperationRequest { a2a_method, dialect, binding, params, metadata } = request;
    if let Some(spec) = app.agents.get(agent) {
        // Before the right is checked: what an agent offers is on its card for everybody who may read it.
        exposure::check_operation(
            spec,
            dialect.version(),
            binding,
            exposed_operation_of(a2a_method),
        )?;
    }
    let caller = caller.require_right(required_right(a2a_method), Some(agent))?;
    if dialect == RequestDialect::V1_0 {
        check_tenant(app, agent, &params)?;
    }
    // A request that waits for the end keeps this future alive, so all other operations have boxes of their own.
    match a2a_method {
        A2aMethod::Stream => {
            let sent_message = dialect.read_sent_message(params, metadata)?;
            Box::pin(operations::stream(app, &caller, agent, sent_message))
                .await
                .map(OperationResponse::Stream)
        }
        A2aMethod::Subscribe => {
            let id = dialect.read_task_id(params)?;
            let version_and_metadata = (dialect.version(), &metadata);
            let events =
                Box::pin(operations::subscribe(app, &caller, agent, &id, version_and_metadata))
                    .await;
            events.map(OperationResponse::Stream)
        }
        A2aMethod::Send => {
            let sent_message = dialect.read_sent_message(params, metadata)?;
            let reply = operations::send(app, &caller, agent, sent_message).await?;
            Ok(OperationResponse::Complete(dialect.write_reply(reply)))
        }
        _ => {
            let request = (dialect, params, metadata.host);
            let result =
                Box::pin(perform_unary_operation(app, &caller, agent, a2a_method, request)).await;
            result.map(OperationResponse::Complete)
        }
    }
}

/// Checks that the tenant of a request, which only gRPC needs, is the agent of the path.
fn check_tenant(app: &AppState, agent: &AgentId, params: &Value) -> Result<(), Failure> {
    match json::read::tenant(params)? {
        Some(tenant) if app.agents.resolve_id(tenant).ok().as_ref() != Some(agent) => {
            let text = "`tenant` must be absent, or name the agent of the address";
            Err(Failure::new(Code::InvalidParams, text))
        }
        _ => Ok(()),
    }
}

async fn perform_unary_operation(
    app: &AppState,
    caller: &Caller,
    agent: &AgentId,
    a2a_method: A2aMethod,
    (dialect, params, host): (RequestDialect, Value, Option<HeaderValue>),
) -> Result<Value, Failure> {
    match a2a_method {
        A2aMethod::Get => {
            let task =
                operations::get(app, caller, agent, dialect.read_task_query(params)?).await?;
            Ok(dialect.write_task(task))
        }
        A2aMethod::Status => {
            let task =
                operations::get(app, caller, agent, dialect.read_task_query(params)?).await?;
            Ok(v0_3::write::status(task.status))
        }
        A2aMethod::List => {
            let page =
                operations::list(app, caller, agent, dialect.read_list_request(params)?).await?;
            Ok(dialect.write_page(page))
        }
        A2aMethod::Cancel => {
            let task =
                operations::cancel(app, caller, agent, &dialect.read_task_id(params)?).await?;
            Ok(dialect.write_task(task))
        }
        A2aMethod::ExtendedCard | A2aMethod::Card => {
            card::card_json(app, agent, dialect.version(), host.as_ref())
        }
        A2aMethod::PushSet => {
            let (version, config) = (dialect.version(), dialect.read_push_config(params)?);
            let config = push::push_set(app, caller, agent, version, config).await?;
            Ok(dialect.write_push_config(config))
        }
        A2aMethod::PushGet => {
            let PushConfigQuery { task_id, id } = dialect.read_push_query(params)?;
            let config = push::push_get(app, caller, agent, &task_id, id.as_deref()).await?;
            Ok(dialect.write_push_config(config))
        }
        A2aMethod::PushList => {
            let id = dialect.read_push_list_task_id(params)?;
            let configs = push::push_list(app, caller, agent, &id).await?;
            Ok(dialect.write_push_configs(configs))
        }
        A2aMethod::PushDelete => {
            let PushConfigQuery { task_id, id } = dialect.read_push_query(params)?;
            let id = id.as_deref().unwrap_or(&task_id);
            push::push_delete(app, caller, agent, &task_id, id).await?;
            Ok(dialect.write_empty_response())
        }
        A2aMethod::Send | A2aMethod::Stream | A2aMethod::Subscribe => {
            Err(Failure::new(Code::Internal, "messages and streams are dispatched separately"))
        }
    }
}

/// Returns the operation under which an agent's exposure lists the method.
pub(super) const fn exposed_operation_of(a2a_method: A2aMethod) -> ProtocolOperation {
    match a2a_method {
        A2aMethod::Send => ProtocolOperation::Send,
        A2aMethod::Stream => ProtocolOperation::Stream,
        A2aMethod::Get | A2aMethod::Status | A2aMethod::Card => ProtocolOperation::Get,
        A2aMethod::List => ProtocolOperation::List,
        A2aMethod::Cancel => ProtocolOperation::Cancel,
        A2aMethod::Subscribe => ProtocolOperation::Subscribe,
        A2aMethod::PushSet | A2aMethod::PushGet | A2aMethod::PushList | A2aMethod::PushDelete => {
            ProtocolOperation::Push
        }
        A2aMethod::ExtendedCard => ProtocolOperation::ExtendedCard,
    }
}

/// Returns the right that a token needs for the method.
pub(super) const fn required_right(a2a_method: A2aMethod) -> Right {
    match a2a_method {
        A2aMethod::Send | A2aMethod::Stream | A2aMethod::Cancel => Right::Run,
        A2aMethod::Get
        | A2aMethod::Status
        | A2aMethod::Card
        | A2aMethod::List
        | A2aMethod::Subscribe
        | A2aMethod::PushSet
        | A2aMethod::PushGet
        | A2aMethod::PushList
        | A2aMethod::PushDelete
        | A2aMethod::ExtendedCard => Right::Read,
    }
}
