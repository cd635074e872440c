//! Evaluator of the outcome of an attempt: turns the end of a program and its output into the result of the attempt.

use std::io;
use std::sync::Arc;

use algonius_actors::decide::classify::success_evaluation::{
    AttemptOutcome, MissingAnswer, ReportedResult,
};
use algonius_actors::decide::host::denied_access::{find_denied_path, reports_denied_access};
use algonius_actors::decide::host::resources::cgroup_limit_failure;
use algonius_actors::decide::host::sandbox::bwrap_failed;
use algonius_actors::driver::AttemptWork;
use algonius_actors::driver::report::Reporter;
use algonius_actors::model::code::{Category, Code};
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::host::resources::CgroupLimitEvents;
use algonius_actors::model::program::{ProcessExit, ProgramSpec};
use algonius_actors::ports::ledger::LedgerError;
use algonius_warden::MemoryAccount;
use tokio::sync::{Mutex, OwnedSemaphorePermit};

use super::answer::{AttemptAnswer, extract_stdout_answer, is_long_file, record_file_answer};
use super::answer_location::AnswerLocation;
use super::end_report::{AttemptEnd, ExitReport};
use super::program_output::{ProgramOutput, flush_pending_text};
use crate::drivers::adapters::event_reader::EventSummary;
use crate::drivers::lease_commands::LeaseCommandReceiver;
use crate::drivers::output::channel_writer::ChannelText;
use crate::drivers::output::display_label::redacted_display_text;
use crate::drivers::output::model_retries::retries_exhausted_failure;
use crate::drivers::output::raw_text::LongTextStorage;
use crate::drivers::program::sandbox::{self, is_confined};
use crate::drivers::program::session_resume::AttemptSession;
use crate::drivers::program::success_checks::SuccessChecks;
use crate::drivers::program::workspace::resolve_working_dir;
use crate::drivers::start_faults::{evaluate_ended_attempt, explain_failed_wrapper};

/// Evaluator of one attempt.
pub(super) struct OutcomeEvaluator {
    pub(super) program: Arc<ProgramSpec>,
    pub(super) work: AttemptWork,
    /// Source of the answer.
    pub(super) answer_location: AnswerLocation,
    session: AttemptSession,
    /// Success checks, until they run.
    checks: Mutex<Option<SuccessChecks>>,
    long_text_memory: LongTextMemory,
}

/// Memory for the long texts of a run.
struct LongTextMemory {
    memory_account: MemoryAccount,
    /// Permit to hold long texts in the heap, while the run has it.
    permit: Mutex<Option<OwnedSemaphorePermit>>,
}

impl LongTextMemory {
    /// Waits for the permit, unless the run has it.
    async fn acquire_permit(&self) {
        let mut permit = self.permit.lock().await;
        if permit.is_none() {
            *permit = self.memory_account.acquire_long_text_permit().await;
        }
    }

    /// Returns the permit.
    async fn release_permit(&self) {
        self.permit.lock().await.take();
    }
}

impl OutcomeEvaluator {
    /// Returns the evaluator of a program that has started.
    pub(super) fn new(
        program: Arc<ProgramSpec>,
        (work, session): (AttemptWork, AttemptSession),
        (answer_location, checks): (AnswerLocation, Option<SuccessChecks>),
        memory_account: MemoryAccount,
    ) -> Self {
        let memory = LongTextMemory { memory_account, permit: Mutex::default() };
        Self {
            program,
            work,
            answer_location,
            session,
            checks: Mutex::new(checks),
            long_text_memory: memory,
        }
    }

