//! Handler of a program's events: shows the answer, stores messages and artifacts, and records everything else.

use algonius_actors::decide::budget::cumulative_usage::CumulativeUsage;
use algonius_actors::decide::output::artifact_stream::ArtifactPiece;
use algonius_actors::driver::AttemptWork;
use algonius_actors::driver::report::Reporter;
use algonius_actors::model::execution::Interruption;
use algonius_actors::model::execution::content::{Content, Part};
use algonius_actors::model::execution::event::{AgentStep, EventKind, MessageRole as Role};
use algonius_actors::ports::ledger::LedgerError;

use super::answer::AnswerRecorder;
use super::completion::CompletionReport;
use super::ids::OutputIdGenerator;
use super::malformed_lines::MalformedLines;
use super::part_recorder::PartRecorder;
use super::step_recorder::StepRecorder;
use crate::drivers::adapters::event_line::{
    EventContent, ProgramEvent, ReportedArtifact, ResultLoss,
};
use crate::drivers::adapters::file_parts;
use crate::drivers::files::file_access::AllowedFolders;
use crate::drivers::output::display_label::{redacted_display_text, redacted_id};
use crate::drivers::output::raw_text::LongTextStorage;

/// Warning about a file in another form.
const FILE_IS_TEXT_WARNING: &str = "an event has a `file` that is a text, which was not delivered; a file is an object, such \
                            as {\"path\": \"report.pdf\"}";

/// State of handling a program's events.
pub(super) struct EventHandler<'r> {
    pub(super) reporter: &'r Reporter,
    pub(super) allowed_folders: &'r AllowedFolders,
    pub(super) answer: AnswerRecorder<'r>,
    pub(super) part_recorder: PartRecorder<'r>,
    pub(super) steps: StepRecorder<'r>,
    /// Number of the line of the latest event, 0 before the first line.
    pub(super) line_number: u64,
    pub(super) malformed_lines: MalformedLines<'r>,
    pub(super) id_generator: OutputIdGenerator,
    pub(super) completion: CompletionReport,
    pub(super) counters: CumulativeUsage,
    pub(super) session_id: Option<String>,
}

impl<'r> EventHandler<'r> {
    /// Opens the channels of the answer and of parts. `is_last_message_answer` is true if the answer is the last of
    /// several messages.
    pub(super) fn open(
        reporter: &'r Reporter,
        work: &AttemptWork,
        allowed_folders: &'r AllowedFolders,
        (is_last_message_answer, storage): (bool, LongTextStorage),
    ) -> Self {
        let limit = work.spec.limits.sizes.max_output_bytes;
        Self {
            reporter,
            allowed_folders,
            answer: AnswerRecorder::open(reporter, is_last_message_answer, (limit, storage)),
            part_recorder: PartRecorder::open(reporter, limit),
            steps: StepRecorder::new(reporter),
            line_number: 0,
            malformed_lines: MalformedLines::new(reporter),
            id_generator: OutputIdGenerator::for_attempt(work),
            completion: CompletionReport::default(),
            counters: CumulativeUsage::from_totals(reporter.session_usage_counters()),
            session_id: None,
        }
    }

    /// Returns a text of the program in its redacted and shortened form.
    pub(super) fn redact(&self, text: &str) -> String {
        redacted_display_text(self.reporter, text)
    }

