//! The operations of A2A, in core shapes, over the gateway. Every binding comes down to these.

use std::pin::Pin;

use algonius_actors::model::code::Code;
use algonius_actors::model::content;
use algonius_actors::model::exposure::Version;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::{AgentId, ContextId, ExecutionId, MessageId};
use algonius_actors::model::principal::Caller;
use algonius_actors::model::progress::Progress;
use algonius_actors::model::record::{Page, PageQuery, Record};
use algonius_actors::model::request::{Input, Request, Trigger};
use futures_util::Stream;
use serde_json::Value;
use tokio::sync::watch::Receiver;

use super::task::{self, Telling};
use super::{App, cursor, exposure, follow, push};
use crate::wire::a2a::PARAMETERS;
use crate::wire::a2a::v1::{
    Content, History, ListPage, ListRequest, Message, Part, PushConfig, Reply, Role, SendRequest,
    StreamEvent, Task, TaskQuery, TaskState, Wait,
};

/// The longest id that a caller may choose, in bytes.
const LONGEST_ID: usize = 256;

/// Tasks on a page when the caller does not say.
const PAGE: u32 = 50;
/// Tasks on the largest page.
const LARGEST_PAGE: u32 = 100;

/// Events with the number after which each stands; a stream can be taken up after any of them.
pub type Events = Pin<Box<dyn Stream<Item = Result<(u64, StreamEvent), Failure>> + Send>>;

/// Sends a message to an agent. What it wants pushed is pushed in the version it came in.
///
/// # Errors
/// When it is refused, or when a caller who waits has waited in the queue for too long; whatever
/// else was accepted never is an error, however it ends.
pub async fn send(
    app: &App,
    caller: &Caller,
    agent: &AgentId,
    version: Version,
    send: SendRequest,
) -> Result<Reply, Failure> {
    let SendRequest { message, wait, history, push, .. } = send;
    let push = push.map(|config| (version, config));
    let (record, progress) = submit(app, caller, agent, message, push).await?;
    if wait == Wait::ForTheEnd {
        app.gateway.settled(&record, progress).await;
    }
    let record = app.gateway.reread(&record).await?;
    match &record.failure {
        Some(late) if late.code == Code::QueueTimeout && wait == Wait::ForTheEnd => {
            return Err(late.clone());
        }
        _ => {}
    }
    let telling = Telling::read(&app.gateway, &record).await?;
    match telling.reply().await? {
        Some(message) => Ok(Reply::Message(message)),
        None => telling.task(history).await.map(Reply::Task),
    }
}

/// Sends a message and follows what comes of it.
///
/// # Errors
/// When it is refused.
pub async fn stream(
    app: &App,
    caller: &Caller,
    agent: &AgentId,
    version: Version,
    send: SendRequest,
) -> Result<Events, Failure> {
    let SendRequest { message, history, push, .. } = send;
    let push = push.map(|config| (version, config));
    let (record, _) = submit(app, caller, agent, message, push).await?;
    follow::stream(&app.gateway, record, None, history).await
}

/// Follows a task: a snapshot first, or, after a known event, what came since.
///
/// # Errors
/// When it is not there for the caller at this agent.
pub async fn subscribe(
    app: &App,
    caller: &Caller,
    agent: &AgentId,
    id: &str,
    after: Option<u64>,
) -> Result<Events, Failure> {
    let record = find(app, caller, agent, id).await?;
    follow::stream(&app.gateway, record, after, History::All).await
}

/// Follows a task as 1.0 has it: what has ended cannot be followed.
///
/// # Errors
/// When it is not there for the caller at this agent, or has ended.
pub async fn subscribe_live(
    app: &App,
    caller: &Caller,
    agent: &AgentId,
    id: &str,
    after: Option<u64>,
) -> Result<Events, Failure> {
    let record = find(app, caller, agent, id).await?;
    if record.outcome.is_some() && after.is_none() {
        return Err(Failure::new(Code::Unsupported, "the task has ended; look it up instead"));
    }
    follow::stream(&app.gateway, record, after, History::All).await
}

