//! What is asked for in JSON, done and answered in JSON: one place for JSON-RPC and HTTP+JSON, for
//! both versions.

use algonius_actors::model::code::Code;
use algonius_actors::model::exposure::{self as offer, Binding, Version};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::principal::{Caller, Right};
use serde_json::Value;

use super::a2a::{self, Events};
use super::auth::Who;
use super::{App, card, exposure, push};
use crate::wire::a2a::Operation;
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
    pub operation: Operation,
    /// In which dialect.
    pub dialect: Dialect,
    /// How it came.
    pub binding: Binding,
    /// With what.
    pub params: Value,
    /// The last event that the caller of a stream knows.
    pub after: Option<u64>,
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

    fn reply(self, reply: Reply) -> Value {
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
    let Asked { operation, dialect, binding, params, after } = asked;
    if let Some(spec) = app.agents.get(agent) {
        exposure::check(spec, dialect.version(), binding, offered(operation))?;
    }
    let caller = who.may(right(operation), Some(agent))?;
    match operation {
        Operation::Stream => {
            let (version, send) = (dialect.version(), dialect.send(params)?);
            a2a::stream(app, &caller, agent, version, send).await.map(Told::Stream)
        }
        Operation::Subscribe => {
            let id = dialect.id(params)?;
            let events = match dialect.version() {
                Version::V1_0 => a2a::subscribe_live(app, &caller, agent, &id, after).await,
                Version::V0_3 => a2a::subscribe(app, &caller, agent, &id, after).await,
            };
            events.map(Told::Stream)
        }
        _ => whole(app, &caller, agent, operation, (dialect, params)).await.map(Told::Whole),
    }
}

async fn whole(
    app: &App,
    caller: &Caller,
    agent: &AgentId,
    operation: Operation,
    (dialect, params): (Dialect, Value),
) -> Result<Value, Failure> {
    match operation {
        Operation::Send => {
            let (version, send) = (dialect.version(), dialect.send(params)?);
            let reply = a2a::send(app, caller, agent, version, send).await?;
            Ok(dialect.reply(reply))
        }
        Operation::Get => {
            let task = a2a::get(app, caller, agent, dialect.get(params)?).await?;
            Ok(dialect.task(task))
        }
        Operation::Status => {
            let task = a2a::get(app, caller, agent, dialect.get(params)?).await?;
            Ok(v0_3::write::status(task.status))
        }
        Operation::List => {
            let page = a2a::list(app, caller, agent, dialect.list(params)?).await?;
            Ok(dialect.page(page))
        }
        Operation::Cancel => {
            let task = a2a::cancel(app, caller, agent, &dialect.id(params)?).await?;
            Ok(dialect.task(task))
        }
        Operation::ExtendedCard | Operation::Card => card::of(app, agent, dialect.version()),
        Operation::PushSet => {
            let (version, config) = (dialect.version(), dialect.push(params)?);
            let config = push::push_set(app, caller, agent, version, config).await?;
            Ok(dialect.pushed(config))
        }
        Operation::PushGet => {
            let PushQuery { task_id, id } = dialect.push_query(params)?;
            let config = push::push_get(app, caller, agent, &task_id, id.as_deref()).await?;
            Ok(dialect.pushed(config))
        }
        Operation::PushList => {
            let id = dialect.push_list(params)?;
            let configs = push::push_list(app, caller, agent, &id).await?;
            Ok(dialect.pushes(configs))
        }
        Operation::PushDelete => {
            let PushQuery { task_id, id } = dialect.push_query(params)?;
            let id = id.as_deref().unwrap_or(&task_id);
            push::push_delete(app, caller, agent, &task_id, id).await?;
            Ok(dialect.nothing())
        }
        Operation::Stream | Operation::Subscribe => {
            Err(Failure::new(Code::Internal, "a stream was asked for as one answer"))
        }
    }
}

/// What an agent's exposure calls an operation.
const fn offered(operation: Operation) -> offer::Operation {
    match operation {
        Operation::Send => offer::Operation::Send,
        Operation::Stream => offer::Operation::Stream,
        Operation::Get | Operation::Status | Operation::Card => offer::Operation::Get,
        Operation::List => offer::Operation::List,
        Operation::Cancel => offer::Operation::Cancel,
        Operation::Subscribe => offer::Operation::Subscribe,
        Operation::PushSet | Operation::PushGet | Operation::PushList | Operation::PushDelete => {
            offer::Operation::Push
        }
        Operation::ExtendedCard => offer::Operation::ExtendedCard,
    }
}

/// What a token must allow for it.
const fn right(operation: Operation) -> Right {
    match operation {
        Operation::Send | Operation::Stream | Operation::Cancel => Right::Run,
        Operation::Get
        | Operation::Status
        | Operation::Card
        | Operation::List
        | Operation::Subscribe
        | Operation::PushSet
        | Operation::PushGet
        | Operation::PushList
        | Operation::PushDelete
        | Operation::ExtendedCard => Right::Read,
    }
}