    /// Judges the end of a run, and records what explains it. `limit_events` are those of the program's control group.
    pub(super) async fn evaluate_end(
        &self,
        exit_report: io::Result<ExitReport>,
        output: Result<ProgramOutput, LedgerError>,
        limit_events: CgroupLimitEvents,
        (reporter, commands): (&Reporter, &mut LeaseCommandReceiver),
    ) -> AttemptEnd {
        let ExitReport { exit, fault, has_exhausted_retries } = match exit_report {
            Ok(end) => end,
            Err(error) => {
                tracing::error!(execution = %self.work.execution, %error, "exit status of program is unknown");
                return AttemptEnd::from_exit_error(error.kind());
            }
        };
        // From here on the long texts are in the heap, for which only two executions at a time have a permit.
        if output.as_ref().is_ok_and(ProgramOutput::is_long) {
            self.long_text_memory.acquire_permit().await;
        }
        let required_input = output.as_ref().ok().and_then(ProgramOutput::required_input);
        let find_session_update = |output: &ProgramOutput| {
            self.session.find_session_update(
                &self.program,
                exit,
                [&output.stdout, &output.stderr].map(ChannelText::raw),
            )
        };
        let session_update = output.as_ref().map(find_session_update).unwrap_or_default();
        session_update.warn_if_id_unusable(reporter).await;
        if let Ok(output) = &output {
            output.record_reported_usage(&self.program.usage_pattern, reporter).await;
        }
        // Found before the judgement, which consumes the texts.
        let denial_note =
            output.as_ref().ok().and_then(|output| self.find_access_denial_note(output, reporter));
        let last_lines_of =
            |output: &ProgramOutput| output.redacted_last_lines(&self.answer_location, reporter);
        let last_lines = output.as_ref().ok().filter(|_| commands.should_stop()).map(last_lines_of);
        let last_lines = last_lines.unwrap_or_default();
        // A fault for which the service ended the program outweighs its exit status.
        let mut result = match (output, fault) {
            (Ok(_), Some(fault)) => Ok(Err(fault)),
            (Ok(output), None) => {
                self.evaluate_exit_and_output(exit, output, (reporter, commands)).await
            }
            (Err(error), _) => Err(error),
        };
        if let Ok(Err(failure)) = &mut result {
            // A kill or a refused fork by the control group explains the failure better than the exit does.
            if let Some(cause) = cgroup_limit_failure(&self.program.resource_limits, limit_events) {
                *failure = cause;
            } else if has_exhausted_retries && failure.category() == Category::Agent {
                *failure = retries_exhausted_failure(*reporter.failed_request_counter().borrow());
            }
            failure.last_output = last_lines;
        }
        // The complaint is a guess from standard error, so it explains a failure but never makes one.
        if let Some(message) = denial_note.filter(|_| matches!(result, Ok(Err(_)))) {
            let recorded = reporter.record_event(EventKind::Warning { message }).await;
            result = recorded.and(result);
        }
        self.long_text_memory.release_permit().await;
        AttemptEnd {
            result: result.unwrap_or_else(|error| Err(self.ledger_failure(&error))),
            exit_code: exit.code(),
            required_input,
            session_update,
        }
    }

    /// Returns the note on complaints in standard error that the sandbox may have caused.
    fn find_access_denial_note(
        &self,
        output: &ProgramOutput,
        reporter: &Reporter,
    ) -> Option<String> {
        let stderr = output.stderr.raw();
        if !is_confined(&self.work, &self.program) || !reports_denied_access(stderr) {
            return None;
        }
        let path = find_denied_path(stderr).map(|path| redacted_display_text(reporter, path));
        let (access, sandbox) = (self.work.spec.access, &self.program.sandbox);
        Some(sandbox::access_denial_note(access, sandbox, path.as_deref()))
    }

    async fn evaluate_exit_and_output(
        &self,
        exit: ProcessExit,
        output: ProgramOutput,
        (reporter, commands): (&Reporter, &mut LeaseCommandReceiver),
    ) -> Result<Result<(), Failure>, LedgerError> {
        let ProgramOutput { stdout, stderr, event_summary: events } = output;
        let stderr = stderr.raw();
        // Bubblewrap reports its own failure in words only, with the exit code 1.
        if bwrap_failed(sandbox::isolation(&self.work), exit, stdout.raw(), stderr) {
            let failure = sandbox::setup_failure();
            let working_dir = resolve_working_dir(&self.program, &self.work).await;
            let working_dir =
                working_dir.unwrap_or_else(|_failure| self.program.working_dir.clone());
            let program = (&*self.program, working_dir);
            return Ok(Err(explain_failed_wrapper(failure, program, stderr).await));
        }
        match events {
            Some(summary) => {
                self.evaluate_events(exit, (stdout.raw(), stderr), summary, (reporter, commands))
                    .await
            }
            None => self.evaluate_plain_output(exit, (&stdout, stderr), (reporter, commands)).await,
        }
    }

