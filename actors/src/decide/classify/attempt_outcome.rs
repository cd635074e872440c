//! Results of an attempt, from which its success is decided.

use chrono::{DateTime, Utc};

use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::program::ProcessExit;

/// Results of an ended attempt. All text is raw.
#[derive(Debug, Clone)]
pub struct AttemptOutcome<'t> {
    /// Exit status of the process.
    pub exit: ProcessExit,
    /// Answer; `None` if the file or the location in the JSON document does not exist.
    pub answer: Option<&'t str>,
    /// True if the attempt returned more than the text of the answer: an artifact or a final message.
    pub has_other_output: bool,
    /// Standard output, as far as the limit keeps it.
    pub stdout: &'t str,
    /// Standard error, as far as the limit keeps it.
    pub stderr: &'t str,
    /// Result that the program reported in events.
    pub reported_result: ReportedResult,
    /// End time of the attempt.
    pub ended_at: DateTime<Utc>,
}

/// Result that a program reports besides its answer.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReportedResult {
    /// Failure that the program reported, in text that may be shown.
    pub failure: Option<Failure>,
    /// HTTP status code of the latest error response of the service behind the program.
    pub http_status: Option<u16>,
    /// True if the final event of the output is missing.
    pub lacks_final_event: bool,
    /// Tools that were denied to the program, in text that may be shown.
    pub denied_tools: Vec<String>,
    /// Line of the output that explains why a part of the result is missing.
    pub unread_line: Option<UnreadLine>,
}

/// Line of events that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadLine {
    /// Number of the line, from 1; 0 if the event came in a message without lines.
    pub line: u64,
    /// Clause that follows "the line".
    pub reason: String,
    /// Text of the line, which may be shown; empty if the line was too long to be kept.
    pub text: String,
    /// True if a part of the result may be lost with the line, such as a piece of the answer.
    pub is_result_lost: bool,
}

impl UnreadLine {
    /// Returns the failure of an attempt whose result is incomplete without the line.
    #[must_use]
    pub fn to_failure(&self) -> Failure {
        let Self { line, reason, text, .. } = self;
        let subject = match line {
            0 => "a message of its output".to_owned(),
            line => format!("line {line} of its output"),
        };
        let quotation = if text.is_empty() { String::new() } else { format!(": {text}") };
        let message = format!("{subject} could not be read, because it {reason}{quotation}");
        Failure::new(Code::OutputUnreadable, message)
    }
}
