//! Message with a streamed answer: progress, requests for input and Ctrl-C.

use std::io::{self, IsTerminal};

use algonius_a2a::STDERR_EXTENSION;
use hyper::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::answer_printer::AnswerPrinter;
use super::pending_question::{PausedExecution, PendingQuestion, PromptResult};
use super::typed_lines::TypedLines;
use super::{message_text, report_outcome, text_at};
use crate::cli::client::error_response::take_rpc_result;
use crate::cli::client::sse_stream::SseStream;
use crate::cli::client::{RequestHeader, ServiceClient};
use crate::cli::error::CliError;
use crate::cli::output::CliOutput;
use crate::cli::output::progress::ProgressLine;
use crate::wire::api::ErrorBody;

/// Maximum number of consecutive attempts to resume a broken stream.
const MAX_RESUME_ATTEMPTS: u32 = 5;

/// Task whose stream is shown.
pub(crate) struct StreamedSend<'d> {
    client: &'d ServiceClient,
    agent: &'d str,
    out: &'d CliOutput,
    progress: ProgressLine,
    /// Signal of Ctrl-C, received from the start on.
    interrupt: Signal,
    /// Id of the task, once it is known.
    task_id: Option<String>,
    state: String,
    answer_printer: AnswerPrinter<'d>,
    /// True if the standard error of the program is shown.
    shows_stderr: bool,
    /// True if the user has canceled the task.
    is_cancelled: bool,
    /// End of the last reported deferral.
    deferred_until: String,
    typed_lines: TypedLines,
}

