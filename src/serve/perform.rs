//! What is asked for in JSON, done and answered in JSON: one place for JSON-RPC and HTTP+JSON, for
//! both versions.

use algonius_actors::model::code::Code;
use algonius_actors::model::exposure::{self as offer, Binding, Version};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::principal::{Caller, Right};
use serde_json::Value;

use super::a2a::{self, Events, Sending};
use super::auth::Who;
use super::beside::Beside;
use super::{App, card, exposure, push};
use crate::wire::a2a::Method;
use crate::wire::a2a::v0_3::{self, rest};
use crate::wire::a2a::v1::{
    ListPage, ListRequest, PushConfig, PushQuery, Reply, SendRequest, StreamEvent, Task, TaskQuery,
    json,
};

/// How a call is read and its answer written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// 0.3 on JSON-RPC.
    Rpc0_3,
    /// 0.3 over HTTP.
    Rest0_3,
    /// 1.0, on JSON-RPC and over HTTP alike.
    V1_0,
}

/// A call to an agent, its parameters unread.
pub struct Asked {
    /// What for.
    pub operation: Method,
    /// In which dialect.
    pub dialect: Dialect,
    /// How it came.
    pub binding: Binding,
    /// With what.
    pub params: Value,
    /// What its caller says beside it.
    pub beside: Beside,
}

/// What comes of a call.
pub enum Told {
    /// One answer.
    Whole(Value),
    /// Events, each to be written in the dialect.
    Stream(Events),
}

impl Dialect {
    /// The version it belongs to.
    #[must_use]
    pub const fn version(self) -> Version {
        match self {
            Self::Rpc0_3 | Self::Rest0_3 => Version::V0_3,
            Self::V1_0 => Version::V1_0,
        }
    }

    /// One event of a stream.
    #[must_use]
    pub fn event(self, event: StreamEvent) -> Value {
        match self {
            Self::Rpc0_3 => v0_3::write::event(event),
            Self::Rest0_3 => rest::write::event(event),
            Self::V1_0 => json::write::event(event),
        }
    }

    fn send(self, params: Value) -> Result<SendRequest, Failure> {
        match self {
            Self::Rpc0_3 => v0_3::read::send(params),
            Self::Rest0_3 => rest::read::send(params),
            Self::V1_0 => json::read::send(params),
        }
    }

    fn sending(self, params: Value, beside: Beside) -> Result<Sending, Failure> {
        Ok(Sending { version: self.version(), beside, send: self.send(params)? })
    }

    fn get(self, params: Value) -> Result<TaskQuery, Failure> {
        match self {
            Self::Rpc0_3 => v0_3::read::get(params),
            Self::Rest0_3 => rest::read::get(params),
            Self::V1_0 => json::read::get(params),
        }
    }

    fn id(self, params: Value) -> Result<String, Failure> {
        match self {
            Self::Rpc0_3 => v0_3::read::cancel(params),
            Self::Rest0_3 => rest::read::cancel(params),
            Self::V1_0 => json::read::cancel(params),
        }
    }

    fn list(self, params: Value) -> Result<ListRequest, Failure> {
        match self {
            Self::Rpc0_3 | Self::V1_0 => json::read::list(params),
            Self::Rest0_3 => rest::read::list(params),
        }
    }

    /// The answer to a message.
    #[must_use]
    pub fn reply(self, reply: Reply) -> Value {
        match self {
            Self::Rpc0_3 => v0_3::write::reply(reply),
            Self::Rest0_3 => rest::write::reply(reply),
            Self::V1_0 => json::write::reply(reply),
        }
    }

    fn task(self, task: Task) -> Value {
        match self {
            Self::Rpc0_3 => v0_3::write::task(task),
            Self::Rest0_3 => rest::write::task(task),
            Self::V1_0 => json::write::task(task),
        }
    }

    fn push(self, params: Value) -> Result<PushConfig, Failure> {
        match self {
            Self::Rpc0_3 => v0_3::read::push_set(params),
            Self::Rest0_3 => rest::read::push_set(params),
            Self::V1_0 => json::read::push_set(params),
        }
    }

    fn push_query(self, params: Value) -> Result<PushQuery, Failure> {
        match self {
            Self::Rpc0_3 => v0_3::read::push_get(params),
            Self::Rest0_3 => rest::read::push_get(params),
            Self::V1_0 => json::read::push_get(params),
        }
    }

    fn push_list(self, params: Value) -> Result<String, Failure> {
        match self {
            Self::Rpc0_3 => v0_3::read::push_list(params),
            Self::Rest0_3 => rest::read::push_list(params),
            Self::V1_0 => json::read::push_list(params),
        }
    }

    fn pushed(self, config: PushConfig) -> Value {
        match self {
            Self::Rpc0_3 => v0_3::write::push(config),
            Self::Rest0_3 => rest::write::push(config),
            Self::V1_0 => json::write::push(config),
        }
    }

    fn pushes(self, configs: Vec<PushConfig>) -> Value {
        match self {
            Self::Rpc0_3 => v0_3::write::pushes(configs),
            Self::Rest0_3 => rest::write::pushes(configs),
            Self::V1_0 => json::write::pushes(configs),
        }
    }

