//! Operations of A2A in core shapes, over the api. Every binding calls these functions.

mod answer;
mod answer_value;
pub(super) mod lookup;
pub mod message;
pub mod message_details;
mod page_cursor;
pub mod push;

use algonius_a2a::v1::{
    HistoryLength, ListPage, ListRequest, SendMode, SendRequest, SendResponse, StreamEvent, Task,
    TaskQuery,
};
use algonius_a2a::{CURSOR_EXTENSION, STDERR_EXTENSION};
use algonius_actors::api::SubmitReply;
use algonius_actors::decide::access::override_policy;
use algonius_actors::model::access::endpoint_config::ProtocolVersion;
use algonius_actors::model::access::principal::{Caller, Right};
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::record::{ExecutionPage, ExecutionPageQuery};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::{AgentId, ContextId};
use futures_util::TryStreamExt;

use self::message_details::ForwardedRequestFields;
use super::exposure;
use super::streaming::{self, ResumableEvents, StreamOptions};
use super::task::{self, TaskView};
use super::transport_metadata::TransportMetadata;
use crate::serve::AppState;

/// Number of tasks on a page if the caller requests none.
const DEFAULT_PAGE_SIZE: u32 = 50;
/// Maximum number of tasks on a page.
const MAX_PAGE_SIZE: u32 = 100;

/// Message that a caller sends to an agent.
pub struct SentMessage {
    /// Protocol version of the request, which is also the version of its push notifications.
    pub version: ProtocolVersion,
    /// Metadata of the request.
    pub metadata: TransportMetadata,
    /// Message and the requested form of the answer.
    pub request: SendRequest,
}

/// Sends a message to an agent.
///
/// # Errors
/// Fails when the message is refused, when a caller that waits has waited in the queue for too long, or when
/// the end that the caller waits for cannot be recorded. An accepted message is otherwise never an error,
/// however its task ends.
pub async fn send(
    app: &AppState,
    caller: &Caller,
    agent: &AgentId,
    sent_message: SentMessage,
) -> Result<SendResponse, Failure> {
    let (send_mode, history_length) =
        (sent_message.request.send_mode, sent_message.request.history_length);
    // A separate box, so that a waiting request does not retain the memory of the submission.
    let submit_reply = Box::pin(submit(app, caller, agent, sent_message)).await?;
    let SubmitReply { execution, progress_receiver, ended_record, .. } = submit_reply;
    let (record, raw_answer) = match ended_record {
        // The api read the record after the submission: it is as new as the request.
        Some(record) => (lookup::require_visible_record(caller, agent, *record)?, None),
        None => {
            if !caller.scope.allows(Right::Read, Some(agent)) {
                lookup::find_by_id(app, caller, agent, execution).await?; // Who may not look does not wait.
            }
            let raw_answer = match send_mode {
                SendMode::Blocking => {
                    app.api
                        .requests
                        .wait_for_end_or_question(agent, execution, progress_receiver)
                        .await?
                }
                SendMode::NonBlocking => None,
            };
            (lookup::find_by_id(app, caller, agent, execution).await?, raw_answer)
        }
    };
    // Raw output is not redacted. An administrator may see the task of another caller, but not its raw text.
    let raw_answer = raw_answer.filter(|_| record.owner == caller.principal);
    match &record.failure {
        // A caller that waits learns that the service is too busy from the status, so that it tries again; the task
        // alone says `rejected`, which is final.
        Some(failure) if failure.code == Code::QueueTimeout && send_mode == SendMode::Blocking => {
            return Err(failure.clone());
        }
        _ => {}
    }
    let view = TaskView::read(&app.api, &record).await?;
    match view.message_only_reply().await? {
        Some(message) => Ok(SendResponse::Message(message)),
        None => view
            .task(history_length)
            .await
            .map(|task| SendResponse::Task(view.insert_raw_answer(raw_answer, task))),
    }
}

/// Sends a message and streams the events of its task.
///
/// # Errors
/// Fails if the message is refused.
pub async fn stream(
    app: &AppState,
    caller: &Caller,
    agent: &AgentId,
    sent_message: SentMessage,
) -> Result<ResumableEvents, Failure> {
    let (history_length, wants_cursors) = (
        sent_message.request.history_length,
        sent_message.metadata.requests_extension(CURSOR_EXTENSION),
    );
    // A stream of a new message has no earlier position, whatever header the client repeats.
    let options = StreamOptions {
        continues_past_questions: false,
        resume_after: None,
        ..stream_options(app, agent, &sent_message.metadata)
    };
    let submit_reply = submit(app, caller, agent, sent_message).await?;
    let record = lookup::find_by_id(app, caller, agent, submit_reply.execution).await?;
    let events = streaming::stream(&app.api, record, options, history_length).await?;
    Ok(if wants_cursors { add_cursors(events) } else { events })
}

