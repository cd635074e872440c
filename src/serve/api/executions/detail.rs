//! One execution with all details, in a response of bounded size.

use algonius_actors::api::Api;
use algonius_actors::model::access::principal::Right;
use algonius_actors::model::execution::content::StoredPart;
use algonius_actors::model::execution::event::{
    Event, EventKind, MessageRole, TextChannel, TextRange,
};
use algonius_actors::model::execution::record::ExecutionRecord;
use algonius_actors::model::execution::trace::TraceContext;
use algonius_actors::model::failure::Failure;
use axum::extract::State;
use axum::response::Response;

use super::attempts::AttemptHistory;
use super::parse_execution_id;
use crate::serve::AppState;
use crate::serve::auth::caller::AuthenticatedCaller;
use crate::serve::http::path_param::PathParam;
use crate::serve::http::response::{ProblemBody, ok_response, to_json};
use crate::wire::api::ExecutionEntry;
use crate::wire::api::history::{AttemptEntry, ExecutionDetail, TextEntry};

/// Maximum number of bytes of each text; the text endpoint returns the rest.
const MAX_TEXT_BYTES: u64 = 1 << 20;
/// Maximum number of events; the event endpoint returns the rest.
const MAX_EVENTS: u32 = 1000;

/// Returns one execution with all details.
///
/// # Errors
/// `execution-unknown`; fails also if the ledger cannot be read.
pub async fn show(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    PathParam(id): PathParam,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Read, None)?;
    let record = app.api.reader.execution(&caller, parse_execution_id(&id)?).await?;
    Ok(ok_response(&to_json(&read_detail(&app.api, &record).await?)?))
}

/// Collects all details of an execution.
///
/// # Errors
/// Fails if the ledger cannot be read.
pub(super) async fn read_detail(
    api: &Api,
    record: &ExecutionRecord,
) -> Result<ExecutionDetail, Failure> {
    let mut reader = DetailReader::new(api, record);
    let (events, attempts) = reader.scan_events().await?;
    let stderr = reader.read_bounded_text(TextChannel::Stderr).await?;
    // A failed attempt has no answer. What its program printed is the best hint at the reason.
    if reader.output.text.is_empty() && record.outcome.is_some() {
        reader.output = reader.read_bounded_text(TextChannel::Stdout).await?;
        let last_attempt =
            attempts.last().filter(|attempt| attempt.attempt_id == record.attempt_id);
        let dropped =
            last_attempt.and_then(|attempt| attempt.dropped.get(TextChannel::Stdout.as_str()));
        reader.output.dropped_bytes = dropped.copied().unwrap_or_default();
    }
    let DetailReader { input, output, agent_question, .. } = reader;
    let open_question = agent_question.filter(|_| record.required_input().is_some());
    let cut_flags = [
        ("input", input.is_cut),
        ("request", open_question.as_ref().is_some_and(|request| request.is_cut)),
        ("output", output.is_cut),
        ("stderr", stderr.is_cut),
    ];
    let cut_names =
        cut_flags.into_iter().filter(|(_, is_cut)| *is_cut).map(|(name, _)| name.to_owned());
    let texts = api.reader.text_ranges(record).await?.into_iter();
    let output_dropped = Some(output.dropped_bytes).filter(|dropped| *dropped > 0);
    let last_number = events.last().map(|event| event.number);
    Ok(ExecutionDetail {
        entry: ExecutionEntry::from_record(record, api.reader.queue_position(record).await),
        message_id: record.message_id.0.clone(),
        owner: record.owner.to_string(),
        trace_id: Some(
            TraceContext::for_execution(record.trace.as_ref(), record.id).id.to_string(),
        ),
        caller: api.reader.principal_names().await?.remove(&record.owner),
        made_by: record.trigger.clone(),
        access: record.access,
        replayable: api.reader.can_retry(record).await?,
        parameters: record.params.clone(),
        working_directory: record.overrides.working_dir.clone(),
        environment: record.overrides.env.clone(),
        cut: cut_names.collect(),
        input: input.text,
        request: open_question.map(|request| request.text),
        stderr: stderr.text,
        output: record.outcome.map(|_| output.text),
        output_dropped: record.outcome.and(output_dropped),
        attempts,
        texts: texts.map(text_entry).collect(),
        events_after: last_number.filter(|number| *number < record.last_event_number),
        events,
    })
}

