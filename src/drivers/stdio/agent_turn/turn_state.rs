//! State of a turn, and its end.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::content::{Content, Part};
use algonius_actors::model::execution::event::{FileChange, ToolStage};
use algonius_actors::model::failure::Failure;
use algonius_actors::ports::ledger::LedgerError;
use algonius_protocols::{
    AnswerAttachment, ContentValue, TextRole, TokenUsage, ToolCall, ToolStatus, TurnOutcome,
};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};
use serde_json::{Map, Value};
use tokio::time::{Instant, sleep_until};

use super::open_requests::tool_name;
use crate::drivers::adapters::event_line::{EventContent, ProgramEvent, ReportedArtifact};
use crate::drivers::adapters::event_reader::EventReader;

/// State of a turn that outlives a step.
pub(super) struct TurnState {
    /// Longest time until the session is open.
    session_open_timeout: Duration,
    /// Time at which a session that is not open fails the turn; `None` once it is open.
    pub(super) session_open_deadline: Option<Instant>,
    pub(super) answer: AnswerProgress,
    /// Stages of tool calls that were shown.
    reported_stages: HashMap<String, ToolStage>,
    reported_file_changes: HashSet<String>,
    /// Number of tool calls that were denied.
    pub(super) denied_call_count: usize,
    is_cancelled: bool,
    pub(super) is_over: bool,
    pub(super) failure: Option<Failure>,
}

impl TurnState {
    /// Returns the state of a turn whose session must be open after this time.
    pub(super) fn new(session_open_timeout: Duration) -> Self {
        Self {
            session_open_timeout,
            session_open_deadline: Some(Instant::now() + session_open_timeout),
            answer: AnswerProgress::default(),
            reported_stages: HashMap::new(),
            reported_file_changes: HashSet::new(),
            denied_call_count: 0,
            is_cancelled: false,
            is_over: false,
            failure: None,
        }
    }

    /// Waits until the session should be open; forever if it is open.
    pub(super) async fn wait_until_session_open_deadline(&self) {
        match self.session_open_deadline {
            Some(deadline) => sleep_until(deadline).await,
            None => std::future::pending().await,
        }
    }

    /// Fails a turn whose session was not opened in time.
    pub(super) fn fail_opening(&mut self, event_reader: &mut EventReader<'_>) {
        let seconds = self.session_open_timeout.as_secs_f64();
        let message = format!("the agent opened no session within {seconds} s");
        self.record_failure(Failure::new(Code::SessionNotOpened, message));
        self.fail_unless_over(event_reader);
    }

    /// Records that the turn is cancelled by order.
    pub(super) const fn record_cancel(&mut self) {
        self.is_cancelled = true;
    }