/// Hands a message in: a new execution, or the answer to the question of one.
async fn submit(
    app: &App,
    caller: &Caller,
    agent: &AgentId,
    message: Message,
    pushed: Option<(Version, PushConfig)>,
) -> Result<(Record, Option<Receiver<Progress>>), Failure> {
    if let Some(spec) = app.agents.get(agent) {
        exposure::reads(spec, &message.parts)?;
    }
    let continues = match &message.task_id {
        None => None,
        Some(id) => Some(find(app, caller, agent, id).await?),
    };
    let request = request(caller, agent, message, continues.as_ref())?;
    if let Some((version, config)) = &pushed {
        push::check(app, caller, *version, config)?;
    }
    let ticket = app.gateway.submit(caller, request).await?;
    if let Some((version, config)) = pushed {
        let target = push::beside(app, caller, ticket.execution, version, config)?;
        // Events up to here were before this message.
        push::register(app, target, continues.map_or(0, |record| record.last_event)).await?;
    }
    let record = find(app, caller, agent, &ticket.execution.to_string()).await?;
    Ok((record, ticket.progress))
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
    Telling::read(&app.gateway, &record).await?.task(query.history).await
}

/// Lists tasks of the caller, or of everybody for an administrator, the one whose status changed
/// last first.
///
/// # Errors
/// When the request is not a sound one.
pub async fn list(
    app: &App,
    caller: &Caller,
    agent: &AgentId,
    list: ListRequest,
) -> Result<ListPage, Failure> {
    let (query, page_size) = page_query(agent, &list)?;
    // There is no such state here: nothing is in it.
    if list.state == Some(TaskState::AuthRequired) {
        let (tasks, next_page_token) = (Vec::new(), String::new());
        return Ok(ListPage { tasks, next_page_token, page_size, total_size: 0 });
    }
    let Page { mut records, total } = app.gateway.page(caller, query).await?;
    let has_more = records.len() > page_size as usize;
    records.truncate(page_size as usize);
    let last = records.last().filter(|_| has_more);
    let next_page_token = last.map(|last| cursor::write((last.status_at(), last.id)));
    let history = History::Last(list.history_length.unwrap_or(0));
    let mut tasks = Vec::with_capacity(records.len());
    for record in &records {
        let telling = Telling::read(&app.gateway, record).await?;
        tasks.push(if list.include_artifacts {
            telling.task(history).await?
        } else {
            telling.outline(history).await?
        });
    }
    let next_page_token = next_page_token.unwrap_or_default();
    Ok(ListPage { tasks, next_page_token, page_size, total_size: total })
}

/// What to read for a page, one more than it holds, so that its end is known; and its size.
fn page_query(agent: &AgentId, list: &ListRequest) -> Result<(PageQuery, u32), Failure> {
    let wrong = |text: &str| Failure::new(Code::InvalidParams, text);
    let size = list.page_size.unwrap_or(PAGE);
    if !(1..=LARGEST_PAGE).contains(&size) {
        return Err(wrong("`pageSize` must be from 1 to 100"));
    }
    // An empty token is what the last page gave, or a client's way to say none.
    let token = list.page_token.as_deref().filter(|token| !token.is_empty());
    let place = |token| cursor::read(token).ok_or_else(|| wrong("`pageToken` is not one of ours"));
    let query = PageQuery {
        owner: None,
        agent: agent.clone(),
        context: list.context_id.clone().map(ContextId),
        shown: list.state.and_then(task::shown),
        changed_since: list.changed_since,
        after: token.map(place).transpose()?,
        limit: size + 1,
    };
    Ok((query, size))
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
    app.gateway.ended(&record, progress).await;
    get(app, caller, agent, TaskQuery { id: id.to_owned(), history: History::All }).await
}