/// Request that opens a stream: its method and its parameters.
type StreamRequest = (&'static str, Value);

/// Reason why the stream pauses.
enum PauseReason {
    /// The task has ended.
    Ended,
    /// The agent requests this input.
    InputRequired(Box<PendingQuestion>),
}

impl<'d> StreamedSend<'d> {
    /// Creates the dialogue without sending anything.
    ///
    /// # Errors
    /// Fails if this process cannot receive signals.
    pub(crate) fn new(
        client: &'d ServiceClient,
        agent: &'d str,
        (out, shows_stderr): (&'d CliOutput, bool),
    ) -> Result<Self, CliError> {
        let interrupt = signal(SignalKind::interrupt());
        Ok(Self {
            client,
            agent,
            out,
            progress: ProgressLine::start(!out.is_json()),
            interrupt: interrupt.map_err(|source| CliError::Input { source })?,
            task_id: None,
            state: String::new(),
            answer_printer: AnswerPrinter::new(out),
            shows_stderr,
            is_cancelled: false,
            deferred_until: String::new(),
            typed_lines: TypedLines::default(),
        })
    }

    /// Sends the message, shows the stream, forwards requests for input to the person at the terminal, and reports
    /// the end.
    pub(crate) async fn run(mut self, params: Value) -> Result<(), CliError> {
        self.progress.set_text("sent");
        let mut request: StreamRequest = ("message/stream", params);
        loop {
            let pause = match self.read_until_pause(request).await {
                Err(CliError::RequestRefused(refusal))
                    if self.task_id.is_some()
                        && leaves_task_open(&refusal)
                        && self.can_prompt() =>
                {
                    // The status of the task names the question that is open now.
                    self.progress.clear();
                    self.out.print_note(&refusal.message);
                    self.resume_after_refusal().await?
                }
                pause => pause?,
            };
            let PauseReason::InputRequired(question) = pause else {
                return self.report_end().await;
            };
            if !self.can_prompt() {
                return self.report_end().await;
            }
            request = match self.prompt(&question).await? {
                PromptResult::Answered(params) => ("message/stream", params),
                PromptResult::Closed => ("tasks/resubscribe", json!({"id": self.task_id})),
                PromptResult::Abandoned => return self.report_end().await,
            };
        }
    }

    /// Reads to the end or to a request for input. A broken stream is resumed.
    async fn read_until_pause(&mut self, request: StreamRequest) -> Result<PauseReason, CliError> {
        let mut stream = self.open_stream(request, None).await?;
        let mut resume_attempts = 0;
        loop {
            let error = match self.next_event(&mut stream).await {
                Ok(Some(event)) => {
                    resume_attempts = 0;
                    match self.handle_event(&event) {
                        Some(pause) => return Ok(pause),
                        None => continue,
                    }
                }
                Ok(None) => {
                    CliError::UnexpectedResponse { reason: "the stream ended before the task did" }
                }
                Err(error @ (CliError::ConnectionLost { .. } | CliError::Unreachable { .. })) => {
                    error
                }
                Err(error) => return Err(error),
            };
            // Without an id nothing can be resumed, and to send the message again could run it twice.
            let Some(task_id) =
                self.task_id.clone().filter(|_| resume_attempts < MAX_RESUME_ATTEMPTS)
            else {
                return Err(error);
            };
            resume_attempts += 1;
            self.progress.set_text("connection lost, resuming");
            self.progress.tick().await;
            // The cursor of the last event prevents duplicates.
            let cursor = stream.cursor().and_then(|cursor| HeaderValue::from_str(cursor).ok());
            let request = ("tasks/resubscribe", json!({"id": task_id}));
            match self.open_stream(request, cursor).await {
                Ok(opened) => stream = opened,
                Err(CliError::Unreachable { .. }) => {} // It is tried again.
                Err(error) => return Err(error),
            }
        }
    }

    /// Opens a stream, unless Ctrl-C interrupts it.
    async fn open_stream(
        &mut self,
        request: StreamRequest,
        cursor: Option<HeaderValue>,
    ) -> Result<SseStream, CliError> {
        let header_name = HeaderName::from_static;
        let cursor = cursor.map(|cursor| (header_name("last-event-id"), cursor));
        let stderr_header =
            (header_name("x-a2a-extensions"), HeaderValue::from_static(STDERR_EXTENSION));
        // Standard error is sent only to callers that request the extension.
        let stderr_header = self.shows_stderr.then_some(stderr_header);
        let headers: Vec<RequestHeader> = cursor.into_iter().chain(stderr_header).collect();
        tokio::select! {
            opened = self.client.open_rpc_stream(self.agent, request, &headers) => {
                opened.map(SseStream::new)
            }
            () = self.out.wait_for_stdout_failure() => Err(self.output_error()),
            _ = self.interrupt.recv() => Err(self.detached_error()),
        }
    }

    /// Returns the next event. Ctrl-C cancels the task; a second Ctrl-C detaches from it.
    async fn next_event(&mut self, stream: &mut SseStream) -> Result<Option<Value>, CliError> {
        loop {
            tokio::select! {
                event = stream.next() => {
                    let Some(event) = event? else { return Ok(None) };
                    let invalid_event = |_| CliError::UnexpectedResponse { reason: "an event is not JSON" };
                    let response = serde_json::from_str(&event.data).map_err(invalid_event)?;
                    return take_rpc_result(response).map(Some);
                }
                () = self.progress.tick() => {}
                () = self.out.wait_for_stdout_failure() => return Err(self.output_error()),
                _ = self.interrupt.recv() => self.cancel_or_detach().await?,
            }
        }
    }

    async fn cancel_or_detach(&mut self) -> Result<(), CliError> {
        self.progress.clear();
        let Some(task_id) = self.task_id.clone().filter(|_| !self.is_cancelled) else {
            return Err(self.detached_error());
        };
        self.is_cancelled = true;
        self.out.print_note("cancelling the task; press Ctrl-C again to detach from it");
        let path = format!("/api/v1/executions/{task_id}/cancel");
        tokio::select! {
            // A task that has ended meanwhile needs no cancellation; the stream reports its end.
            response = self.client.post::<Value>(&path, json!({})) => {
                if let Err(error) = response {
                    self.out.print_note(&format!("the task was not cancelled: {error}"));
                }
                Ok(())
            }
            _ = self.interrupt.recv() => Err(self.detached_error()),
        }
    }

    /// Returns the error of standard output. The task goes on.
    fn output_error(&self) -> CliError {
        let source =
            self.out.take_write_error().err().unwrap_or_else(|| io::ErrorKind::Other.into());
        CliError::ExecutionOutput { task_id: self.task_id.clone().unwrap_or_default(), source }
    }

    fn detached_error(&self) -> CliError {
        let task_id = self.task_id.as_ref().map_or(String::new(), |task_id| format!(" {task_id}"));
        let message = format!("detached from the task; `algonius tasks watch{task_id}` follows it");
        CliError::ExecutionNotSucceeded { message, error_body: None }
    }

    /// Processes an event.
    fn handle_event(&mut self, event: &Value) -> Option<PauseReason> {
        if self.out.is_json() {
            self.out.print_json_document(&event.to_string());
        }
        let kind = event.get("kind").and_then(Value::as_str).unwrap_or_default();
        match kind {
            "artifact-update" => {
                self.answer_printer.print_update(event, &mut self.progress);
                None
            }
            _ => self.handle_status(event, kind),
        }
    }

    /// Processes a state; returns the reason for a pause, if there is one.
    fn handle_status(&mut self, event: &Value, kind: &str) -> Option<PauseReason> {
        let id = if kind == "task" { "/id" } else { "/taskId" };
        let id = event.pointer(id).and_then(Value::as_str).map(str::to_owned);
        self.task_id = id.or_else(|| self.task_id.take());
        text_at(event, "/status/state").clone_into(&mut self.state);
        let stderr = text_at(event, "/metadata/stderr/text");
        if !stderr.is_empty() {
            if !self.out.is_json() {
                self.progress.clear();
                self.out.print_stderr(stderr);
            }
            return None;
        }
        let message = message_text(event.pointer("/status/message"));
        let progress_text = if message.is_empty() { self.state.clone() } else { message.clone() };
        // Steps and heartbeats have no message. They may arrive between a message and the next one.
        if !message.is_empty() {
            self.answer_printer.set_status_message(&message);
        }
        self.progress.set_text(&progress_text);
        self.report_deferral(event, &message);
        self.pause_reason(event, message)
    }

    /// Returns the reason why a stream pauses after an event with this message.
    fn pause_reason(&self, event: &Value, message: String) -> Option<PauseReason> {
        match self.state.as_str() {
            "completed" | "failed" | "canceled" | "rejected" => Some(PauseReason::Ended),
            state => {
                let question = PendingQuestion::from_status(event, state, message);
                question.map(|question| PauseReason::InputRequired(Box::new(question)))
            }
        }
    }

    /// Reads the task once more. If it has neither ended nor an open question, follows it until its next pause.
    async fn resume_after_refusal(&mut self) -> Result<PauseReason, CliError> {
        let params = json!({"id": self.task_id});
        let task = self.client.call_rpc(self.agent, "tasks/get", params).await?;
        text_at(&task, "/status/state").clone_into(&mut self.state);
        let message = message_text(task.pointer("/status/message"));
        match self.pause_reason(&task, message) {
            Some(pause) => Ok(pause),
            None => self.read_until_pause(("tasks/resubscribe", json!({"id": self.task_id}))).await,
        }
    }

    /// Reports once that the task is deferred and until when, even without a terminal: the deferral may last hours.
    fn report_deferral(&mut self, event: &Value, message: &str) {
        let until = text_at(event, "/status/message/metadata/until");
        if until.is_empty() || until == self.deferred_until || self.out.is_json() {
            return;
        }
        until.clone_into(&mut self.deferred_until);
        let task_id = self.task_id.as_deref().unwrap_or_default();
        self.progress.clear();
        self.out.print_note(&format!(
            "{message}\n  hint: it goes on by itself. Ctrl-C cancels it; `algonius send --no-wait` does not wait, and \
             `algonius tasks watch {task_id}` follows it later"
        ));
    }

    fn can_prompt(&self) -> bool {
        let is_terminal = io::stdin().is_terminal() && io::stderr().is_terminal();
        is_terminal && !self.out.is_json() && !self.is_cancelled
    }

    /// Shows a question to the person at the terminal, until Ctrl-C cancels the task.
    async fn prompt(&mut self, question: &PendingQuestion) -> Result<PromptResult, CliError> {
        self.progress.clear();
        self.answer_printer.reset();
        let task_id = self.task_id.clone().unwrap_or_default();
        let task = PausedExecution { client: self.client, agent: self.agent, id: &task_id };
        tokio::select! {
            result = question.ask(&task, &mut self.typed_lines, self.out) => result,
            _ = self.interrupt.recv() => {
                self.cancel_or_detach().await?;
                Ok(PromptResult::Abandoned)
            }
        }
    }

    /// Reports the end. Requests the whole answer, because the stream also contains the pieces of failed attempts.
    async fn report_end(mut self) -> Result<(), CliError> {
        self.progress.clear();
        let Some(task) = &self.task_id else {
            return Err(CliError::UnexpectedResponse { reason: "the stream has no task" });
        };
        let task = self.client.call_rpc(self.agent, "tasks/get", json!({"id": task})).await?;
        if self.out.is_json() {
            return report_outcome((self.client, self.agent), &task, |_| {}, self.out).await;
        }
        let print = |full_text: &str| self.answer_printer.print_rest(full_text);
        report_outcome((self.client, self.agent), &task, print, self.out).await
    }
}

/// Returns true after a refusal of an answer that leaves the task open: the answer did not suit the question, the
/// question was closed or changed before the answer arrived, or somebody else must answer.
fn leaves_task_open(refusal: &ErrorBody) -> bool {
    matches!(
        &*refusal.code,
        "answer-invalid" | "interaction-closed" | "interaction-changed" | "forbidden"
    )
}
