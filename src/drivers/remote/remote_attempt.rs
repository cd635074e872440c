//! One attempt at a remote agent, from the message to the end of its task.

use std::sync::Arc;
use std::time::Duration;

use algonius_a2a::HOPS_EXTENSION;
use algonius_a2a::client::{ClientCall, OutgoingMessage};
use algonius_a2a::v1::{A2aPart, Message, Metadata, PartContent, Role, SendResponse, StreamEvent};
use algonius_actors::driver::AttemptWork;
use algonius_actors::driver::report::Reporter;
use algonius_actors::model::agent::remote::RemoteSpec;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::content::{Content, Part};
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::execution::message_details::{MessageDetails, RequestDetails};
use algonius_actors::model::failure::Failure;
use algonius_actors::ports::ledger::LedgerError;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep, sleep_until};

use super::RemoteStopReceiver;
use super::connection::{RemoteConnections, StreamingResponse, dialect};
use super::conversation::RemoteConversation;
use super::event_stream::RemoteEventStream;
use super::remote_fault::RemoteFault;
use super::task_reader::{RemoteEnd, TaskReader};
use crate::drivers::adapters::event_reader::EventReader;
use crate::drivers::files::file_access::AllowedFolders;

/// Pause before the first request for the state of a task; each further pause is longer by half.
const FIRST_POLL_PAUSE: Duration = Duration::from_millis(500);
/// Longest pause between two requests for the state of a task.
const MAX_POLL_PAUSE: Duration = Duration::from_secs(10);
/// Number of failed requests for the state of a task, one after the other, that end the attempt.
const MAX_POLL_FAULTS: u32 = 5;

/// Attempt at a remote agent.
pub(super) struct RemoteAttempt {
    pub(super) remote: Arc<RemoteSpec>,
    pub(super) connections: RemoteConnections,
    pub(super) work: AttemptWork,
}

/// Reason why the reading of a task stops without an end of the task.
enum ReadError {
    /// A call failed.
    Call(RemoteFault),
    /// The ledger did not commit.
    Ledger(LedgerError),
}

impl From<LedgerError> for ReadError {
    fn from(error: LedgerError) -> Self {
        Self::Ledger(error)
    }
}

impl From<RemoteFault> for ReadError {
    fn from(fault: RemoteFault) -> Self {
        Self::Call(fault)
    }
}

impl RemoteAttempt {
    /// Runs the attempt, and reports its end.
    pub(super) async fn run(self, reporter: Reporter, stop: RemoteStopReceiver) {
        let sessions = Arc::clone(&self.connections.sessions);
        let conversation = match RemoteConversation::find(&self.work, &*sessions).await {
            Ok(conversation) => conversation,
            Err(failure) => return reporter.report_end(Err(failure), None),
        };
        reporter.report_start(None);
        let (allowed_folders, memory_account) =
            (AllowedFolders::none(), self.connections.new_memory_account());
        let event_reader =
            EventReader::for_messages(&reporter, &self.work, &allowed_folders, &memory_account);
        let message = self.build_message(&conversation);
        let unknown_reference_count = self.work.request.input.details.reference_tasks.len()
            - message.message.reference_task_ids.len();
        let supports_references = dialect(&self.remote).supports_task_references();
        if let Some(message) =
            unknown_references_warning(unknown_reference_count, supports_references)
            && let Err(error) = reporter.record_event(EventKind::Warning { message }).await
        {
            return reporter.report_end(Err(ledger_failure(&error)), None);
        }
        let mut reader = TaskReader::new(event_reader, conversation);
        let follow_result = self.follow_until_stopped(message, &mut reader, stop).await;
        let conversation = reader.conversation().clone();
        // The task waits for credentials that nobody will give to it, so it would wait for ever.
        let is_stuck = matches!(follow_result, Ok(Some(RemoteEnd::AuthRequired)));
        if let (true, Some(task)) = (is_stuck, &conversation.task) {
            self.cancel(task).await;
        }
        let is_stopped = matches!(follow_result, Ok(None));
        let close_result = match follow_result {
            Ok(_) => reader.close().await,
            Err(ReadError::Ledger(error)) => Err(error),
            Err(ReadError::Call(fault)) => match reader.report_fault(&fault).await {
                Ok(()) => reader.close().await,
                Err(error) => Err(error),
            },
        };
        let summary = match close_result {
            Ok(summary) => summary,
            Err(error) => return reporter.report_end(Err(ledger_failure(&error)), None),
        };
        // Before the report: after it the next message of the conversation may start and look for the task.
        if let Err(error) = conversation.store(&self.work, (&*sessions, &reporter)).await {
            tracing::error!(execution = %self.work.execution, %error, "failed to store session");
        }
        if is_stopped {
            let message = "the task of the remote agent was canceled";
            return reporter.report_end(Err(Failure::new(Code::Cancelled, message)), None);
        }
        reporter.publish_raw_answer(summary.answer_text.raw());
        match (summary.reported_result.failure, summary.required_input) {
            (Some(failure), _) => reporter.report_end(Err(failure), None),
            (None, Some(required_input)) => reporter.report_input_required(required_input, None),
            (None, None) => reporter.report_end(Ok(()), None),
        }
    }

