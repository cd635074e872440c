//! One message to a session process, which a pool keeps for the rest of its conversation.

pub(super) mod pool;
mod process;
mod received_answer;

use std::sync::Arc;

use algonius_actors::decide::classify::success_evaluation::AttemptOutcome;
use algonius_actors::driver::report::Reporter;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::program::ProcessExit;
use algonius_actors::model::session::{ConversationKey, SessionId};
use algonius_actors::ports::ledger::LedgerError;
use algonius_warden::UsageGauge;
use tokio::sync::watch;

use self::pool::{IdleProcessLimits, PoolReservation, ProcessPool, ReservedProcess};
use self::process::{ConversationProgress, SessionProcess, StartSettings};
use self::received_answer::{AnswerEnd, ReceivedAnswer};
use super::attempt::{PendingAttempt, StartedProgram};
use super::context::SharedDriverContext;
use super::running_process::{AnswerLocation, AttemptEnd};
use super::session_resume::{self, AttemptSession};
use crate::drivers::adapters::event_reader::EventSummary;
use crate::drivers::lease_commands::LeaseCommandReceiver;
use crate::drivers::output::line_limit::max_line_bytes;
use crate::drivers::start_faults::evaluate_ended_attempt;
use crate::drivers::stdio::protocol::StdioTurn;

/// Runs one message from its order to its end. Whatever the result, the program is then back in the pool, or nothing of
/// it remains.
pub(super) async fn run_turn(
    attempt: PendingAttempt,
    pool: Arc<ProcessPool>,
    (reporter, gauge_sender): (Reporter, watch::Sender<Option<UsageGauge>>),
    commands: LeaseCommandReceiver,
) {
    let turn = SessionTurn { attempt, pool, commands };
    match Box::pin(turn.run(&reporter, &gauge_sender)).await {
        Ok(attempt_end) => attempt_end.report(reporter),
        Err(failure) => reporter.report_end(Err(failure), None),
    }
}

/// Returns a successful exit, which also stands for a program that continues to run.
const fn success_exit() -> ProcessExit {
    ProcessExit::Code(0)
}

struct SessionTurn {
    attempt: PendingAttempt,
    pool: Arc<ProcessPool>,
    commands: LeaseCommandReceiver,
}

impl SessionTurn {
    async fn run(
        mut self,
        reporter: &Reporter,
        gauge_sender: &watch::Sender<Option<UsageGauge>>,
    ) -> Result<AttemptEnd, Failure> {
        let work = &self.attempt.work;
        if work.request.input.has_files() {
            let message = "the agent accepts no files, because its process stays between messages";
            return Err(Failure::new(Code::InputRejected, message));
        }
        loop {
            // Boxed: the redactors of its output would make this future, and all futures around it, too large.
            let attempt_end = Box::pin(self.run_once(reporter, gauge_sender)).await?;
            if !attempt_end.is_session_lost() || self.commands.should_stop() {
                return Ok(attempt_end);
            }
            // The program lost its session before any work, so a new process can repeat the message.
            let SharedDriverContext { sessions, .. } = &*self.attempt.context;
            session_resume::delete_unknown_session(&self.attempt.work, &**sessions, reporter)
                .await?;
        }
    }

    async fn run_once(
        &mut self,
        reporter: &Reporter,
        gauge_sender: &watch::Sender<Option<UsageGauge>>,
    ) -> Result<AttemptEnd, Failure> {
        let reserved = self.take_or_start_process(reporter).await?;
        let stdio_turn = match self.build_stdio_turn(&reserved) {
            Ok(stdio_turn) => stdio_turn,
            Err(failure) => {
                self.return_to_pool(reserved, reporter);
                return Err(failure);
            }
        };
        gauge_sender.send_replace(Some(reserved.process.tree.gauge()));
        reporter.report_start(Some(reserved.process.pid));
        let exchange_result =
            Box::pin(self.exchange_and_evaluate(reserved, stdio_turn, reporter)).await;
        exchange_result.unwrap_or_else(|error| {
            tracing::error!(%error, "failed to persist output of session process");
            let message = "the output of the agent could not be recorded";
            Err(Failure::new(Code::LedgerUnavailable, message))
        })
    }

