//! Attempt whose program runs: reads its output, ends it on request, and has its end judged.

mod answer;
mod answer_location;
mod dialogue;
mod end_report;
mod final_output;
mod network_check;
mod outcome_evaluator;
mod program_output;

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::decide::classify::tty_prompt_detection;
use algonius_actors::driver::AttemptWork;
use algonius_actors::driver::report::Reporter;
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::program::{OutputMethod, ProcessExit, ProgramSpec};
use algonius_warden::{
    MemoryAccount, OutputPipe, OutputRecording, ProcessTree, ProgramExit, SpawnedProgram,
    UsageGauge,
};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

pub(super) use self::answer_location::AnswerLocation;
pub(super) use self::dialogue::DialoguePlan;
use self::dialogue::RunningDialogue;
pub(super) use self::end_report::AttemptEnd;
use self::end_report::ExitReport;
use self::network_check::warn_if_offline;
use self::outcome_evaluator::OutcomeEvaluator;
use self::program_output::wait_until_answered;
use super::limit_monitor;
use super::session_resume::AttemptSession;
use super::success_checks::SuccessChecks;
use crate::drivers::files::scratch_dir::ScratchDir;
use crate::drivers::lease_commands::LeaseCommandReceiver;
use crate::drivers::output::channel_writer::OutputSource;
use crate::drivers::output::model_retries::wait_until_retries_exhausted;
use crate::drivers::output::prompt_detection::PromptDetector;
use crate::drivers::output::recorded_limit::max_recorded_bytes;

/// Interval between two reports that a program waits for its reader: below the shortest default idle limit of 1 s.
const BLOCKED_READ_REPORT_INTERVAL: Duration = Duration::from_millis(200);

/// Running attempt. Dropping it kills its process tree and removes the folder, unless the attempt was left.
pub(super) struct RunningProcess {
    pid: u32,
    tree: Box<dyn ProcessTree>,
    folder: Option<ScratchDir>,
    /// Program's account of the memory for output.
    memory_account: MemoryAccount,
    /// Evaluator of the outcome, which knows its program and its work.
    evaluator: OutcomeEvaluator,
}

/// Pipes and handles of a program that the run consumes.
pub(super) struct ProcessIo {
    stdout: OutputPipe,
    stderr: OutputPipe,
    program_exit: ProgramExit,
    /// Memory files of both streams.
    recordings: [OutputRecording; 2],
    /// Protocol over standard input while the program runs.
    dialogue: Option<RunningDialogue>,
}

impl RunningProcess {
    /// Takes over a program that was started.
    pub(super) fn new(
        program: Arc<ProgramSpec>,
        (work, session): (AttemptWork, AttemptSession),
        spawned: SpawnedProgram,
        folder: Option<ScratchDir>,
        (answer_location, dialogue, checks): (
            AnswerLocation,
            Option<DialoguePlan>,
            Option<SuccessChecks>,
        ),
    ) -> (Self, ProcessIo) {
        let SpawnedProgram {
            pid,
            stdin,
            stdout,
            stderr,
            exit,
            tree,
            recordings,
            memory_account,
            ..
        } = spawned;
        let has_text_answer = program.output_method == OutputMethod::Stdout;
        let dialogue = dialogue.and_then(|dialogue| {
            RunningDialogue::start(dialogue, (stdin, spawned.stdin_journal), has_text_answer)
        });
        let evaluator = OutcomeEvaluator::new(
            program,
            (work, session),
            (answer_location, checks),
            memory_account.clone(),
        );
        let running = Self { pid, tree, folder, memory_account, evaluator };
        (running, ProcessIo { stdout, stderr, program_exit: exit, recordings, dialogue })
    }

    /// Runs to the end. At its return, all output is recorded and no process is alive.
    pub(super) async fn run(
        &self,
        process_io: ProcessIo,
        reporter: &Reporter,
        mut commands: LeaseCommandReceiver,
    ) -> AttemptEnd {
        let ProcessIo { stdout, stderr, program_exit, recordings, dialogue } = process_io;
        reporter.report_start(Some(self.pid));
        let (drain_sender, drain_signal) = watch::channel(false);
        let prompt_detector = PromptDetector::new(Arc::clone(&self.evaluator.program));
        let OutcomeEvaluator { program, work, .. } = &self.evaluator;
        let max_unread_bytes = max_recorded_bytes(program, work.spec.limits.sizes.max_output_bytes);
        let max_unread_bytes = usize::try_from(max_unread_bytes).unwrap_or(usize::MAX);
        let new_observer =
            || prompt_detector.new_output_observer(reporter.failed_request_counter());
        let new_source =
            |pipe| OutputSource::new(pipe, drain_signal.clone(), new_observer(), max_unread_bytes);
        let sources = (new_source(stdout), new_source(stderr));
        let answered_sender = watch::Sender::new(false);
        let mut output_future = std::pin::pin!(self.read_output(
            reporter,
            (sources, recordings),
            (dialogue, &answered_sender)
        ));
        let failed_requests = reporter.failed_request_counter().subscribe();
        let end_signals = (commands.clone(), answered_sender.subscribe(), failed_requests);
        let mut end_future =
            std::pin::pin!(self.supervise_until_exit(program_exit, end_signals, &prompt_detector));
        let (exit, output) = tokio::select! {
            exit = &mut end_future => {
                // The program writes no more, so its pipes are read without a bound: their rest must not wait for the
                // memory that other programs hold.
                self.memory_account.mark_program_ended();
                // The process holder is lost, and no other process can report the exit.
                if exit.is_err() { self.tree.kill_all_processes().await; }
                (exit, self.drain(output_future.as_mut(), &drain_sender).await)
            }
            output = &mut output_future => {
                // Reading has stopped, so a program that writes would block at a full pipe.
                if output.is_err() { self.tree.kill(); }
                (self.wait_for_exit_after_output(end_future, reporter).await, output)
            }
            never = self.report_blocked_reads(reporter) => match never {},
            never = warn_if_offline(&self.evaluator.program, reporter) => match never {},
        };
        // Before the judgement: the usage and the limit events of the control group are final only after the kill.
        self.tree.kill_all_processes().await;
        self.record_resource_usage(reporter);
        self.evaluator
            .evaluate_end(exit, output, self.tree.limit_events(), (reporter, &mut commands))
            .await
    }