    /// Follows the task to its end. Returns `None` if the attempt was stopped; the task is cancelled then.
    async fn follow_until_stopped(
        &self,
        message: OutgoingMessage,
        reader: &mut TaskReader<'_>,
        mut stop: RemoteStopReceiver,
    ) -> Result<Option<RemoteEnd>, ReadError> {
        let mut task_id_receiver = reader.task_id_receiver();
        let mut following = std::pin::pin!(self.send_and_follow(message, reader));
        tokio::select! {
            end = &mut following => return end.map(Some),
            () = stop.wait_for_stop() => {}
        }
        // A task can be cancelled once its id has arrived.
        let task_id = tokio::select! {
            _ = following => None,
            task = task_id_receiver.wait_for(Option::is_some) => task.ok().and_then(|task| task.clone()),
            () = sleep(self.work.spec.limits.timeouts.grace) => None,
        };
        if let Some(task) = task_id {
            self.cancel(&task).await;
        }
        Ok(None)
    }

    /// Sends the message, and follows its task to its end.
    async fn send_and_follow(
        &self,
        message: OutgoingMessage,
        reader: &mut TaskReader<'_>,
    ) -> Result<RemoteEnd, ReadError> {
        let stream_response =
            self.connections.open_stream(&self.remote, ClientCall::Stream(message.clone())).await;
        let mut break_cause = None;
        let end = match stream_response {
            Ok(StreamingResponse::Events(mut events)) => {
                let end = self.read_stream(&mut events, reader).await?;
                break_cause = events.break_cause().map(str::to_owned);
                end
            }
            Ok(StreamingResponse::Document(document)) => {
                self.handle_result(document, reader).await?
            }
            // The agent does not stream. It refused the message, so the message starts no second task.
            Err(fault) if fault.is_unsupported() => self.send_message(message, reader).await?,
            Err(fault) => return Err(fault.into()),
        };
        match (end, reader.conversation().task.clone()) {
            (Some(end), _) => Ok(end),
            // The stream broke, which does not end the task.
            (None, Some(task)) => self.poll_until_end(task, reader).await,
            (None, None) => Err(RemoteFault::for_stream_without_task(break_cause).into()),
        }
    }

    /// Reads a stream to its end, or to the end of the task.
    async fn read_stream(
        &self,
        events: &mut RemoteEventStream,
        reader: &mut TaskReader<'_>,
    ) -> Result<Option<RemoteEnd>, ReadError> {
        let mut release_timer = reader.release_timer();
        loop {
            let event = tokio::select! {
                biased;
                event = events.next() => Some(event?),
                () = release_timer.wait_until_due() => None,
            };
            let bytes_unless_due: Option<&[u8]> = event.is_some().then_some(&[]);
            match event {
                Some(Some(document)) => {
                    let answer = dialect(&self.remote).parse_result(document);
                    let result = answer.map_err(|error| RemoteFault::ErrorResponse {
                        status: hyper::StatusCode::OK,
                        retry_after: None,
                        error,
                    })?;
                    if let Some(end) = self.handle_result(result, reader).await? {
                        return Ok(Some(end));
                    }
                    release_timer.mark_read();
                }
                Some(None) => return Ok(None),
                None => {}
            }
            if release_timer.must_release(bytes_unless_due) {
                reader.release_visible_text().await?;
                release_timer.mark_released();
            }
        }
    }

    /// Takes the result of one event.
    async fn handle_result(
        &self,
        result: Value,
        reader: &mut TaskReader<'_>,
    ) -> Result<Option<RemoteEnd>, ReadError> {
        let event = dialect(&self.remote).parse_event(result);
        let event = event.map_err(|failure| RemoteFault::from_invalid_document(&failure))?;
        Ok(reader.handle_event(event).await?)
    }

    /// Sends the message to an agent that does not stream.
    async fn send_message(
        &self,
        message: OutgoingMessage,
        reader: &mut TaskReader<'_>,
    ) -> Result<Option<RemoteEnd>, ReadError> {
        let result = self.connections.call(&self.remote, ClientCall::Send(message)).await?;
        let reply = dialect(&self.remote)
            .parse_send_response(result)
            .map_err(|failure| RemoteFault::from_invalid_document(&failure))?;
        let event = match reply {
            SendResponse::Task(task) => StreamEvent::Task(task),
            SendResponse::Message(message) => StreamEvent::Message(message),
        };
        Ok(reader.handle_event(event).await?)
    }

