//! Attempt whose program runs: reads its output, ends it on request, and has its end judged.

mod answer;
mod answer_location;
mod conversation;
mod end_report;
mod final_output;
mod judge;
mod network_check;
mod read_output;

use std::convert::Infallible;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::decide::classify::tty_prompt_detection;
use algonius_actors::driver::Work;
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::program::{Exit, OutputPattern, ProgramSpec};
use algonius_actors::report::Reporter;
use algonius_warden::{
    MemoryAccount, OutputPipe, OutputRecording, ProcessTree, ProgramExit, Spawned, UsageGauge,
};
use tokio::sync::watch;
use tokio::time::{sleep, timeout};

pub(super) use self::answer_location::AnswerLocation;
pub(super) use self::conversation::DialoguePlan;
use self::conversation::RunningDialogue;
pub(super) use self::end_report::EndedRun;
use self::end_report::RunEnd;
use self::judge::RunJudge;
use self::network_check::note_missing_network;
use self::read_output::wait_until_answered;
use super::limits;
use super::session_resume::SessionResume;
use super::success_checks::SuccessChecks;
use crate::drivers::control::Control;
use crate::drivers::files::scratch_dir::ScratchDir;
use crate::drivers::output::model_retries::wait_until_exhausted;
use crate::drivers::output::prompt_detection::PromptDetector;
use crate::drivers::output::pump::OutputSource;

/// Interval between two reports that a program waits for its reader: below the shortest default idle limit of 1 s.
const WAIT_REPORT_INTERVAL: Duration = Duration::from_millis(200);

/// Running attempt. Dropping it kills its process tree and removes the folder, unless the attempt was left.
pub(super) struct RunningProcess {
    pid: u32,
    tree: Box<dyn ProcessTree>,
    folder: Option<ScratchDir>,
    /// Program's account of the memory for output.
    account: MemoryAccount,
    /// Judge of the run, which knows its program and its work.
    judge: RunJudge,
}

/// Pipes and handles of a program that the run consumes.
pub(super) struct ProcessIo {
    stdout: OutputPipe,
    stderr: OutputPipe,
    ending: ProgramExit,
    /// Memory files of both streams.
    recordings: [OutputRecording; 2],
    /// Protocol over standard input while the program runs.
    dialogue: Option<RunningDialogue>,
}

impl RunningProcess {
    /// Takes over a program that was started.
    pub(super) fn new(
        program: Arc<ProgramSpec>,
        (work, session): (Work, SessionResume),
        spawned: Spawned,
        folder: Option<ScratchDir>,
        (output, dialogue, checks): (AnswerLocation, Option<DialoguePlan>, Option<SuccessChecks>),
    ) -> (Self, ProcessIo) {
        let Spawned { pid, stdin, stdout, stderr, ending, tree, recordings, account, .. } = spawned;
        let is_text = program.output == OutputPattern::Stdout;
        let dialogue = dialogue.and_then(|dialogue| {
            RunningDialogue::begin(dialogue, (stdin, spawned.stdin_journal), is_text)
        });
        let judge = RunJudge::new(program, (work, session), (output, checks), account.clone());
        let live = Self { pid, tree, folder, account, judge };
        (live, ProcessIo { stdout, stderr, ending, recordings, dialogue })
    }

    /// Runs to the end. At its return, all output is recorded and no process is alive.
    pub(super) async fn run(
        &self,
        process: ProcessIo,
        report: &Reporter,
        mut orders: Control,
    ) -> EndedRun {
        let ProcessIo { stdout, stderr, ending, recordings, dialogue } = process;
        report.report_start(Some(self.pid));
        let (cut, is_cut) = watch::channel(false);
        let prompts = PromptDetector::new(Arc::clone(&self.judge.program));
        let held = self.judge.work.spec.limits.sizes.output;
        let watcher = || prompts.watcher(report.failed_requests());
        let source = |pipe| OutputSource::new(pipe, is_cut.clone(), watcher(), held);
        let sources = (source(stdout), source(stderr));
        let over = watch::Sender::new(false);
        let mut reading =
            std::pin::pin!(self.read_output(report, (sources, recordings), (dialogue, &over)));
        let failed_requests = report.failed_requests().subscribe();
        let ends = (orders.clone(), over.subscribe(), failed_requests);
        let mut exiting = std::pin::pin!(self.run_to_end(ending, ends, &prompts));
        let (exit, output) = tokio::select! {
            exit = &mut exiting => {
                // The program writes no more, so its pipes are read without a bound: their rest must not wait for the
                // memory that other programs hold.
                self.account.end();
                // The warden is lost, and no other process can report the exit.
                if exit.is_err() { self.tree.sweep().await; }
                (exit, self.drain(reading.as_mut(), &cut).await)
            }
            output = &mut reading => {
                // Reading has stopped, so a program that writes would block at a full pipe.
                if output.is_err() { self.tree.kill(); }
                (self.exit_after_output(exiting, report).await, output)
            }
            never = self.report_waits(report) => match never {},
            never = note_missing_network(&self.judge.program, report) => match never {},
        };
        // Before the judgement: only afterwards are the usage and the refusals of the control group final.
        self.tree.sweep().await;
        self.record_usage(report);
        self.judge.conclude(exit, output, self.tree.refusals(), (report, &mut orders)).await
    }