/// An execution of this agent that the caller may see; all else is simply not there.
pub(super) async fn find(
    app: &App,
    caller: &Caller,
    agent: &AgentId,
    id: &str,
) -> Result<Record, Failure> {
    let unknown = || Failure::new(Code::ExecutionUnknown, "task not found");
    let id = ExecutionId::parse(id).ok_or_else(unknown)?;
    match app.gateway.execution(caller, id).await {
        Ok(record) if record.agent == *agent => Ok(record),
        Err(failure) if failure.code != Code::ExecutionUnknown => Err(failure),
        Ok(_) | Err(_) => Err(unknown()),
    }
}

fn request(
    caller: &Caller,
    agent: &AgentId,
    message: Message,
    continues: Option<&Record>,
) -> Result<Request, Failure> {
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
        context: context(message.context_id, continues),
        continues: continues.map(|record| record.id),
        trigger: Trigger::Api,
        input: Input { parts: parts(message.parts), params },
    })
}

/// The conversation that the caller names, or that of the task, or a new one.
fn context(named: Option<String>, continues: Option<&Record>) -> ContextId {
    let own = || continues.map_or_else(ContextId::fresh, |record| record.context.clone());
    named.map_or_else(own, ContextId)
}

/// The parts of a message, as the inside has them.
fn parts(parts: Vec<Part>) -> Vec<content::Part> {
    let part = |part: Part| {
        let content = match part.content {
            Content::Text(text) => content::Content::Text(text),
            Content::Data(data) => content::Content::Data(data),
            Content::Raw(bytes) => content::Content::Bytes(bytes),
            Content::Url(url) => content::Content::Url(url),
        };
        let Part { filename, media_type, .. } = part;
        content::Part { content, filename, media_type }
    };
    parts.into_iter().map(part).collect()
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

#[cfg(test)]
mod tests {
    use algonius_actors::model::record::Shown;

    use super::*;

    fn query(list: &ListRequest) -> Result<(PageQuery, u32), Code> {
        page_query(&AgentId::new("reviewer").unwrap(), list).map_err(|failure| failure.code)
    }

    #[test]
    fn a_page_holds_50_tasks_or_as_many_as_asked_up_to_100() {
        for (page_size, expected) in [
            (None, Ok(50)),
            (Some(1), Ok(1)),
            (Some(100), Ok(100)),
            (Some(0), Err(Code::InvalidParams)),
            (Some(101), Err(Code::InvalidParams)),
            (Some(u32::MAX), Err(Code::InvalidParams)),
        ] {
            let list = ListRequest { page_size, ..ListRequest::default() };
            assert_eq!(query(&list).map(|(_, size)| size), expected);
            assert_eq!(query(&list).map(|(query, _)| query.limit), expected.map(|size| size + 1));
        }
    }

    #[test]
    fn a_page_begins_where_its_token_says() {
        let place = (chrono::DateTime::UNIX_EPOCH, ExecutionId::fresh());
        for (token, expected) in [
            (None, Ok(None)),
            (Some(String::new()), Ok(None)),
            (Some(cursor::write(place)), Ok(Some(place))),
            (Some("next".to_owned()), Err(Code::InvalidParams)),
        ] {
            let list = ListRequest { page_token: token, ..ListRequest::default() };
            assert_eq!(query(&list).map(|(query, _)| query.after), expected);
        }
    }

    #[test]
    fn a_page_is_asked_for_as_the_caller_says() {
        let since = chrono::DateTime::UNIX_EPOCH;
        let list = ListRequest {
            context_id: Some("context-1".to_owned()),
            state: Some(TaskState::InputRequired),
            changed_since: Some(since),
            ..ListRequest::default()
        };
        let (query, _) = query(&list).unwrap();
        assert_eq!(query.context, Some(ContextId("context-1".to_owned())));
        assert_eq!(query.shown, Some(Shown::InputRequired));
        assert_eq!((query.changed_since, query.owner), (Some(since), None));
    }
}