/// Streams the events of a task: first a snapshot or, after a known event, all later events. In 0.3 a stream also
/// ends when the agent requests input; in 1.0 it ends with the task, and an ended task cannot be subscribed to.
///
/// # Errors
/// Fails if the caller has no such task at this agent, or if the task has ended.
pub async fn subscribe(
    app: &AppState,
    caller: &Caller,
    agent: &AgentId,
    id: &str,
    (version, metadata): (ProtocolVersion, &TransportMetadata),
) -> Result<ResumableEvents, Failure> {
    let record = lookup::find_by_text_id(app, caller, agent, id).await?;
    // A client that resumes after a known event may still miss the end, so its stream is served.
    let has_ended = record.outcome.is_some() && metadata.resume_after.is_none();
    if has_ended && version == ProtocolVersion::V1_0 {
        return Err(Failure::new(Code::Unsupported, "the task has ended; look it up instead"));
    }
    let continues_past_questions = version == ProtocolVersion::V1_0;
    let options =
        StreamOptions { continues_past_questions, ..stream_options(app, agent, metadata) };
    let events = streaming::stream(&app.api, record, options, HistoryLength::All).await?;
    Ok(if metadata.requests_extension(CURSOR_EXTENSION) { add_cursors(events) } else { events })
}

/// Returns the part of an execution that a caller streams, as far as it does not depend on the operation.
fn stream_options(app: &AppState, agent: &AgentId, metadata: &TransportMetadata) -> StreamOptions {
    let streams_output =
        app.agents.get(agent).is_none_or(|spec| spec.endpoint_config.stream_output);
    let includes_stderr = metadata.requests_extension(STDERR_EXTENSION);
    StreamOptions {
        resume_after: metadata.resume_after.clone(),
        continues_past_questions: false,
        sends_artifacts_at_end: !streams_output,
        includes_stderr,
    }
}

/// Adds the cursor of each event to its metadata, for clients that do not read it beside the event.
fn add_cursors(events: ResumableEvents) -> ResumableEvents {
    Box::pin(events.map_ok(|(cursor, mut event)| {
        let metadata = match &mut event {
            StreamEvent::Task(task) => &mut task.metadata,
            StreamEvent::Message(message) => &mut message.metadata,
            StreamEvent::Status(update) => &mut update.metadata,
            StreamEvent::Artifact(update) => &mut update.metadata,
        };
        metadata.insert(CURSOR_EXTENSION.to_owned(), cursor.to_string().into());
        (cursor, event)
    }))
}

/// Submits a message: a new execution, or the answer to the request of an existing one.
async fn submit(
    app: &AppState,
    caller: &Caller,
    agent: &AgentId,
    sent_message: SentMessage,
) -> Result<SubmitReply, Failure> {
    let SentMessage { version, metadata, request } = sent_message;
    let SendRequest {
        message,
        push_config,
        accepted_output_modes,
        metadata: request_metadata,
        send_mode: _,
        history_length: _,
    } = request;
    if let Some(spec) = app.agents.get(agent) {
        exposure::check_media_types(spec, &message.parts)?;
        // Checked before the message is accepted, because an accepted message is never answered with an error.
        push_config.as_ref().map_or(Ok(()), |_| exposure::check_push(spec))?;
    }
    let continued_task = match &message.task_id {
        None => None,
        Some(id) => Some(lookup::find_by_text_id(app, caller, agent, id).await?),
    };
    if let Some(config) = &push_config {
        // The target is built twice: here for the checks, and below with the id of the execution, which may not exist
        // yet.
        push::check_config(app, caller, version, config)?;
    }
    if let Some(task) = &continued_task {
        message::check_role_and_limits(&message)?;
        if let Some(submit_reply) = answer::answer_interactions(app, caller, task, &message).await?
        {
            if let Some(config) = push_config {
                let target = push::new_target_for_message(app, caller, task.id, version, config)?;
                push::register(app, target, task.last_event_number).await?;
            }
            return Ok(submit_reply);
        }
    }
    let fields = ForwardedRequestFields { accepted_output_modes, metadata: request_metadata };
    let message_and_fields = (message, fields, metadata);
    let request =
        message::build_request(caller, agent, message_and_fields, continued_task.as_ref())?;
    // An agent that was removed meanwhile is refused by the tree, so no check is needed for it here.
    if let Some(spec) = app.agents.get(agent) {
        override_policy::check_params(&spec.override_policy, request.input.params.keys())?;
        let accepted = &request.input.details.request.accepted_output_modes;
        exposure::check_output_modes(spec, accepted)?;
    }
    let submit_reply = app.api.requests.submit(caller, request).await?;
    if let Some(config) = push_config {
        let target =
            push::new_target_for_message(app, caller, submit_reply.execution, version, config)?;
        // Push notifications start after this event: earlier events precede the message.
        push::register(app, target, continued_task.map_or(0, |record| record.last_event_number))
            .await?;
    }
    Ok(submit_reply)
}

/// Returns a task.
///
/// # Errors
/// Fails if the caller has no such task at this agent.
pub async fn get(
    app: &AppState,
    caller: &Caller,
    agent: &AgentId,
    query: TaskQuery,
) -> Result<Task, Failure> {
    let record = lookup::find_by_text_id(app, caller, agent, &query.id).await?;
    TaskView::read(&app.api, &record).await?.task(query.history_length).await
}

