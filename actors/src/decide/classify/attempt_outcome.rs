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
    /// Answer, or the reason why there is none.
    pub answer: Result<&'t str, MissingAnswer>,
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

/// Reason why the answer is not in the place that the configuration names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MissingAnswer {
    /// The execution's folder, in which the program writes its file, no longer exists.
    FolderRemoved,
    /// The program wrote no file.
    FileAbsent,
    /// The name of the file belongs to a link.
    FileIsLink,
    /// The name of the file belongs to something else, such as a folder or a pipe.
    FileIsIrregular,
    /// The file does not let the program's own user read it.
    FileNotPermitted,
    /// The system refused to read the file.
    FileUnreadable,
    /// The document is longer than the limit of the output, so only parts of it were kept.
    DocumentTruncated,
    /// The document is empty.
    DocumentEmpty,
    /// The document ends before its JSON is complete.
    DocumentIncomplete,
    /// The document is no JSON from this position on.
    DocumentInvalid {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
    },
    /// The document has nothing in the configured place.
    JsonValueAbsent,
    /// The document has `null` in the configured place.
    JsonValueNull,
}

impl MissingAnswer {
    /// Returns the failure of the attempt.
    #[must_use]
    pub fn to_failure(self) -> Failure {
        let sentence = match self {
            Self::FolderRemoved => {
                "the folder of the answer file was removed before the program ended"
            }
            Self::FileAbsent => "the program wrote no answer file",
            Self::FileIsLink => "the answer file is a link, which is not followed",
            Self::FileIsIrregular => "the answer file is a folder or another special file",
            Self::FileNotPermitted => {
                "the modes of the answer file do not let the agent's user read it"
            }
            Self::FileUnreadable => "the answer file could not be read",
            Self::DocumentTruncated => {
                "the JSON with the answer is longer than `max_output_bytes`, and was truncated"
            }
            Self::DocumentEmpty => "the output is empty, where JSON with the answer was expected",
            Self::DocumentIncomplete => "the JSON with the answer ends before it is complete",
            Self::DocumentInvalid { line, column } => {
                let message = format!(
                    "the output is not one JSON document with the answer: line {line}, column {column}"
                );
                return Failure::new(Code::AnswerMissing, message);
            }
            Self::JsonValueAbsent => "the JSON has nothing where `success.json_pointer` points",
            Self::JsonValueNull => "the JSON has `null` where `success.json_pointer` points",
        };
        Failure::new(Code::AnswerMissing, sentence)
    }
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
    pub unreadable_line: Option<UnreadableLine>,
}

/// Line of events that could not be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnreadableLine {
    /// Number of the line, from 1; 0 if the event came in a message without lines.
    pub line: u64,
    /// Clause that follows "the line".
    pub reason: String,
    /// Text of the line, which may be shown; empty if the line was too long to be kept.
    pub text: String,
    /// True if a part of the result may be lost with the line, such as a piece of the answer.
    pub is_result_lost: bool,
}

impl UnreadableLine {
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
