//! Effects of single events: missing files, counters, the name of the session, stops and failures.

use std::collections::BTreeMap;

use algonius_actors::decide::classify::success_evaluation::ReportedResult;
use algonius_actors::decide::session::UNUSABLE_SESSION_ID_WARNING;
use algonius_actors::driver::report::Reporter;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::event::{EventKind, MessageRole};
use algonius_actors::model::failure::Failure;
use algonius_actors::ports::ledger::LedgerError;
use serde_json::{Map, Number, Value};

use super::EventSummary;
use super::event_handler::EventHandler;
use crate::drivers::adapters::event_line::{EventParseError, ResultLoss};
use crate::drivers::adapters::failure::ReportedFailure;
use crate::drivers::adapters::file_parts::UndeliveredFile;
use crate::drivers::output::display_label::redacted_display_text;

/// Greatest number of counters that are kept of one `usage` event.
const MAX_USAGE_COUNTERS: usize = 64;

impl EventHandler<'_> {
    /// Records a warning for a file that is not delivered, as far as there is room. At its end the attempt fails,
    /// unless the file belongs to progress. A file that is too large has a failure of its own.
    pub(super) async fn record_undelivered_file(
        &mut self,
        undelivered: &UndeliveredFile,
        (role, artifact_id): (MessageRole, Option<&str>),
    ) -> Result<(), LedgerError> {
        self.part_recorder.add_dropped_bytes(role, undelivered.encoded_size_if_too_large());
        let message = undelivered.warning_text(|name| redacted_display_text(self.reporter, name));
        if role != MessageRole::AgentProgress && undelivered.encoded_size_if_too_large() == 0 {
            let failure = Failure::new(Code::OutputUnreadable, message.clone());
            self.completion.record_undelivered_failure(artifact_id, failure);
        }
        self.part_recorder.record_event_within_limit(EventKind::Warning { message }).await
    }

    pub(super) async fn record_usage(
        &mut self,
        fields: Map<String, Value>,
        cumulative: bool,
    ) -> Result<(), LedgerError> {
        let (numbers, warning) = read_counters(fields, self.reporter);
        if let Some(warning) = warning {
            self.warn(&warning).await?;
        }
        if numbers.is_empty() {
            return self.report_malformed("has no numbers", ResultLoss::None).await;
        }
        // A resumed session counts from its beginning, and only the difference belongs to this attempt.
        let (numbers, cumulative) = if cumulative {
            self.counters.record_and_compute_increments(numbers)
        } else {
            (numbers, false)
        };
        self.reporter.set_session_usage_counters(self.counters.totals().clone());
        let event = EventKind::UsageReported { counters: numbers, cumulative };
        self.part_recorder.record_event_within_limit(event).await
    }

    /// Records the session if it differs from the previous one.
    pub(super) async fn record_session(&mut self, id: &str) -> Result<(), LedgerError> {
        // The raw id, with which the next message resumes the session. Records get the redacted one.
        let is_usable = self.reporter.try_set_session_id(id);
        let id = redacted_display_text(self.reporter, id);
        if id.is_empty() || self.session_id.replace(id.clone()).as_ref() == Some(&id) {
            return Ok(());
        }
        let message = UNUSABLE_SESSION_ID_WARNING.to_owned();
        let event =
            if is_usable { EventKind::Session { id } } else { EventKind::Warning { message } };
        self.part_recorder.record_event_within_limit(event).await
    }

    pub(super) async fn record_stop(&mut self, reason: &str) -> Result<(), LedgerError> {
        self.completion.mark_completed();
        self.malformed_lines.mark_result_ended();
        let reason = redacted_display_text(self.reporter, reason);
        if reason.is_empty() {
            Ok(())
        } else {
            self.part_recorder.record_event_within_limit(EventKind::Stopped { reason }).await
        }
    }

    pub(super) fn record_failure(&mut self, reported: &ReportedFailure) {
        let message = redacted_display_text(self.reporter, &reported.message);
        self.completion.record_reported_failure(reported, &message, self.reporter.now());
    }

    /// Reports an event whose content makes no sense.
    pub(super) async fn report_malformed(
        &mut self,
        reason: &'static str,
        loss: ResultLoss,
    ) -> Result<(), LedgerError> {
        let error = EventParseError::for_content(reason, loss);
        self.malformed_lines.record(self.line_number, &error).await
    }
}

/// Closes the channels. `must_report_completion` is true if the program has to report its completion.
///
/// # Errors
/// Fails if the ledger did not commit.
pub(super) async fn close_handler(
    handler: EventHandler<'_>,
    must_report_completion: bool,
) -> Result<EventSummary, LedgerError> {
    let EventHandler { answer, part_recorder, mut completion, malformed_lines: malformed, .. } =
        handler;
    let undelivered = completion.take_undelivered_failure();
    let completion = completion
        .with_failure_if_none(part_recorder.overflow_failure())
        .with_failure_if_none(undelivered);
    let unreadable_line = malformed.close();
    let text = answer.close().await?;
    part_recorder.close().await?;
    let (required_input, has_output_outside_answer) =
        (completion.required_input(), completion.has_output_outside_answer());
    let reported_result =
        ReportedResult { unreadable_line, ..completion.reported_result(must_report_completion) };
    Ok(EventSummary {
        answer_text: text,
        reported_result,
        required_input,
        has_output_outside_answer,
    })
}

/// Returns the counters of an event, and a warning if it has too many.
fn read_counters(
    fields: Map<String, Value>,
    reporter: &Reporter,
) -> (BTreeMap<String, Number>, Option<String>) {
    let numbers = fields.into_iter().filter_map(|(name, value)| match value {
        Value::Number(number) => Some((redacted_display_text(reporter, &name), number)),
        _ => None,
    });
    let numbers: BTreeMap<_, _> = numbers.collect();
    let count = numbers.len();
    if count <= MAX_USAGE_COUNTERS {
        return (numbers, None);
    }
    let warning = format!(
        "a `usage` event has {count} counters; only the first {MAX_USAGE_COUNTERS} of them are counted"
    );
    (numbers.into_iter().take(MAX_USAGE_COUNTERS).collect(), Some(warning))
}
