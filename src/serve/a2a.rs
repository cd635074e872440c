//! The operations of A2A, in core shapes, over the gateway. Every binding comes down to these.

use std::pin::Pin;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::{AgentId, ContextId, ExecutionId, MessageId};
use algonius_actors::model::principal::Caller;
use algonius_actors::model::record::Record;
use algonius_actors::model::request::{Input, Request, Trigger};
use serde_json::Value;
use tokio_stream::Stream;

use super::{App, task};
use crate::wire::a2a::PARAMETERS;
use crate::wire::a2a::v1::{
    Content, History, ListPage, ListRequest, Message, Part, Reply, Role, SendRequest, StreamEvent,
    Task, TaskQuery, Wait,
};

/// The longest id that a caller may choose, in bytes.
const LONGEST_ID: usize = 256;

/// Events with the number after which each stands; a stream can be taken up after any of them.
pub type Events = Pin<Box<dyn Stream<Item = Result<(u64, StreamEvent), Failure>> + Send>>;

/// Sends a message to an agent.
///
/// # Errors
/// When it is refused, or when a caller who waits has waited in the queue for too long; whatever
/// else was accepted never is an error, however it ends.
pub async fn send(
    app: &App,
    caller: &Caller,
    agent: &AgentId,
    send: SendRequest,
) -> Result<Reply, Failure> {
    let SendRequest { message, wait, history, .. } = send;
    if let Some(id) = &message.task_id {
        return Err(not_continued(app, caller, agent, id).await);
    }
    let ticket = app.gateway.submit(request(caller, agent, message)?).await?;
    let record = find(app, caller, agent, &ticket.execution.to_string()).await?;
    if wait == Wait::ForTheEnd {
        app.gateway.settled(&record, ticket.progress).await;
        let record = find(app, caller, agent, &record.id.to_string()).await?;
        if let Some(failure) = record.failure.filter(|failure| failure.code == Code::QueueTimeout) {
            return Err(failure);
        }
    }
    let query = TaskQuery { id: ticket.execution.to_string(), history };
    get(app, caller, agent, query).await.map(Reply::Task)
}

/// Sends a message and follows what comes of it.
///
/// # Errors
/// When it is refused.
pub async fn stream(_: &App, _: &Caller, _: &AgentId, _: SendRequest) -> Result<Events, Failure> {
    Err(not_offered())
}

/// Follows a task: a snapshot first, or, after a known event, what came since.
///
/// # Errors
/// When it is not there for the caller at this agent.
pub async fn subscribe(
    _: &App,
    _: &Caller,
    _: &AgentId,
    _: &str,
    _: Option<u64>,
) -> Result<Events, Failure> {
    Err(not_offered())
}

/// Looks a task up.
///
/// # Errors
/// When it is not there for the caller at this agent.
pub async fn get(
    app: &App,
    caller: &Caller,
    agent: &AgentId,
    query: TaskQuery,
) -> Result<Task, Failure> {
    let record = find(app, caller, agent, &query.id).await?;
    task::task(&app.gateway, &record, query.history).await
}

/// Lists tasks.
///
/// # Errors
/// When the request is not a sound one.
pub async fn list(_: &App, _: &Caller, _: &AgentId, _: ListRequest) -> Result<ListPage, Failure> {
    Err(not_offered())
}

/// Calls a task off and waits until it has ended.
///
/// # Errors
/// When it is not there for the caller at this agent, or when it has ended before.
pub async fn cancel(
    app: &App,
    caller: &Caller,
    agent: &AgentId,
    id: &str,
) -> Result<Task, Failure> {
    let record = find(app, caller, agent, id).await?;
    let (record, progress) = app.gateway.cancel(caller, record.id).await?;
    app.gateway.settled(&record, progress).await;
    get(app, caller, agent, TaskQuery { id: id.to_owned(), history: History::All }).await
}

fn not_offered() -> Failure {
    Failure::new(Code::Unsupported, "this agent does not offer this operation; see its card")
}

/// An execution of this agent that the caller may see; all else is simply not there.
async fn find(app: &App, caller: &Caller, agent: &AgentId, id: &str) -> Result<Record, Failure> {
    let unknown = || Failure::new(Code::ExecutionUnknown, "there is no such task");
    let id = ExecutionId::parse(id).ok_or_else(unknown)?;
    match app.gateway.execution(caller, id).await {
        Ok(record) if record.agent == *agent => Ok(record),
        Err(failure) if failure.code != Code::ExecutionUnknown => Err(failure),
        Ok(_) | Err(_) => Err(unknown()),
    }
}

/// Why a message cannot continue the task it names.
async fn not_continued(app: &App, caller: &Caller, agent: &AgentId, id: &str) -> Failure {
    match find(app, caller, agent, id).await {
        Err(failure) => failure,
        Ok(record) if record.outcome.is_some() => {
            Failure::new(Code::Unsupported, "the task has ended; send the message without `taskId`")
        }
        Ok(_) => Failure::new(Code::Unsupported, "the task has not asked for input"),
    }
}

fn request(caller: &Caller, agent: &AgentId, message: Message) -> Result<Request, Failure> {
    if message.role != Role::User {
        let text = "`message.role` must be \"user\"";
        return Err(Failure::new(Code::InvalidParams, text));
    }
    for id in [Some(&message.message_id), message.context_id.as_ref()].into_iter().flatten() {
        if id.len() > LONGEST_ID || id.chars().any(char::is_control) {
            let text = format!("an id has at most {LONGEST_ID} bytes and no control characters");
            return Err(Failure::new(Code::InvalidParams, text));
        }
    }
    let params = parameters(&message)?;
    Ok(Request {
        agent: agent.clone(),
        owner: caller.principal,
        message: MessageId(message.message_id),
        context: message.context_id.map_or_else(ContextId::fresh, ContextId),
        trigger: Trigger::Api,
        input: Input { text: text(message.parts)?, params },
    })
}

/// The text of a message: its parts, one under the other.
fn text(parts: Vec<Part>) -> Result<String, Failure> {
    let texts: Result<Vec<_>, _> = parts
        .into_iter()
        .map(|part| match part.content {
            Content::Text(text) => Ok(text),
            Content::Data(data) => Ok(data.to_string()),
            Content::Raw(_) | Content::Url(_) => {
                Err(Failure::new(Code::ContentType, "this agent takes text and data, not files"))
            }
        })
        .collect();
    texts.map(|texts| texts.join("\n"))
}

fn parameters(message: &Message) -> Result<std::collections::BTreeMap<String, String>, Failure> {
    let wrong = || {
        let text = "parameters must be an object of texts, numbers and truth values";
        Failure::new(Code::InvalidParams, text)
    };
    match message.metadata.get(PARAMETERS) {
        None => Ok(std::collections::BTreeMap::new()),
        Some(Value::Object(given)) => given
            .iter()
            .map(|(name, value)| match value {
                Value::String(text) => Ok((name.clone(), text.clone())),
                Value::Number(number) => Ok((name.clone(), number.to_string())),
                Value::Bool(truth) => Ok((name.clone(), truth.to_string())),
                Value::Null | Value::Array(_) | Value::Object(_) => Err(wrong()),
            })
            .collect(),
        Some(_) => Err(wrong()),
    }
}
