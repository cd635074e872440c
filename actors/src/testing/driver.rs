//! Driver that follows a script: one [`ScriptedAttempt`] for each attempt.

mod scripted_attempt;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::interactions::QuestionAsker;
use super::work_probe::{LeaseCounter, LiveWorkGuard, WorkProbe};
use crate::driver::{AttemptLease, ClaimedWork, Driver, Lease, UsageFuture, Work};
use crate::model::agent::workspace::Workspace;
use crate::model::agent::{Access, AgentSpec};
use crate::model::execution::event::{EventKind, TextChannel};
use crate::model::execution::request::Request;
use crate::model::execution::usage::UsageReading;
use crate::model::execution::{AttemptId, Interruption};
use crate::model::failure::Failure;
use crate::model::id::ExecutionId;
use crate::model::interaction::{AnswerValue, WireId};
use crate::report::Reporter;

pub use self::scripted_attempt::ScriptedAttempt;
use self::scripted_attempt::ScriptedBehavior;

/// Driver whose script is selected by the text of the input. Unscripted work succeeds at once.
pub struct ScriptedDriver {
    created_at: Instant,
    scripts: watch::Sender<HashMap<String, Vec<ScriptedAttempt>>>,
    workspaces: watch::Sender<HashMap<String, Workspace>>,
    held: watch::Sender<HashMap<ExecutionId, ClaimedWork>>,
    probe: Arc<watch::Sender<WorkProbe>>,
}

impl Default for ScriptedDriver {
    fn default() -> Self {
        Self {
            created_at: Instant::now(),
            scripts: watch::Sender::default(),
            workspaces: watch::Sender::default(),
            held: watch::Sender::default(),
            probe: Arc::new(watch::Sender::default()),
        }
    }
}

impl ScriptedDriver {
    /// Scripts the attempts of executions with this input; the last one serves all later ones.
    pub fn script(&self, text: &str, attempts: impl IntoIterator<Item = ScriptedAttempt>) {
        let attempts = attempts.into_iter().collect();
        self.scripts.send_modify(|all| _ = all.insert(text.to_owned(), attempts));
    }

    /// Sets the workspace of a read-write agent from its next attempt on, unless its caller chooses another one.
    pub fn set_workspace(&self, agent: &str, folder: &str) {
        let workspace = Workspace::new(folder);
        self.workspaces.send_modify(|all| _ = all.insert(agent.to_owned(), workspace));
    }

    /// Holds the work of this execution from the next process of the service on.
    pub fn hold(&self, execution: ExecutionId) {
        self.held.send_modify(|held| _ = held.insert(execution, ClaimedWork::default()));
    }

    /// Holds the work like [`hold`](Self::hold), with a known run time.
    pub fn hold_with_run_time(&self, execution: ExecutionId, run_time: Duration) {
        let work = ClaimedWork { run_time: Some(run_time) };
        self.held.send_modify(|held| _ = held.insert(execution, work));
    }

    /// Returns the visible state.
    #[must_use]
    pub fn probe(&self) -> WorkProbe {
        self.probe.borrow().clone()
    }

    fn scripted_attempt(&self, text: &str, attempt: u32) -> ScriptedAttempt {
        let all = self.scripts.borrow();
        let attempts = all.get(text).map(Vec::as_slice).unwrap_or_default();
        let index = attempt.saturating_sub(1) as usize;
        attempts.get(index).or(attempts.last()).cloned().unwrap_or(ScriptedAttempt::ok(0))
    }
}

#[async_trait]
impl Driver for ScriptedDriver {
    async fn workspace(&self, spec: &AgentSpec, request: &Request) -> Option<Workspace> {
        if spec.access == Access::ReadOnly {
            return None;
        }
        let chosen = request.overrides().working_dir.map(Workspace::new);
        chosen.or_else(|| self.workspaces.borrow().get(spec.id.as_str()).cloned())
    }

    fn start(&self, work: Work, report: Reporter) -> Lease {
        self.perform("", &work, report)
    }

    fn claim(&self, execution: ExecutionId, _: AttemptId) -> Option<ClaimedWork> {
        self.held.borrow().get(&execution).copied()
    }

    fn resume(&self, work: Work, report: Reporter) -> Lease {
        self.perform("again ", &work, report)
    }
}

