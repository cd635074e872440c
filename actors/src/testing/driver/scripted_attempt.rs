//! Script of one attempt.

use std::time::Duration;

use crate::decide::output::artifact_stream::ArtifactPiece;
use crate::model::code::Code;
use crate::model::execution::content::Part;
use crate::model::interaction::{Question, WireId};
use crate::testing::interactions::permission_question;

/// Script of one attempt. Created by [`ScriptedAttempt::ok`], [`ScriptedAttempt::fail`] and similar functions, then
/// refined.
#[derive(Debug, Clone)]
pub struct ScriptedAttempt {
    pub(super) start_delay: Duration,
    pub(super) run_time: Duration,
    pub(super) result: Result<(), Code>,
    pub(super) answer_text: String,
    pub(super) stderr_pauses: Vec<Duration>,
    pub(super) artifacts: Vec<ArtifactPiece<Part>>,
    pub(super) usage_reports: Vec<ReportedTokens>,
    pub(super) retry_after: Option<Duration>,
    pub(super) questions: Vec<(WireId, Question)>,
    pub(super) behavior: ScriptedBehavior,
    pub(super) stop_delay: Duration,
    pub(super) cleanup_time: Duration,
}

/// Input tokens, output tokens, and true if they are totals of the attempt.
pub(super) type ReportedTokens = (u64, u64, bool);

/// Way in which the work of an attempt behaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ScriptedBehavior {
    Regular,
    /// Ignores a stop request.
    IgnoresStop,
    /// Runs without a report of its start.
    NeverReportsStart,
    /// Requests input after it has run.
    RequestsInput,
    /// Ends without starting.
    EndsBeforeStart,
    /// Records a warning with its end.
    WarnsAtEnd,
    /// Ends without waiting for the answers to its questions.
    EndsWithOpenQuestion,
    /// Drops its reporter.
    DropsReporter,
    /// Panics in `start`.
    PanicsOnStart,
}

impl ScriptedAttempt {
    const fn new(seconds: u64, result: Result<(), Code>, behavior: ScriptedBehavior) -> Self {
        Self {
            start_delay: Duration::ZERO,
            run_time: Duration::from_secs(seconds),
            result,
            answer_text: String::new(),
            stderr_pauses: Vec::new(),
            artifacts: Vec::new(),
            usage_reports: Vec::new(),
            retry_after: None,
            questions: Vec::new(),
            behavior,
            stop_delay: Duration::ZERO,
            cleanup_time: Duration::ZERO,
        }
    }

    /// Runs for `seconds`, then succeeds. After a stop request it also reports success.
    #[must_use]
    pub const fn ok(seconds: u64) -> Self {
        Self::new(seconds, Ok(()), ScriptedBehavior::Regular)
    }

    /// Runs for `seconds`, then fails.
    #[must_use]
    pub const fn fail(seconds: u64, code: Code) -> Self {
        Self::new(seconds, Err(code), ScriptedBehavior::Regular)
    }

    /// Runs for `seconds`, then requests input.
    #[must_use]
    pub const fn requesting_input(seconds: u64) -> Self {
        Self::new(seconds, Ok(()), ScriptedBehavior::RequestsInput)
    }

    /// Fails before it runs.
    #[must_use]
    pub const fn failing_to_start(code: Code) -> Self {
        Self::new(0, Err(code), ScriptedBehavior::EndsBeforeStart)
    }

    /// Runs until it is killed, despite stop requests.
    #[must_use]
    pub const fn ignoring_stop() -> Self {
        Self::new(u32::MAX as u64, Ok(()), ScriptedBehavior::IgnoresStop)
    }

    /// Never reports that it runs.
    #[must_use]
    pub const fn never_reporting_start() -> Self {
        Self::new(u32::MAX as u64, Ok(()), ScriptedBehavior::NeverReportsStart)
    }

    /// Runs for `seconds`, then drops its reporter without a report.
    #[must_use]
    pub const fn dropping_reporter(seconds: u64) -> Self {
        Self::new(seconds, Ok(()), ScriptedBehavior::DropsReporter)
    }

    /// Panics in the driver's `start`, and so in the execution's actor.
    #[must_use]
    pub const fn panicking() -> Self {
        Self::new(0, Ok(()), ScriptedBehavior::PanicsOnStart)
    }

    /// Starts only after `seconds`.
    #[must_use]
    pub const fn with_start_delay(mut self, seconds: u64) -> Self {
        self.start_delay = Duration::from_secs(seconds);
        self
    }

    /// Ends only `seconds` after a stop request.
    #[must_use]
    pub const fn with_stop_delay(mut self, seconds: u64) -> Self {
        self.stop_delay = Duration::from_secs(seconds);
        self
    }

    /// Needs `seconds` for its clean-up.
    #[must_use]
    pub const fn with_cleanup_time(mut self, seconds: u64) -> Self {
        self.cleanup_time = Duration::from_secs(seconds);
        self
    }

    /// Writes an answer.
    #[must_use]
    pub fn with_answer(mut self, text: &str) -> Self {
        text.clone_into(&mut self.answer_text);
        self
    }

    /// Records a warning with its end.
    #[must_use]
    pub const fn with_warning_at_end(mut self) -> Self {
        self.behavior = ScriptedBehavior::WarnsAtEnd;
        self
    }

    /// Writes to its standard error after each of these pauses, before it continues.
    #[must_use]
    pub fn with_stderr_pauses(mut self, pauses: impl IntoIterator<Item = u64>) -> Self {
        self.stderr_pauses.extend(pauses.into_iter().map(Duration::from_secs));
        self
    }

    /// Reports input and output tokens before it continues: increments, or totals if the flag is true.
    #[must_use]
    pub fn with_usage(mut self, usage_reports: impl IntoIterator<Item = (u64, u64, bool)>) -> Self {
        self.usage_reports.extend(usage_reports);
        self
    }

    /// Reports that its failure lasts for `seconds`.
    #[must_use]
    pub const fn with_retry_after(mut self, seconds: u64) -> Self {
        self.retry_after = Some(Duration::from_secs(seconds));
        self
    }

    /// Asks for permission to run a command, and waits for the answer before it continues.
    #[must_use]
    pub fn with_question(mut self, wire_id: &str, command: &str) -> Self {
        self.questions.push((WireId(wire_id.to_owned()), permission_question(command)));
        self
    }

    /// Sends its questions, and runs to its end without the answers.
    #[must_use]
    pub const fn with_open_question_at_end(mut self) -> Self {
        self.behavior = ScriptedBehavior::EndsWithOpenQuestion;
        self
    }

    /// Creates artifacts, or pieces of them, before it continues.
    #[must_use]
    pub fn with_artifacts(
        mut self,
        artifacts: impl IntoIterator<Item = ArtifactPiece<Part>>,
    ) -> Self {
        self.artifacts.extend(artifacts);
        self
    }
}
