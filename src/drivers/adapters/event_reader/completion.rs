//! Result that a program has reported about its own end.

use algonius_actors::decide::classify::success_evaluation::ReportedResult;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::Interruption;
use algonius_actors::model::failure::Failure;
use chrono::{DateTime, Utc};

use crate::drivers::adapters::failure::ReportedFailure;

/// Greatest number of denied tools that are named.
const MAX_NAMED_DENIALS: usize = 20;

/// Greatest number of artifacts with files that were not delivered, of each of which a later delivery counts.
const MAX_UNDELIVERED_FILES: usize = 100;

/// Reported end of a program. The first failure is the cause of those that follow.
#[derive(Default)]
pub(super) struct CompletionReport {
    failure: Option<Failure>,
    http_status: Option<u16>,
    denied_tools: Vec<String>,
    is_completion_reported: bool,
    /// Latest request for input from the caller.
    required_input: Option<Interruption>,
    /// True if there was output besides the answer's text.
    has_output_outside_answer: bool,
    /// Failures for files that were not delivered, with the ids of their artifacts.
    undelivered_files: Vec<(Option<String>, Failure)>,
}

impl CompletionReport {
    /// Records that the program rejects the work.
    pub(super) fn record_rejection(&mut self, message: &str) {
        let clause = "the agent rejected it";
        let sentence =
            if message.is_empty() { clause.to_owned() } else { format!("{clause}: {message}") };
        self.failure.get_or_insert(Failure::new(Code::Rejected, sentence));
    }

    /// Records that the program failed; the message may be shown.
    pub(super) fn record_reported_failure(
        &mut self,
        reported: &ReportedFailure,
        message: &str,
        now: DateTime<Utc>,
    ) {
        if self.failure.is_some() {
            return;
        }
        let sentence = match message {
            "" => "the agent reported a failure".to_owned(),
            message => format!("the agent reported: {message}"),
        };
        let failure = Failure::new(reported.code(), sentence);
        self.failure = Some(Failure { until: reported.retry_time(now), ..failure });
        self.http_status = reported.status;
    }

    /// Records a failure for a reason of the service.
    pub(super) fn record_service_failure(&mut self, failure: Failure) {
        self.failure.get_or_insert(failure);
    }

    /// Records that a file of an artifact, or of a message without an id, was not delivered.
    pub(super) fn record_undelivered_failure(
        &mut self,
        artifact_id: Option<&str>,
        failure: Failure,
    ) {
        // The last one kept has no id, so that nothing takes it back.
        let id = artifact_id.filter(|_| self.undelivered_files.len() + 1 < MAX_UNDELIVERED_FILES);
        let is_known = self.undelivered_files.iter().any(|(known, _)| known.as_deref() == id);
        if !is_known && self.undelivered_files.len() < MAX_UNDELIVERED_FILES {
            self.undelivered_files.push((id.map(str::to_owned), failure));
        }
    }

    /// Records that an artifact was delivered as a whole, perhaps after a file of it was not there yet.
    pub(super) fn mark_delivered(&mut self, artifact_id: &str) {
        self.undelivered_files.retain(|(id, _)| id.as_deref() != Some(artifact_id));
    }

    /// Returns the failure for a file that was not delivered.
    pub(super) fn take_undelivered_failure(&mut self) -> Option<Failure> {
        self.undelivered_files.drain(..).next().map(|(_, failure)| failure)
    }

    /// Adds a failure of the service that was found at the end.
    pub(super) fn with_failure_if_none(self, failure: Option<Failure>) -> Self {
        Self { failure: self.failure.or(failure), ..self }
    }

    /// Records that a tool was denied, whose name may be shown.
    pub(super) fn record_denial(&mut self, tool: String) {
        if self.denied_tools.contains(&tool) {
            return;
        }
        match self.denied_tools.len() {
            ..MAX_NAMED_DENIALS => self.denied_tools.push(tool),
            MAX_NAMED_DENIALS => self.denied_tools.push("others".to_owned()),
            _ => {}
        }
    }

    /// Records that the program reported its completion.
    pub(super) const fn mark_completed(&mut self) {
        self.is_completion_reported = true;
    }

    /// Records that the program needs input from its caller.
    pub(super) const fn record_required_input(&mut self, required_input: Interruption) {
        (self.required_input, self.has_output_outside_answer) = (Some(required_input), true);
    }

    /// Records output besides the answer's text: an artifact, a reply, an outcome message or a question.
    pub(super) const fn mark_output_outside_answer(&mut self) {
        self.has_output_outside_answer = true;
    }

    /// Returns the input that the program needs from its caller.
    pub(super) const fn required_input(&self) -> Option<Interruption> {
        self.required_input
    }

    /// Returns true if there was output besides the answer's text.
    pub(super) const fn has_output_outside_answer(&self) -> bool {
        self.has_output_outside_answer
    }

    /// Returns the reported result. `must_report_completion` is true if the program has to report its completion.
    pub(super) fn reported_result(self, must_report_completion: bool) -> ReportedResult {
        let Self { failure, http_status, denied_tools: denied, is_completion_reported, .. } = self;
        ReportedResult {
            failure,
            http_status,
            lacks_final_event: must_report_completion && !is_completion_reported,
            denied_tools: denied,
            unreadable_line: None,
        }
    }
}