/// Converts a text range into an entry with the length of the text.
pub(super) const fn text_entry(text: TextRange) -> TextEntry {
    TextEntry { attempt_id: text.attempt_id, channel: text.channel, bytes: text.to }
}

/// Start of a text, as far as a response contains it.
#[derive(Default)]
struct BoundedText {
    text: String,
    is_cut: bool,
    /// Number of bytes of the text that were not stored.
    dropped_bytes: u64,
}

/// Reader of the details of one execution.
struct DetailReader<'r> {
    api: &'r Api,
    record: &'r ExecutionRecord,
    input: BoundedText,
    /// Latest request of the agent, unless the caller has answered it.
    agent_question: Option<BoundedText>,
    output: BoundedText,
}

impl<'r> DetailReader<'r> {
    fn new(api: &'r Api, record: &'r ExecutionRecord) -> Self {
        let (input, output) = (BoundedText::default(), BoundedText::default());
        Self { api, record, input, agent_question: None, output }
    }

    /// Reads all events; returns the first page of them and the attempts.
    async fn scan_events(&mut self) -> Result<(Vec<Event>, Vec<AttemptEntry>), Failure> {
        let (mut first_page, mut after) = (Vec::new(), 0);
        let mut history = AttemptHistory::default();
        loop {
            let page = self.api.reader.next_events(self.record, after, MAX_EVENTS).await?;
            let Some(last) = page.last() else { break };
            after = last.number;
            for event in &page {
                history.apply_event(event);
                self.read_event_texts(&event.data).await?;
            }
            if first_page.is_empty() {
                first_page = page;
            }
        }
        Ok((first_page, history.into_attempts(self.record)))
    }

    /// Reads the texts of the caller's latest message, of the agent's latest request and of the artifacts.
    async fn read_event_texts(&mut self, event: &EventKind) -> Result<(), Failure> {
        match event {
            EventKind::Message { speaker: MessageRole::User, pieces, .. } => {
                self.input = self.append_parts(BoundedText::default(), pieces).await?;
                // A message of the caller answers the request before it.
                self.agent_question = None;
            }
            EventKind::Message { speaker: MessageRole::AgentQuestion, pieces, .. } => {
                let mut question = BoundedText::default();
                for part in pieces {
                    if !question.text.is_empty() && !question.text.ends_with('\n') {
                        question.text.push('\n');
                    }
                    question = self.append_parts(question, std::slice::from_ref(part)).await?;
                }
                self.agent_question = Some(question);
            }
            EventKind::Artifact { pieces, .. } => {
                let previous_output = std::mem::take(&mut self.output);
                self.output = self.append_parts(previous_output, pieces).await?;
            }
            _ => {}
        }
        Ok(())
    }

    async fn append_parts(
        &self,
        mut bounded_text: BoundedText,
        parts: &[StoredPart],
    ) -> Result<BoundedText, Failure> {
        for part in parts {
            bounded_text.dropped_bytes += part.dropped;
            let TextRange { from, to, .. } = part.text;
            let free_bytes = MAX_TEXT_BYTES.saturating_sub(bounded_text.text.len() as u64);
            let end = to.min(from.saturating_add(free_bytes));
            bounded_text.is_cut |= end < to;
            if end > from {
                let range = TextRange { to: end, ..part.text };
                bounded_text.text += &self.api.reader.text_slice(self.record, range).await?.text;
            }
        }
        Ok(bounded_text)
    }

    /// Reads the start of a stream of the last attempt.
    async fn read_bounded_text(&self, channel: TextChannel) -> Result<BoundedText, Failure> {
        let range =
            TextRange { attempt_id: self.record.attempt_id, channel, from: 0, to: MAX_TEXT_BYTES };
        let text = self.api.reader.text_slice(self.record, range).await?.text;
        // A few bytes, because the ledger cuts between characters and would return nothing for a part of one.
        let following_range = TextRange { from: MAX_TEXT_BYTES, to: MAX_TEXT_BYTES + 8, ..range };
        let is_cut =
            !self.api.reader.text_slice(self.record, following_range).await?.text.is_empty();
        Ok(BoundedText { text, is_cut, dropped_bytes: 0 })
    }
}