    /// Fails the turn, unless it has failed before.
    pub(super) fn record_failure(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// Fails the attempt if its turn has not ended: for the cause that cancelled the turn, if there is one.
    pub(super) fn fail_unless_over(&mut self, event_reader: &mut EventReader<'_>) {
        if !self.is_over {
            let failure = self.failure.take();
            event_reader.fail_with(failure.unwrap_or_else(|| {
                Failure::new(Code::EndedEarly, "the agent ended before its turn was over")
            }));
        }
    }

    /// Takes the recorded failure, or returns that of a turn that ended in this way; `None` for a success.
    fn take_failure_or_explain_outcome(&mut self, outcome: TurnOutcome) -> Option<Failure> {
        let failure = |code, message: &str| Some(Failure::new(code, message));
        if let Some(failure) = self.failure.take() {
            return Some(failure);
        }
        match outcome {
            TurnOutcome::EndTurn if self.answer.is_empty() && self.denied_call_count > 0 => {
                failure(Code::Denied, "the agent was denied a tool, and gave no answer")
            }
            TurnOutcome::EndTurn => None,
            TurnOutcome::Cancelled if self.is_cancelled => {
                failure(Code::Cancelled, "the turn was cancelled")
            }
            TurnOutcome::Cancelled if self.denied_call_count > 0 => {
                failure(Code::Denied, "the agent ended its turn because it was denied a tool")
            }
            TurnOutcome::Cancelled => failure(Code::EndedEarly, "the agent cancelled its turn"),
            TurnOutcome::MaxTokens => {
                failure(Code::EndedEarly, "the model reached its limit of tokens")
            }
            TurnOutcome::MaxTurnRequests => {
                failure(Code::EndedEarly, "the agent reached its limit of requests in a turn")
            }
            TurnOutcome::Refusal => failure(Code::Rejected, "the agent refused to answer"),
            TurnOutcome::Failed { message, is_authentication_error, .. } => {
                let code =
                    if is_authentication_error { Code::NotAuthenticated } else { Code::Reported };
                Some(Failure::new(code, message))
            }
            TurnOutcome::Lost => {
                failure(Code::EndedEarly, "the agent ended before its turn was over")
            }
        }
    }

    /// Ends a turn in the way that the agent reported.
    pub(super) async fn end_with_outcome(
        &mut self,
        outcome: TurnOutcome,
        usage: Option<TokenUsage>,
        event_reader: &mut EventReader<'_>,
    ) -> Result<(), LedgerError> {
        if let Some(usage) = usage {
            record_usage(usage, event_reader).await?;
        }
        if outcome == TurnOutcome::EndTurn {
            event_reader.handle_event(ProgramEvent::DraftAccepted).await?;
        }
        let failure = self.take_failure_or_explain_outcome(outcome);
        self.end_turn(failure, event_reader);
        Ok(())
    }

    /// Ends a turn of which a message could not be read: it may have been the response that the turn waits for.
    pub(super) fn end_unreadable_turn(
        &mut self,
        unreadable_text: (String, &str),
        event_reader: &mut EventReader<'_>,
    ) {
        if self.is_over {
            return; // Whatever follows the end of a turn is no part of it.
        }
        let earlier_failure = self.failure.take();
        self.end_turn(earlier_failure, event_reader);
        event_reader.fail_with_unreadable_message(unreadable_text);
    }

    pub(super) fn end_turn(
        &mut self,
        failure: Option<Failure>,
        event_reader: &mut EventReader<'_>,
    ) {
        self.is_over = true;
        failure.into_iter().for_each(|failure| event_reader.fail_with(failure));
    }

    /// Fails a turn of whose answer a part could not be read. The turn continues.
    pub(super) fn record_unreadable_part(
        &mut self,
        unreadable_text: (String, &str),
        event_reader: &EventReader<'_>,
    ) {
        self.record_failure(event_reader.unreadable_message_failure(unreadable_text));
    }

    /// Delivers a part that is no text as an artifact.
    pub(super) async fn report_content(
        &mut self,
        content: AnswerAttachment,
        event_reader: &mut EventReader<'_>,
    ) -> Result<(), LedgerError> {
        (self.answer.is_thinking, self.answer.has_non_text_content) = (false, true);
        let AnswerAttachment { value, name, media_type } = content;
        let content = match value {
            ContentValue::Base64(encoded) => match normalize_base64(&encoded) {
                Some(encoded) => Content::Bytes(encoded),
                None => {
                    self.record_unreadable_part(
                        ("has bytes that are not base64".to_owned(), &encoded),
                        event_reader,
                    );
                    return Ok(());
                }
            },
            ContentValue::Text(text) => Content::Text(text),
            ContentValue::Url(url) => Content::Url(url),
        };
        let part = Part { content, filename: name, media_type };
        let content = EventContent::Parts(vec![part]);
        let artifact = ReportedArtifact {
            id: None,
            name: None,
            description: None,
            content,
            append: false,
            last: true,
        };
        event_reader.handle_event(ProgramEvent::Artifact(artifact)).await
    }

    /// Shows the stage of a tool call, once.
    pub(super) async fn report_tool_call(
        &mut self,
        call: &ToolCall,
        event_reader: &mut EventReader<'_>,
    ) -> Result<(), LedgerError> {
        self.answer.is_thinking = false;
        let stage = match call.status {
            ToolStatus::Pending | ToolStatus::InProgress => ToolStage::Started,
            ToolStatus::Completed => ToolStage::Completed,
            ToolStatus::Failed => ToolStage::Failed,
        };
        if self.reported_stages.insert(call.id.clone(), stage) == Some(stage) {
            return Ok(());
        }
        let diffs = call.diffs.iter().filter(|_| stage == ToolStage::Completed);
        for diff in diffs {
            if !self.reported_file_changes.insert(format!("{} {}", call.id, diff.path)) {
                continue;
            }
            let is_new = diff.old.is_none();
            let change = if is_new { FileChange::Created } else { FileChange::Modified };
            let path = diff.path.clone();
            event_reader.handle_event(ProgramEvent::FileChange { path, change }).await?;
        }
        let (id, tool) = (Some(call.id.clone()), tool_name(call));
        event_reader.handle_event(ProgramEvent::ToolCall { id, tool, stage }).await
    }
}

/// Text of an agent as far as it was shown.
#[derive(Default)]
pub(super) struct AnswerProgress {
    /// Message of the agent to which the latest text belongs.
    message_id: Option<String>,
    has_text: bool,
    /// True if there was a part that is no text.
    has_non_text_content: bool,
    is_thinking: bool,
}

impl AnswerProgress {
    const fn is_empty(&self) -> bool {
        !self.has_text && !self.has_non_text_content
    }