/// Lists tasks of the caller, or of all callers for an administrator, most recent status change first.
///
/// # Errors
/// Fails if the request is invalid.
pub async fn list(
    app: &AppState,
    caller: &Caller,
    agent: &AgentId,
    request: ListRequest,
) -> Result<ListPage, Failure> {
    let (query, page_size) = build_page_query(agent, &request)?;
    let ExecutionPage { mut records, total } = app.api.reader.execution_page(caller, query).await?;
    // The query asks for one entry more than the page has.
    let has_more = records.len() > page_size as usize;
    records.truncate(page_size as usize);
    let last = records.last().filter(|_| has_more);
    let next_page_token = last.map(|last| page_cursor::encode((last.status_changed_at(), last.id)));
    let history_length = HistoryLength::Last(request.history_length.unwrap_or(0));
    let mut tasks = Vec::with_capacity(records.len());
    for record in &records {
        let view = TaskView::read(&app.api, record).await?;
        tasks.push(if request.include_artifacts {
            view.task(history_length).await?
        } else {
            view.task_without_artifacts(history_length).await?
        });
    }
    let next_page_token = next_page_token.unwrap_or_default();
    Ok(ListPage { tasks, next_page_token, page_size, total_size: total })
}

/// Returns the query for a page, with one more entry than the page holds to detect its end, and the page size.
fn build_page_query(
    agent: &AgentId,
    request: &ListRequest,
) -> Result<(ExecutionPageQuery, u32), Failure> {
    let invalid_params = |text: &str| Failure::new(Code::InvalidParams, text);
    let size = request.page_size.unwrap_or(DEFAULT_PAGE_SIZE);
    if !(1..=MAX_PAGE_SIZE).contains(&size) {
        return Err(invalid_params("`pageSize` must be from 1 to 100"));
    }
    // Some clients send an empty token for the first page.
    let token = request.page_token.as_deref().filter(|token| !token.is_empty());
    let read_cursor = |token| {
        page_cursor::decode(token).ok_or_else(|| {
            invalid_params("`pageToken` must be the `nextPageToken` of an earlier page")
        })
    };
    let query = ExecutionPageQuery {
        owner: None,
        agent: agent.clone(),
        context: request.context_id.clone().map(ContextId),
        public_state: request.state.map(task::public_state),
        changed_since: request.changed_since,
        after: token.map(read_cursor).transpose()?,
        limit: size + 1,
    };
    Ok((query, size))
}

/// Cancels a task and waits until it has ended.
///
/// # Errors
/// Fails when the caller has no such task at this agent, when the task has ended before, or when its end
/// cannot be recorded.
pub async fn cancel(
    app: &AppState,
    caller: &Caller,
    agent: &AgentId,
    id: &str,
) -> Result<Task, Failure> {
    let record = lookup::find_by_text_id(app, caller, agent, id).await?;
    let (record, progress) = app.api.requests.cancel(caller, record.id).await?;
    // The cancellation is accepted before the process is gone; the answer must show the final state.
    app.api.requests.wait_until_ended(&record, progress).await?;
    // Read again, because the record above is older than the end.
    get(app, caller, agent, TaskQuery { id: id.to_owned(), history_length: HistoryLength::All })
        .await
}

#[cfg(test)]
mod tests {
    use algonius_a2a::v1::TaskState;
    use algonius_actors::model::execution::record::PublicState;
    use algonius_actors::model::id::ExecutionId;

    use super::*;

    fn query(list: &ListRequest) -> Result<(ExecutionPageQuery, u32), Code> {
        build_page_query(&AgentId::new("reviewer").unwrap(), list).map_err(|failure| failure.code)
    }

    #[test]
    fn a_page_has_50_tasks_by_default_and_at_most_100() {
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
    fn a_page_starts_at_its_token() {
        let position = (chrono::DateTime::UNIX_EPOCH, ExecutionId::generate());
        for (token, expected) in [
            (None, Ok(None)),
            (Some(String::new()), Ok(None)),
            (Some(page_cursor::encode(position)), Ok(Some(position))),
            (Some("next".to_owned()), Err(Code::InvalidParams)),
        ] {
            let list = ListRequest { page_token: token, ..ListRequest::default() };
            assert_eq!(query(&list).map(|(query, _)| query.after), expected);
        }
    }

    #[test]
    fn the_filters_of_a_list_request_are_applied() {
        let since = chrono::DateTime::UNIX_EPOCH;
        let list = ListRequest {
            context_id: Some("context-1".to_owned()),
            state: Some(TaskState::InputRequired),
            changed_since: Some(since),
            ..ListRequest::default()
        };
        let (query, _) = query(&list).unwrap();
        assert_eq!(query.context, Some(ContextId("context-1".to_owned())));
        assert_eq!(query.public_state, Some(PublicState::InputRequired));
        assert_eq!((query.changed_since, query.owner), (Some(since), None));
    }
}