    fn idle_process_limits(&self) -> IdleProcessLimits {
        let grace = self.attempt.work.spec.limits.timeouts.grace;
        IdleProcessLimits { grace, resources: self.attempt.program.resource_limits }
    }

    fn return_to_pool(&self, reserved: ReservedProcess, reporter: &Reporter) {
        self.pool.put_back(reserved, self.idle_process_limits(), reporter.now());
    }

    fn build_stdio_turn(&self, reserved: &ReservedProcess) -> Result<StdioTurn, Failure> {
        let Some(spec) = &self.attempt.program.stdio_protocol else {
            return Err(Failure::new(Code::Internal, "a session process has no protocol"));
        };
        let mut values = self.attempt.template_values();
        if let Some(id) = &reserved.process.progress.session_id {
            id.expose().clone_into(&mut values.session_id);
        }
        let max_message_bytes =
            max_line_bytes(self.attempt.work.spec.limits.sizes.max_output_bytes);
        StdioTurn::new(spec, &values, reserved.process.progress.message_count, max_message_bytes)
    }

    /// Returns the program of the conversation: the pooled one if it fits, or a new one.
    async fn take_or_start_process(
        &mut self,
        reporter: &Reporter,
    ) -> Result<ReservedProcess, Failure> {
        let conversation = ConversationKey::from_request(&self.attempt.work.request);
        let start_settings = StartSettings::for_attempt(&self.attempt).await?;
        match self.pool.take(&conversation).await {
            Some(reserved) if reserved.process.start_settings == start_settings => {
                return Ok(reserved);
            }
            Some(reserved) => reserved.end(self.idle_process_limits().grace).await,
            None => {}
        }
        let SharedDriverContext { sessions, .. } = &*self.attempt.context;
        let (program, work) = (&self.attempt.program, &self.attempt.work);
        self.attempt.session = AttemptSession::find(program, work, &**sessions, reporter).await?;
        if program.session_resume.is_none() {
            session_resume::forget_in_process_session(work, &**sessions, reporter).await?;
        }
        let reservation = self.pool.reserve(&conversation, reporter.now()).await;
        self.start_process(reservation, start_settings).await
    }

    async fn start_process(
        &self,
        reservation: PoolReservation,
        start_settings: StartSettings,
    ) -> Result<ReservedProcess, Failure> {
        // A session process belongs to no execution: its holder knows it by an id of its own.
        let mut attempt = self.attempt.clone();
        (attempt.work.execution, attempt.work.attempt_id) =
            (ExecutionId::generate(), AttemptId::FIRST);
        let StartedProgram { spawned, folder, answer_location, .. } =
            Box::pin(attempt.launch(&self.commands)).await?;
        let AnswerLocation::Events(allowed_folders, dialect) = answer_location else {
            return Err(Failure::new(Code::Internal, "a session process has no events"));
        };
        self.pool.record_pid(&reservation, spawned.pid);
        let session_id = attempt.session.session_id(&attempt.program, &attempt.work);
        let progress = ConversationProgress { session_id, ..ConversationProgress::default() };
        let process = SessionProcess {
            pid: spawned.pid,
            stdout: spawned.stdout,
            stderr: spawned.stderr,
            stdin: spawned.stdin,
            program_exit: spawned.exit,
            tree: spawned.tree,
            memory_account: spawned.memory_account,
            scratch_dir: folder,
            allowed_folders,
            dialect,
            start_settings,
            progress,
        };
        Ok(ReservedProcess { process, reservation })
    }