    fn nothing(self) -> Value {
        match self {
            Self::Rpc0_3 => v0_3::write::nothing(),
            Self::Rest0_3 => rest::write::nothing(),
            Self::V1_0 => json::write::nothing(),
        }
    }

    fn page(self, page: ListPage) -> Value {
        match self {
            Self::Rpc0_3 | Self::V1_0 => json::write::page(page),
            Self::Rest0_3 => rest::write::page(page),
        }
    }
}

/// Does what is asked for, if the agent offers it and the caller may.
///
/// # Errors
/// When it is refused.
pub async fn perform(app: &App, who: Who, agent: &AgentId, asked: Asked) -> Result<Told, Failure> {
    let Asked { operation, dialect, binding, params, beside } = asked;
    if let Some(spec) = app.agents.get(agent) {
        exposure::check(spec, dialect.version(), binding, offered(operation))?;
    }
    let caller = who.may(right(operation), Some(agent))?;
    // Whoever waits for the end of what was sent holds this: what else there is has boxes of its own.
    match operation {
        Method::Stream => {
            let sending = dialect.sending(params, beside)?;
            Box::pin(a2a::stream(app, &caller, agent, sending)).await.map(Told::Stream)
        }
        Method::Subscribe => {
            let id = dialect.id(params)?;
            let as_known = (dialect.version(), &beside);
            let told = Box::pin(a2a::subscribe(app, &caller, agent, &id, as_known)).await;
            told.map(Told::Stream)
        }
        Method::Send => {
            let sending = dialect.sending(params, beside)?;
            let reply = a2a::send(app, &caller, agent, sending).await?;
            Ok(Told::Whole(dialect.reply(reply)))
        }
        _ => {
            let told = Box::pin(whole(app, &caller, agent, operation, (dialect, params))).await;
            told.map(Told::Whole)
        }
    }
}

async fn whole(
    app: &App,
    caller: &Caller,
    agent: &AgentId,
    operation: Method,
    (dialect, params): (Dialect, Value),
) -> Result<Value, Failure> {
    match operation {
        Method::Get => {
            let task = a2a::get(app, caller, agent, dialect.get(params)?).await?;
            Ok(dialect.task(task))
        }
        Method::Status => {
            let task = a2a::get(app, caller, agent, dialect.get(params)?).await?;
            Ok(v0_3::write::status(task.status))
        }
        Method::List => {
            let page = a2a::list(app, caller, agent, dialect.list(params)?).await?;
            Ok(dialect.page(page))
        }
        Method::Cancel => {
            let task = a2a::cancel(app, caller, agent, &dialect.id(params)?).await?;
            Ok(dialect.task(task))
        }
        Method::ExtendedCard | Method::Card => card::shown(app, agent, dialect.version()),
        Method::PushSet => {
            let (version, config) = (dialect.version(), dialect.push(params)?);
            let config = push::push_set(app, caller, agent, version, config).await?;
            Ok(dialect.pushed(config))
        }
        Method::PushGet => {
            let PushQuery { task_id, id } = dialect.push_query(params)?;
            let config = push::push_get(app, caller, agent, &task_id, id.as_deref()).await?;
            Ok(dialect.pushed(config))
        }
        Method::PushList => {
            let id = dialect.push_list(params)?;
            let configs = push::push_list(app, caller, agent, &id).await?;
            Ok(dialect.pushes(configs))
        }
        Method::PushDelete => {
            let PushQuery { task_id, id } = dialect.push_query(params)?;
            let id = id.as_deref().unwrap_or(&task_id);
            push::push_delete(app, caller, agent, &task_id, id).await?;
            Ok(dialect.nothing())
        }
        Method::Send | Method::Stream | Method::Subscribe => {
            Err(Failure::new(Code::Internal, "what is sent or streamed is answered elsewhere"))
        }
    }
}

/// What an agent's exposure calls an operation.
pub(super) const fn offered(operation: Method) -> offer::Operation {
    match operation {
        Method::Send => offer::Operation::Send,
        Method::Stream => offer::Operation::Stream,
        Method::Get | Method::Status | Method::Card => offer::Operation::Get,
        Method::List => offer::Operation::List,
        Method::Cancel => offer::Operation::Cancel,
        Method::Subscribe => offer::Operation::Subscribe,
        Method::PushSet | Method::PushGet | Method::PushList | Method::PushDelete => {
            offer::Operation::Push
        }
        Method::ExtendedCard => offer::Operation::ExtendedCard,
    }
}

/// What a token must allow for it.
pub(super) const fn right(operation: Method) -> Right {
    match operation {
        Method::Send | Method::Stream | Method::Cancel => Right::Run,
        Method::Get
        | Method::Status
        | Method::Card
        | Method::List
        | Method::Subscribe
        | Method::PushSet
        | Method::PushGet
        | Method::PushList
        | Method::PushDelete
        | Method::ExtendedCard => Right::Read,
    }
}