    /// Requests the state of a task until the task has ended.
    async fn poll_until_end(
        &self,
        task: String,
        reader: &mut TaskReader<'_>,
    ) -> Result<RemoteEnd, ReadError> {
        let (mut pause, mut faults) = (FIRST_POLL_PAUSE, 0);
        loop {
            sleep(pause).await;
            pause = (pause * 3 / 2).min(MAX_POLL_PAUSE);
            let response = self.connections.call(&self.remote, ClientCall::Get(task.clone())).await;
            let result = match response {
                Ok(result) => result,
                Err(fault) if fault.is_transient() && faults < MAX_POLL_FAULTS => {
                    faults += 1;
                    continue;
                }
                Err(fault) => return Err(fault.into()),
            };
            faults = 0;
            let task = dialect(&self.remote).parse_task(result);
            let task = task.map_err(|failure| RemoteFault::from_invalid_document(&failure))?;
            if let Some(end) = reader.handle_event(StreamEvent::Task(task)).await? {
                return Ok(end);
            }
            reader.release_visible_text().await?;
        }
    }

    /// Cancels a remote task, within the grace period of the agent. A task that has ended already is no fault.
    async fn cancel(&self, task: &str) {
        let call = ClientCall::Cancel(task.to_owned());
        let deadline = Instant::now() + self.work.spec.limits.timeouts.grace;
        tokio::select! {
            canceled = self.connections.call(&self.remote, call) => {
                if let Err(fault) = canceled {
                    let execution = self.work.execution;
                    tracing::warn!(%execution, ?fault, "failed to cancel remote task");
                }
            }
            () = sleep_until(deadline) => {
                let execution = self.work.execution;
                tracing::warn!(%execution, "remote service did not answer the cancellation");
            }
        }
    }

    /// Returns the message for the remote agent. Every attempt of a turn has the same message id, by which a service
    /// recognises a repeated message.
    fn build_message(&self, conversation: &RemoteConversation) -> OutgoingMessage {
        let AttemptWork { execution, attempt_id, request, .. } = &self.work;
        let MessageDetails {
            mut metadata,
            part_metadata: _,
            extensions,
            reference_tasks,
            request:
                RequestDetails {
                    metadata: request_metadata,
                    accepted_output_modes,
                    requested_extensions,
                },
        } = request.input.details.clone();
        // Counted before the message is passed on, so that a loop of services ends.
        let hops = json!({"count": request.origin.service_hops.saturating_add(1)});
        metadata.insert(HOPS_EXTENSION.to_owned(), hops);
        let parts = request.input.parts.iter().cloned().enumerate().map(|(index, part)| {
            let metadata = request.input.details.metadata_of_part(index);
            let metadata = metadata.cloned().unwrap_or_default();
            A2aPart { metadata, ..to_a2a_part(part) }
        });
        let message = Message {
            message_id: format!("{execution}-{}", attempt_id.turn),
            context_id: conversation.context.clone(),
            task_id: conversation.task.clone(),
            role: Role::User,
            parts: parts.collect(),
            metadata,
            extensions,
            reference_task_ids: match dialect(&self.remote).supports_task_references() {
                true => conversation.translate_references(&reference_tasks),
                false => Vec::new(),
            },
        };
        let metadata = request_metadata;
        OutgoingMessage { message, accepted_output_modes, metadata, requested_extensions }
    }
}

/// Returns the warning that the remote agent does not get some of the tasks to which the message refers.
fn unknown_references_warning(count: usize, supports_references: bool) -> Option<String> {
    let reason = match supports_references {
        true => "it gets only the id of the previous task of this conversation, which is its own",
        false => "its messages over HTTP in A2A 0.3 have no references",
    };
    (count > 0).then(|| {
        format!(
            "the remote agent does not get the ids of {count} tasks to which the message refers: {reason}"
        )
    })
}

fn ledger_failure(error: &LedgerError) -> Failure {
    tracing::error!(%error, "failed to persist output of remote agent");
    Failure::new(Code::LedgerUnavailable, "the answer could not be recorded")
}

fn to_a2a_part(part: Part) -> A2aPart {
    let Part { content, filename, media_type } = part;
    let content = match content {
        Content::Text(text) => PartContent::Text(text),
        Content::Bytes(bytes) => PartContent::Raw(bytes),
        Content::Url(url) => PartContent::Url(url),
        Content::Data(data) => PartContent::Data(data),
    };
    A2aPart { content, filename, media_type, metadata: Metadata::new() }
}