    /// Notifies the execution, whose program is not idle, while the service does not read for lack of memory.
    async fn report_waits(&self, report: &Reporter) -> Infallible {
        loop {
            self.account.wait_for_blocked_reader().await;
            report.mark_active();
            sleep(WAIT_REPORT_INTERVAL).await;
        }
    }

    /// Returns the gauge of the program's resource usage.
    pub(super) fn gauge(&self) -> UsageGauge {
        self.tree.gauge()
    }

    /// Returns when another process instance of the service drives the program.
    pub(super) async fn wait_until_claimed(&self) {
        self.tree.wait_until_claimed().await;
    }

    /// Leaves the folder to the process instance that has taken the program.
    pub(super) fn leave(self) {
        if let Some(folder) = self.folder {
            folder.leave();
        }
    }

    /// Removes the remains of the attempt. Returns when nothing is left.
    pub(super) async fn clear(self) {
        self.tree.sweep().await;
        if let Some(folder) = self.folder {
            folder.clear().await;
        }
    }

    /// Waits for the program's exit, and ends it after a stop order, a prompt for a person, or an exceeded limit.
    async fn run_to_end(
        &self,
        mut ending: ProgramExit,
        (mut orders, mut over, failed): (Control, watch::Receiver<bool>, watch::Receiver<u32>),
        prompts: &PromptDetector,
    ) -> io::Result<RunEnd> {
        let mut is_exhausted = false;
        let fault = tokio::select! {
            // The exit comes first: a program that has ended is judged by its own exit, not by a simultaneous stop.
            biased;
            exit = &mut ending => return Ok(RunEnd::of(exit?)),
            () = self.stopped(&mut orders, over.clone()) => None,
            () = wait_until_answered(&mut over) => return self.wait_for_exit(ending).await,
            () = prompts.wait_for_prompt() => Some(tty_prompt_detection::prompt_failure()),
            () = wait_until_exhausted(&self.judge.program.failures.own_retries, failed) => {
                is_exhausted = true;
                None
            }
            excess = limits::wait_until_exceeded(&self.judge.program.resources, &*self.tree) => {
                // The program gets no grace period, in which it would use even more.
                self.tree.kill();
                return Ok(RunEnd { fault: Some(excess), ..RunEnd::of(ending.await?) });
            }
        };
        self.tree.terminate();
        if let Ok(exit) = timeout(self.judge.work.spec.limits.deadlines.grace, &mut ending).await {
            return Ok(RunEnd { fault, is_exhausted, ..RunEnd::of(exit?) });
        }
        self.tree.kill();
        Ok(RunEnd { fault, is_exhausted, ..RunEnd::of(ending.await?) })
    }

    /// Returns when a stop is due: at once after the order, but an interactive agent gets its grace period to end its
    /// turn, for which it was asked by a message of its protocol.
    async fn stopped(&self, orders: &mut Control, mut over: watch::Receiver<bool>) {
        orders.stopped().await;
        if self.judge.program.control().is_some() {
            let grace = self.judge.work.spec.limits.deadlines.grace;
            _ = timeout(grace, wait_until_answered(&mut over)).await;
        }
    }

    /// Waits for the exit of a program that has answered, and ends one that stays, without effect on its answer.
    async fn wait_for_exit(&self, mut ending: ProgramExit) -> io::Result<RunEnd> {
        let grace = self.judge.work.spec.limits.deadlines.grace;
        if let Ok(exit) = timeout(grace, &mut ending).await {
            // The exit of an interactive agent after its turn says nothing about the turn.
            let is_agent = self.judge.program.control().is_some();
            return Ok(RunEnd::of(if is_agent { self.success_exit() } else { exit? }));
        }
        self.tree.terminate();
        if timeout(grace, &mut ending).await.is_err() {
            self.tree.kill();
            ending.await?;
        }
        Ok(RunEnd::of(self.success_exit()))
    }

    /// Returns a successful exit, which also stands for a program that was ended after its answer.
    fn success_exit(&self) -> Exit {
        let codes = &self.judge.program.success.exit_codes;
        Exit::Code(codes.first().copied().unwrap_or_default())
    }

    /// Records the resource usage of the program.
    fn record_usage(&self, report: &Reporter) {
        if let Some(spent) = self.tree.final_usage() {
            report.record_later(EventKind::ResourceUsage(spent));
        }
    }
}