    /// Notifies the execution, whose program is not idle, while the service does not read for lack of memory.
    async fn report_blocked_reads(&self, reporter: &Reporter) -> Infallible {
        loop {
            self.memory_account.wait_for_blocked_reader().await;
            reporter.mark_active();
            sleep(BLOCKED_READ_REPORT_INTERVAL).await;
        }
    }

    /// Returns the gauge of the program's resource usage.
    pub(super) fn gauge(&self) -> UsageGauge {
        self.tree.gauge()
    }

    /// Returns when another process instance of the service drives the program.
    pub(super) async fn wait_until_taken_over(&self) {
        self.tree.wait_until_taken_over().await;
    }

    /// Leaves the folder to the process instance that has taken the program.
    pub(super) fn detach(self) {
        if let Some(folder) = self.folder {
            folder.detach();
        }
    }

    /// Removes the remains of the attempt. Returns when nothing is left.
    pub(super) async fn clean_up(self) {
        self.tree.kill_all_processes().await;
        if let Some(folder) = self.folder {
            folder.remove().await;
        }
    }

    /// Waits for the program's exit, and ends it after a stop order, a prompt for a person, or an exceeded limit.
    async fn supervise_until_exit(
        &self,
        mut program_exit: ProgramExit,
        (mut commands, mut answered_receiver, failed_requests): (
            LeaseCommandReceiver,
            watch::Receiver<bool>,
            watch::Receiver<u32>,
        ),
        prompt_detector: &PromptDetector,
    ) -> io::Result<ExitReport> {
        let mut has_exhausted_retries = false;
        let fault = tokio::select! {
            // The exit comes first: a program that has ended is judged by its own exit, not by a simultaneous stop.
            biased;
            exit = &mut program_exit => return Ok(ExitReport::from_exit(exit?)),
            () = self.wait_until_stop_due(&mut commands, answered_receiver.clone()) => None,
            () = wait_until_answered(&mut answered_receiver) => return self.wait_for_exit_after_answer(program_exit).await,
            () = prompt_detector.wait_for_prompt() => Some(tty_prompt_detection::prompt_failure()),
            () = wait_until_retries_exhausted(&self.evaluator.program.failure_rules.program_retry_rules, failed_requests) => {
                has_exhausted_retries = true;
                None
            }
            excess = limit_monitor::wait_until_limit_exceeded(&self.evaluator.program.resource_limits, &*self.tree) => {
                // The program gets no grace period, in which it would use even more.
                self.tree.kill();
                return Ok(ExitReport { fault: Some(excess), ..ExitReport::from_exit(program_exit.await?) });
            }
        };
        self.tree.terminate();
        let grace = self.evaluator.work.spec.limits.timeouts.grace;
        if let Ok(exit) = timeout(grace, &mut program_exit).await {
            return Ok(ExitReport { fault, has_exhausted_retries, ..ExitReport::from_exit(exit?) });
        }
        self.tree.kill();
        let exit = program_exit.await?;
        Ok(ExitReport { fault, has_exhausted_retries, ..ExitReport::from_exit(exit) })
    }

    /// Returns when a stop is due: at once after the order, but an interactive agent gets its grace period to end its
    /// turn, for which it was asked by a message of its protocol.
    async fn wait_until_stop_due(
        &self,
        commands: &mut LeaseCommandReceiver,
        mut answered_receiver: watch::Receiver<bool>,
    ) {
        commands.wait_for_stop().await;
        if self.evaluator.program.interactive_spec().is_some() {
            let grace = self.evaluator.work.spec.limits.timeouts.grace;
            _ = timeout(grace, wait_until_answered(&mut answered_receiver)).await;
        }
    }

    /// Waits for the exit of a program that has answered, and ends one that stays, without effect on its answer.
    async fn wait_for_exit_after_answer(
        &self,
        mut program_exit: ProgramExit,
    ) -> io::Result<ExitReport> {
        let program = &self.evaluator.program;
        let grace = self.evaluator.work.spec.limits.timeouts.grace;
        if let Ok(exit) = timeout(grace, &mut program_exit).await {
            // The exit of an interactive agent after its turn says nothing about the turn.
            let is_interactive = program.interactive_spec().is_some();
            let exit = if is_interactive { success_exit(program) } else { exit? };
            return Ok(ExitReport::from_exit(exit));
        }
        self.tree.terminate();
        if timeout(grace, &mut program_exit).await.is_err() {
            self.tree.kill();
            program_exit.await?;
        }
        Ok(ExitReport::from_exit(success_exit(program)))
    }

    /// Records the resource usage of the program.
    fn record_resource_usage(&self, reporter: &Reporter) {
        if let Some(final_usage) = self.tree.final_usage() {
            reporter.record_later(EventKind::ResourceUsage(final_usage));
        }
    }
}

/// Returns a successful exit, which also stands for a program that was ended after its answer.
fn success_exit(program: &ProgramSpec) -> ProcessExit {
    let codes = &program.success_criteria.exit_codes;
    ProcessExit::Code(codes.first().copied().unwrap_or_default())
}