impl ScriptedDriver {
    fn perform(&self, prefix: &str, work: &Work, report: Reporter) -> Lease {
        let text = &work.request.input.text();
        let attempt = work.attempt_id.attempt;
        let started = format!("{prefix}{text}#{attempt}@{}", self.created_at.elapsed().as_secs());
        let pid = 1 + u32::try_from(self.probe.borrow().started.len()).unwrap_or(u32::MAX);
        self.probe.send_modify(|probe| probe.started.push(started));
        let scripted = self.scripted_attempt(text, attempt);
        assert_ne!(
            scripted.behavior,
            ScriptedBehavior::PanicsOnStart,
            "the driver panics as scripted"
        );
        let (stop, stopped) = watch::channel(false);
        let (answers, answered) = mpsc::unbounded_channel();
        let asker =
            QuestionAsker { execution: work.execution, answered, probe: Arc::clone(&self.probe) };
        let alive = LiveWorkGuard::enter(&self.probe, work, !prefix.is_empty());
        let held = LeaseCounter::enter(&self.probe);
        let cleanup_time = scripted.cleanup_time;
        let is_resumed = !prefix.is_empty();
        let task = tokio::spawn(async move {
            if is_resumed {
                _ = report.restart_output().await; // A lost event fails the test.
            }
            run_attempt(scripted, pid, report, (stopped, asker), alive).await;
        });
        let started = Instant::now();
        Box::new(ScriptedLease { stop, answers, task, cleanup_time, started, _held: held })
    }
}

async fn run_attempt(
    scripted: ScriptedAttempt,
    pid: u32,
    report: Reporter,
    (mut stopped, mut asker): (watch::Receiver<bool>, QuestionAsker),
    alive: LiveWorkGuard,
) {
    let ignores_stop = scripted.behavior == ScriptedBehavior::IgnoresStop;
    let stop = async {
        let is_requested = stopped.wait_for(|stopped| *stopped).await.is_ok();
        if !is_requested || ignores_stop {
            std::future::pending::<()>().await;
        }
        sleep(scripted.stop_delay).await;
    };
    tokio::select! {
        () = stop => {}
        () = run_until_end(&scripted, pid, &report, &mut asker) => {}
    }
    drop(alive);
    if scripted.behavior == ScriptedBehavior::RequestsInput {
        report.end_with_interruption(Interruption::InputRequired, Some(0));
    } else if scripted.behavior != ScriptedBehavior::DropsReporter {
        let until = scripted.retry_after.map(|retry_after| report.now() + retry_after);
        let failed = |code| Failure { until, ..Failure::new(code, "it failed as scripted") };
        let result = scripted.result.map_err(failed);
        let exit_code = i32::from(result.is_err());
        report.report_exit(result, Some(exit_code));
    }
}

async fn run_until_end(
    scripted: &ScriptedAttempt,
    pid: u32,
    report: &Reporter,
    asker: &mut QuestionAsker,
) {
    sleep(scripted.start_delay).await;
    match scripted.behavior {
        ScriptedBehavior::EndsBeforeStart => return,
        ScriptedBehavior::NeverReportsStart => {}
        _ => {
            report.report_start(Some(pid));
        }
    }
    if !scripted.answer_text.is_empty() {
        let mut output_writer = report.open_output(TextChannel::Stdout);
        let written = output_writer.write(scripted.answer_text.as_bytes()).await;
        if let (Ok(()), Ok(text)) = (written, output_writer.close().await) {
            _ = report.record_event(EventKind::answer(text)).await; // A lost event fails the test.
        }
    }
    let mut output_writer = report.open_output(TextChannel::Parts);
    for artifact in &scripted.artifacts {
        _ = output_writer.store_artifact(artifact.clone()).await; // A lost write fails the test.
    }
    for (input, output, cumulative) in &scripted.usage_reports {
        let numbers = [("input_tokens", *input), ("output_tokens", *output)];
        let numbers = numbers.map(|(name, count)| (name.to_owned(), count.into())).into();
        _ = report
            .record_event(EventKind::UsageReported { counters: numbers, cumulative: *cumulative })
            .await; // A lost event fails the test.
    }
    asker.ask_all(&scripted.questions, report).await;
    write_stderr(scripted, report).await;
    sleep(scripted.run_time).await;
    _ = output_writer.close().await;
}

async fn write_stderr(scripted: &ScriptedAttempt, report: &Reporter) {
    if scripted.stderr_pauses.is_empty() {
        return;
    }
    let mut output_writer = report.open_output(TextChannel::Stderr);
    for pause in &scripted.stderr_pauses {
        sleep(*pause).await;
        _ = output_writer.write(b"hm\n").await; // A lost write fails the test.
    }
    _ = output_writer.close().await;
}

struct ScriptedLease {
    stop: watch::Sender<bool>,
    answers: mpsc::UnboundedSender<(WireId, Option<AnswerValue>)>,
    task: JoinHandle<()>,
    cleanup_time: Duration,
    started: Instant,
    _held: LeaseCounter,
}

impl Drop for ScriptedLease {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[async_trait]
impl AttemptLease for ScriptedLease {
    fn stop(&self) {
        self.stop.send_replace(true);
    }

    fn answer(&self, wire: WireId, answer: Option<AnswerValue>) {
        _ = self.answers.send((wire, answer)); // Ended work needs no answer.
    }

    /// Reports all elapsed time as processor time.
    fn usage(&self) -> UsageFuture {
        let cpu_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        let usage = UsageReading { cpu_ms, processes: 1, ..UsageReading::default() };
        Box::pin(std::future::ready(Some(usage)))
    }

    async fn clean(self: Box<Self>) {
        self.task.abort();
        sleep(self.cleanup_time).await;
    }
}