    /// Sends the message to the program, and judges its answer.
    async fn exchange_and_evaluate(
        &self,
        mut reserved: ReservedProcess,
        stdio_turn: StdioTurn,
        reporter: &Reporter,
    ) -> Result<Result<AttemptEnd, Failure>, LedgerError> {
        if reserved.process.progress.message_count > 0 {
            reporter.set_session_usage_counters(reserved.process.progress.usage_counters.clone());
        }
        let ReceivedAnswer { end, summary, stdout, stderr } =
            Box::pin(self.exchange_message(&mut reserved.process, stdio_turn, reporter)).await?;
        let is_long =
            [&stdout, &stderr, &summary.answer_text].iter().any(|text| text.raw.is_long());
        let long_text_permit = if is_long {
            reserved.process.memory_account.acquire_long_text_permit().await
        } else {
            None
        };
        let exit = match end.effective_exit() {
            Ok(exit) => exit,
            Err(failure) => {
                reserved.end(self.idle_process_limits().grace).await;
                return Ok(Err(failure));
            }
        };
        let EventSummary {
            answer_text: text,
            reported_result,
            required_input,
            has_output_outside_answer: has_other_output,
        } = summary;
        let (stdout, stderr) = (stdout.raw(), stderr.raw());
        let (answer, ended_at) = (Ok(text.raw()), reporter.now());
        let attempt_outcome = AttemptOutcome {
            exit,
            answer,
            has_other_output,
            stdout,
            stderr,
            reported_result,
            ended_at,
        };
        let result = evaluate_ended_attempt(&self.attempt.program, &attempt_outcome).await;
        if result.is_ok() {
            reporter.publish_raw_answer(text.raw());
        }
        let session_update =
            self.attempt.session.find_session_update(&self.attempt.program, exit, [stdout, stderr]);
        session_update.warn_if_id_unusable(reporter).await;
        drop(long_text_permit);
        let exit_code = if matches!(end, AnswerEnd::Exit(_)) { exit.code() } else { None };
        let mut attempt_end = AttemptEnd { result, exit_code, required_input, session_update };
        self.record_progress_and_release(&end, reserved, &mut attempt_end, reporter).await;
        Ok(Ok(attempt_end))
    }

    /// Records the progress of the conversation, returns a running program to the pool for the next message, and ends
    /// any other.
    async fn record_progress_and_release(
        &self,
        end: &AnswerEnd,
        mut reserved: ReservedProcess,
        attempt_end: &mut AttemptEnd,
        reporter: &Reporter,
    ) {
        let reported_id = attempt_end.take_session_id_of_success();
        reserved.process.progress.session_id = reporter
            .session_id()
            .or(reserved.process.progress.session_id)
            .or_else(|| reported_id.clone().flatten());
        reserved.process.progress.usage_counters = reporter.session_usage_counters();
        let session_id = reserved.process.progress.session_id.clone();
        self.store_session(reported_id.is_some(), session_id, reporter).await;
        reserved.process.progress.message_count += 1;
        let can_continue = !self.commands.is_lease_dropped() && reserved.process.stdin.is_some();
        match end {
            AnswerEnd::Completed if can_continue => self.return_to_pool(reserved, reporter),
            AnswerEnd::Completed | AnswerEnd::UnreadableOutput | AnswerEnd::Fault(_) => {
                reserved.end(self.idle_process_limits().grace).await;
            }
            AnswerEnd::Exit(_) => reserved.clean_up().await,
        }
    }

    /// Records in the ledger that the conversation has a session to resume.
    async fn store_session(
        &self,
        is_success: bool,
        session_id: Option<SessionId>,
        reporter: &Reporter,
    ) {
        let PendingAttempt { program, work, session: attempt_session, context, .. } = &self.attempt;
        let SharedDriverContext { sessions, .. } = &**context;
        let stored = match &program.session_resume {
            Some(_) if is_success => {
                attempt_session.store(program, work, (&**sessions, reporter), session_id).await
            }
            Some(_) => Ok(()),
            None => session_resume::store_in_process_session(work, &**sessions, reporter).await,
        };
        if let Err(error) = stored {
            tracing::error!(execution = %work.execution, %error, "failed to store session");
        }
    }
}