    /// Shows a piece of text.
    pub(super) async fn report_text(
        &mut self,
        (message_id, role): (Option<String>, TextRole),
        text: String,
        event_reader: &mut EventReader<'_>,
    ) -> Result<(), LedgerError> {
        if role == TextRole::Thought {
            let is_first = !std::mem::replace(&mut self.is_thinking, true);
            return if is_first {
                event_reader.handle_event(ProgramEvent::Thinking {}).await
            } else {
                Ok(())
            };
        }
        self.is_thinking = false;
        if self.has_text && message_id != self.message_id {
            event_reader.handle_event(ProgramEvent::DraftSuperseded).await?;
        }
        (self.message_id, self.has_text) = (message_id, true);
        event_reader.handle_event(ProgramEvent::DraftText { text }).await
    }
}

/// Returns bytes in the form of base64 that the ledger has, from one that agents write: with line breaks, without
/// padding, or as the address of a `data:` URL.
fn normalize_base64(encoded: &str) -> Option<String> {
    let encoded = match encoded.strip_prefix("data:") {
        Some(url) => url.split_once(";base64,")?.1,
        None => encoded,
    };
    if STANDARD.decode(encoded).is_ok() {
        return Some(encoded.to_owned());
    }
    let mut compact: String = encoded.split_ascii_whitespace().collect();
    compact.truncate(compact.trim_end_matches('=').len());
    STANDARD_NO_PAD.decode(compact).ok().map(|bytes| STANDARD.encode(bytes))
}

/// Records the usage that the agent reported.
pub(super) async fn record_usage(
    usage: TokenUsage,
    event_reader: &mut EventReader<'_>,
) -> Result<(), LedgerError> {
    let TokenUsage { input, output, cached, reasoning, .. } = usage;
    let numbers = [
        ("input_tokens", input),
        ("output_tokens", output),
        ("cached_tokens", cached),
        ("reasoning_tokens", reasoning),
    ];
    let fields: Map<String, Value> = numbers
        .into_iter()
        .filter_map(|(name, number)| Some((name.to_owned(), Value::from(number?))))
        .collect();
    if fields.is_empty() {
        return Ok(());
    }
    event_reader.handle_event(ProgramEvent::Usage { cumulative: false, fields }).await
}
