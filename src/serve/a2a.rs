//! The operations of A2A, in core shapes, over the gateway. Every binding comes down to these.

use std::pin::Pin;

use algonius_actors::door::Ticket;
use algonius_actors::model::code::Code;
use algonius_actors::model::exposure::Version;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::{AgentId, ContextId, ExecutionId};
use algonius_actors::model::principal::{Caller, Right};
use algonius_actors::model::record::{Page, PageQuery, Record};
use futures_util::{Stream, TryStreamExt};

use super::beside::Beside;
use super::follow::Range;
use super::task::{self, Telling};
use super::{App, cursor, exposure, follow, message, push};
use crate::wire::a2a::CURSOR;
use crate::wire::a2a::v1::{
    History, ListPage, ListRequest, Reply, SendRequest, StreamEvent, Task, TaskQuery, TaskState,
    Wait,
};

/// Tasks on a page when the caller does not say.
const PAGE: u32 = 50;
/// Tasks on the largest page.
const LARGEST_PAGE: u32 = 100;

/// Events with the number after which each stands; a stream can be taken up after any of them.
pub type Events = Pin<Box<dyn Stream<Item = Result<(u64, StreamEvent), Failure>> + Send>>;

/// A message on its way to an agent.
pub struct Sending {
    /// The version in which it came; what it wants pushed is pushed in that one.
    pub version: Version,
    /// What its sender says beside it.
    pub beside: Beside,
    /// The message, and how it is to be answered.
    pub send: SendRequest,
}

/// Sends a message to an agent.
///
/// # Errors
/// When it is refused, or when a caller who waits has waited in the queue for too long; whatever
/// else was accepted never is an error, however it ends.
pub async fn send(
    app: &App,
    caller: &Caller,
    agent: &AgentId,
    sending: Sending,
) -> Result<Reply, Failure> {
    let (wait, history) = (sending.send.wait, sending.send.history);
    // In a box of its own, so that who waits does not hold what it took to hand the message in.
    let submitted = Box::pin(submit(app, caller, agent, sending)).await?;
    let Ticket { execution, progress, ended, .. } = submitted;
    let (record, raw) = match ended {
        // The door has looked after it was asked: that is as new as the question.
        Some(record) => (shown(caller, agent, *record)?, None),
        None => {
            if !caller.scope.allows(Right::Read, Some(agent)) {
                find_by(app, caller, agent, execution).await?; // Who may not look does not wait.
            }
            let raw = match wait {
                Wait::ForTheEnd => app.gateway.settled(agent, execution, progress).await,
                Wait::ForAcceptance => None,
            };
            (find_by(app, caller, agent, execution).await?, raw)
        }
    };
    let raw = raw.filter(|_| caller.owns(&record));
    match &record.failure {
        Some(late) if late.code == Code::QueueTimeout && wait == Wait::ForTheEnd => {
            return Err(late.clone());
        }
        _ => {}
    }
    let telling = Telling::read(&app.gateway, &record).await?;
    match telling.reply().await? {
        Some(message) => Ok(Reply::Message(message)),
        None => telling.task(history).await.map(|task| Reply::Task(telling.with(raw, task))),
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
    sending: Sending,
) -> Result<Events, Failure> {
    let (history, is_numbered) = (sending.send.history, sending.beside.wants(CURSOR));
    let ticket = submit(app, caller, agent, sending).await?;
    let record = find_by(app, caller, agent, ticket.execution).await?;
    let events = follow::stream(&app.gateway, record, Range::default(), history).await?;
    Ok(if is_numbered { numbered(events) } else { events })
}

/// Follows a task: a snapshot first, or, after a known event, what came since. In 0.3 a stream ends
/// with a question too; in 1.0 it ends with the task, and what has ended cannot be followed.
///
/// # Errors
/// When it is not there for the caller at this agent, or has ended.
pub async fn subscribe(
    app: &App,
    caller: &Caller,
    agent: &AgentId,
    id: &str,
    (version, beside): (Version, &Beside),
) -> Result<Events, Failure> {
    let record = find(app, caller, agent, id).await?;
    let is_over = record.outcome.is_some() && beside.after.is_none();
    if is_over && version == Version::V1_0 {
        return Err(Failure::new(Code::Unsupported, "the task has ended; look it up instead"));
    }
    let range = Range { after: beside.after, past_questions: version == Version::V1_0 };
    let events = follow::stream(&app.gateway, record, range, History::All).await?;
    Ok(if beside.wants(CURSOR) { numbered(events) } else { events })
}

/// Events that tell their own numbers, for those who do not read them beside the events.
fn numbered(events: Events) -> Events {
    Box::pin(events.map_ok(|(number, mut event)| {
        let metadata = match &mut event {
            StreamEvent::Task(task) => &mut task.metadata,
            StreamEvent::Message(message) => &mut message.metadata,
            StreamEvent::Status(update) => &mut update.metadata,
            StreamEvent::Artifact(update) => &mut update.metadata,
        };
        metadata.insert(CURSOR.to_owned(), number.to_string().into());
        (number, event)
    }))
}

/// Hands a message in: a new execution, or the answer to the question of one.
async fn submit(
    app: &App,
    caller: &Caller,
    agent: &AgentId,
    sending: Sending,
) -> Result<Ticket, Failure> {
    let Sending { version, beside, send: SendRequest { message, push: pushed, .. } } = sending;
    if let Some(spec) = app.agents.get(agent) {
        exposure::reads(spec, &message.parts)?;
        pushed.as_ref().map_or(Ok(()), |_| exposure::pushes(spec))?;
    }
    let continues = match &message.task_id {
        None => None,
        Some(id) => Some(find(app, caller, agent, id).await?),
    };
    let request = message::request(caller, agent, (message, beside), continues.as_ref())?;
    if let Some(config) = &pushed {
        push::check(app, caller, version, config)?;
    }
    let ticket = app.gateway.submit(caller, request).await?;
    if let Some(config) = pushed {
        let target = push::beside(app, caller, ticket.execution, version, config)?;
        // Events up to here were before this message.
        push::register(app, target, continues.map_or(0, |record| record.last_event)).await?;
    }
    Ok(ticket)
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
    match ExecutionId::parse(id) {
        Some(id) => find_by(app, caller, agent, id).await,
        None => Err(unknown()),
    }
}

async fn find_by(
    app: &App,
    caller: &Caller,
    agent: &AgentId,
    id: ExecutionId,
) -> Result<Record, Failure> {
    match app.gateway.execution(caller, id).await {
        Ok(record) => shown(caller, agent, record),
        Err(failure) if failure.code != Code::ExecutionUnknown => Err(failure),
        Err(_) => Err(unknown()),
    }
}

/// The record, if it is one of this agent and the caller may see it.
fn shown(caller: &Caller, agent: &AgentId, record: Record) -> Result<Record, Failure> {
    let is_there = record.agent == *agent && caller.may_see(&record);
    if is_there { Ok(record) } else { Err(unknown()) }
}

fn unknown() -> Failure {
    Failure::new(Code::ExecutionUnknown, "task not found")
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