    /// Records a warning, whose text may contain words of the program.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn warn(&mut self, message: &str) -> Result<(), LedgerError> {
        let message = self.redact(message);
        self.part_recorder.record_event_within_limit(EventKind::Warning { message }).await
    }

    /// Records that the agent does not know the session of the conversation.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn record_lost_session(&mut self, message: &str) -> Result<(), LedgerError> {
        let message = message.to_owned();
        self.part_recorder.record_event_within_limit(EventKind::SessionLost { message }).await
    }

    /// Handles an event.
    ///
    /// # Errors
    /// Fails if the ledger did not commit.
    pub(super) async fn handle(&mut self, event: ProgramEvent) -> Result<(), LedgerError> {
        match event {
            ProgramEvent::Text { text } | ProgramEvent::DraftText { text } => {
                self.malformed_lines.clear_result_ended();
                return self.answer.extend(&text).await;
            }
            ProgramEvent::DraftSuperseded => return self.supersede().await,
            ProgramEvent::DraftAccepted => self.answer.accept(),
            ProgramEvent::Artifact(artifact) => return self.handle_artifact(artifact).await,
            ProgramEvent::Status { state, content } if state == "completed" => {
                return self.report_message(Role::AgentOutcome, content).await;
            }
            ProgramEvent::Status { content, .. } => {
                return self.report_message(Role::AgentProgress, content).await;
            }
            ProgramEvent::Message { content } => {
                return self.report_message(Role::AgentAnswer, Some(content)).await;
            }
            ProgramEvent::InputRequired { content } => {
                self.completion.record_required_input(Interruption::InputRequired);
                return self.report_message(Role::AgentQuestion, content).await;
            }
            ProgramEvent::AuthRequired { url, content } => {
                return self.report_auth_request(url, content).await;
            }
            ProgramEvent::Rejected { message } => {
                self.completion.record_rejection(&self.redact(&message));
            }
            ProgramEvent::Failed(reported) => self.record_failure(&reported),
            ProgramEvent::Usage { fields, cumulative } => {
                return self.record_usage(fields, cumulative).await;
            }
            ProgramEvent::Session { id } => return self.record_session(&id).await,
            ProgramEvent::Stop { reason } => return self.record_stop(&reason).await,
            ProgramEvent::Thinking {} => return self.steps.record(AgentStep::Thinking).await,
            ProgramEvent::ToolCall { id, tool, stage } => {
                let (id, tool) = (id.map(|id| self.redact(&id)), self.redact(&tool));
                return self.steps.record(AgentStep::ToolCall { id, tool, stage }).await;
            }
            ProgramEvent::FileChange { path, change } => {
                let path = self.redact(&self.allowed_folders.display_path(&path));
                return self.steps.record(AgentStep::FileChange { path, change }).await;
            }
            ProgramEvent::PermissionDenied { tool } => {
                let tool = self.redact(&tool);
                self.completion.record_denial(tool.clone());
                return self.steps.record(AgentStep::Denied { tool }).await;
            }
            ProgramEvent::ModelRequestsFailed { count } => self.reporter.add_failed_requests(count),
            ProgramEvent::Malformed(error) => {
                return self.malformed_lines.record(self.line_number, &error).await;
            }
            ProgramEvent::PreviousFileIsText => return self.warn(FILE_IS_TEXT_WARNING).await,
            ProgramEvent::WholeAnswerRepeated => self.malformed_lines.forget_lost_results(),
            ProgramEvent::Unknown => {
                return self.report_malformed("has an unknown `type`", ResultLoss::Possible).await;
            }
        }
        Ok(())
    }

    /// Records the previous message as progress, because another message follows.
    async fn supersede(&mut self) -> Result<(), LedgerError> {
        self.malformed_lines.clear_result_ended();
        let Some(stored_part) = self.answer.supersede().await? else { return Ok(()) };
        // The text is in the ledger already, so the message only refers to it.
        let (role, message_id) = (Role::AgentProgress, self.id_generator.next_message_id());
        self.reporter.record_event(EventKind::message(role, message_id, vec![stored_part])).await
    }

    /// Records the message of the program about the authentication that it needs, and the page for it. Without either,
    /// the task shows a message of the service.
    async fn report_auth_request(
        &mut self,
        url: Option<String>,
        content: Option<EventContent>,
    ) -> Result<(), LedgerError> {
        self.completion.record_required_input(Interruption::AuthRequired);
        let mut parts = Vec::new();
        if content.is_some() {
            // The page alone is enough for the caller.
            let loss = if url.is_some() { ResultLoss::Possible } else { ResultLoss::Likely };
            parts = self
                .read_content(content, loss, (Role::AgentQuestion, None))
                .await?
                .unwrap_or_default();
        }
        parts.extend(url.map(|url| Part {
            content: Content::Url(url),
            filename: None,
            media_type: Some("text/html".to_owned()),
        }));
        if parts.is_empty() { Ok(()) } else { self.store_message(Role::AgentQuestion, parts).await }
    }

    async fn report_message(
        &mut self,
        role: Role,
        content: Option<EventContent>,
    ) -> Result<(), LedgerError> {
        let loss = match (&content, role) {
            (None, _) => ResultLoss::None,
            (Some(_), Role::AgentProgress) => ResultLoss::Possible,
            (Some(_), _) => ResultLoss::Likely,
        };
        let Some(parts) = self.read_content(content, loss, (role, None)).await? else {
            return Ok(());
        };
        if role != Role::AgentProgress {
            self.completion.mark_output_outside_answer();
        }
        self.store_message(role, parts).await
    }

    async fn store_message(&mut self, role: Role, parts: Vec<Part>) -> Result<(), LedgerError> {
        let Some(stored_parts) = self.part_recorder.store_message_parts(role, parts).await? else {
            return Ok(());
        };
        let message_id = self.id_generator.next_message_id();
        self.reporter.record_event(EventKind::message(role, message_id, stored_parts)).await
    }

    async fn handle_artifact(&mut self, reported: ReportedArtifact) -> Result<(), LedgerError> {
        let ReportedArtifact { id, name, description, content, append, last } = reported;
        let id = id.map(|id| redacted_id(self.reporter, &id));
        let (name, description) =
            (name.map(|text| self.redact(&text)), description.map(|text| self.redact(&text)));
        // The id is assigned even if the artifact fails: an append without an id continues this one.
        let id = self.id_generator.assign_artifact_id(id, append);
        let dropped_before = self.part_recorder.dropped_bytes();
        let (loss, role_and_id) = (ResultLoss::Likely, (Role::AgentAnswer, Some(id.as_str())));
        let Some(parts) = self.read_content(Some(content), loss, role_and_id).await? else {
            self.part_recorder.mark_artifact_incomplete(&id, dropped_before);
            return Ok(());
        };
        self.completion.mark_output_outside_answer();
        if !append {
            self.completion.mark_delivered(&id);
        }
        self.part_recorder
            .store_artifact(ArtifactPiece { id, name, description, parts, append, last })
            .await
    }

    /// Returns the parts of the content, with the files that they name. If one file cannot be read, returns no parts
    /// and records a warning. `loss` is what is lost with content that makes no sense.
    async fn read_content(
        &mut self,
        content: Option<EventContent>,
        loss: ResultLoss,
        (role, artifact_id): (Role, Option<&str>),
    ) -> Result<Option<Vec<Part>>, LedgerError> {
        let Some(parts) = content.and_then(EventContent::into_parts) else {
            self.report_malformed("has no parts that can be read", loss).await?;
            return Ok(None);
        };
        let space = self.part_recorder.available_bytes(role);
        match file_parts::read_parts(parts, self.allowed_folders, space).await {
            Ok(parts) => Ok(Some(parts)),
            Err(undelivered) => {
                self.record_undelivered_file(&undelivered, (role, artifact_id)).await.map(|()| None)
            }
        }
    }
}