    /// Judges the outcome, and runs the success checks for an apparent success.
    async fn evaluate_with_checks(
        &self,
        attempt_outcome: &AttemptOutcome<'_>,
        reporter_and_commands: (&Reporter, &mut LeaseCommandReceiver),
    ) -> Result<(), Failure> {
        evaluate_ended_attempt(&self.program, attempt_outcome).await?;
        let Some(checks) = self.checks.lock().await.take() else { return Ok(()) };
        flush_pending_text(reporter_and_commands.0).await; // A check may take long: others wait for the permit, and followers for the text.
        self.long_text_memory.release_permit().await;
        checks.run_all(attempt_outcome.answer.unwrap_or_default(), reporter_and_commands).await
    }

    /// Judges a program with events, which the ledger has recorded already.
    async fn evaluate_events(
        &self,
        exit: ProcessExit,
        (stdout, stderr): (&str, &str),
        summary: EventSummary,
        (reporter, commands): (&Reporter, &mut LeaseCommandReceiver),
    ) -> Result<Result<(), Failure>, LedgerError> {
        let EventSummary {
            answer_text: text,
            reported_result,
            has_output_outside_answer: has_other_output,
            ..
        } = summary;
        let (answer, ended_at) = (Ok(text.raw()), reporter.now());
        let denied_tools = reported_result.denied_tools.join(", ");
        let attempt_outcome = AttemptOutcome {
            exit,
            answer,
            has_other_output,
            stdout,
            stderr,
            reported_result,
            ended_at,
        };
        let result = self.evaluate_with_checks(&attempt_outcome, (reporter, commands)).await;
        if result.is_ok() {
            reporter.publish_raw_answer(text.raw());
            // Many programs succeed although nobody allowed them a tool, and neither exit nor answer shows it.
            if !denied_tools.is_empty() {
                let message = format!("it answered, but was not permitted to use {denied_tools}");
                reporter.record_event(EventKind::Warning { message }).await?;
            }
        }
        Ok(result)
    }

    async fn evaluate_plain_output(
        &self,
        exit: ProcessExit,
        (stdout, stderr): (&ChannelText, &str),
        (reporter, commands): (&Reporter, &mut LeaseCommandReceiver),
    ) -> Result<Result<(), Failure>, LedgerError> {
        let limit = self.work.spec.limits.sizes.max_output_bytes;
        let attempt_answer = match &self.answer_location {
            AnswerLocation::File(None) => Err(MissingAnswer::FolderRemoved),
            AnswerLocation::File(Some(file)) => {
                if is_long_file(file).await {
                    self.long_text_memory.acquire_permit().await;
                }
                let storage = LongTextStorage {
                    memory_account: self.long_text_memory.memory_account.clone(),
                    recording: None,
                };
                record_file_answer(&self.program, file, (limit, storage), reporter).await?
            }
            AnswerLocation::Stdout | AnswerLocation::Events(..) => {
                extract_stdout_answer(&self.program, stdout, reporter).await?
            }
        };
        let answer =
            attempt_answer.as_ref().map(|answer| answer.raw.as_ref()).map_err(|missing| *missing);
        let (stdout, has_other_output, ended_at) = (stdout.raw(), false, reporter.now());
        let reported_result = ReportedResult::default();
        let attempt_outcome = AttemptOutcome {
            exit,
            answer,
            has_other_output,
            stdout,
            stderr,
            reported_result,
            ended_at,
        };
        let result = self.evaluate_with_checks(&attempt_outcome, (reporter, commands)).await;
        if let (Ok(()), Ok(AttemptAnswer { raw, stored_part })) = (&result, attempt_answer) {
            reporter.record_later(EventKind::answer_artifact(stored_part));
            reporter.publish_raw_answer(&raw);
        }
        Ok(result)
    }

    fn ledger_failure(&self, error: &LedgerError) -> Failure {
        tracing::error!(execution = %self.work.execution, %error, "failed to persist output of agent");
        Failure::new(Code::LedgerUnavailable, "the output of the agent could not be recorded")
    }
}
