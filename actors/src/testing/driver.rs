//! Driver that follows a script: one [`ScriptedAttempt`] for each attempt.

mod scripted_attempt;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::interactions::QuestionExchange;
use super::recorded_work::{LeaseCountGuard, LiveWorkGuard, RecordedWork};
use crate::driver::report::Reporter;
use crate::driver::{AttemptLease, AttemptWork, Driver, Lease, UsageFuture, WorkTakenOver};
use crate::model::agent::workspace::Workspace;
use crate::model::agent::{Access, AgentSpec};
use crate::model::execution::event::{EventKind, TextChannel};
use crate::model::execution::request::Request;
use crate::model::execution::usage::UsageReading;
use crate::model::execution::{AttemptId, Interruption};
use crate::model::failure::Failure;
use crate::model::id::ExecutionId;
use crate::model::interaction::{AnswerValue, WireId};

pub use self::scripted_attempt::ScriptedAttempt;
use self::scripted_attempt::ScriptedBehavior;
use super::cognition::ScriptedModelAndTools;

/// Driver whose script is selected by the text of the input. Unscripted work succeeds at once.
pub struct ScriptedDriver {
    created_at: Instant,
    scripts: watch::Sender<HashMap<String, Vec<ScriptedAttempt>>>,
    workspaces: watch::Sender<HashMap<String, Workspace>>,
    preserved_work: watch::Sender<HashMap<ExecutionId, WorkTakenOver>>,
    recorded_work: Arc<watch::Sender<RecordedWork>>,
    /// Model and tools of the cognitive agents, whose runs have a driver of their own.
    pub cognition: Arc<ScriptedModelAndTools>,
}

impl Default for ScriptedDriver {
    fn default() -> Self {
        Self {
            created_at: Instant::now(),
            scripts: watch::Sender::default(),
            workspaces: watch::Sender::default(),
            preserved_work: watch::Sender::default(),
            recorded_work: Arc::new(watch::Sender::default()),
            cognition: Arc::default(),
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
    pub fn preserve_over_restart(&self, execution: ExecutionId) {
        self.preserved_work
            .send_modify(|held_work| _ = held_work.insert(execution, WorkTakenOver::default()));
    }

    /// Holds the work like [`preserve_over_restart`](Self::preserve_over_restart), with a known run time.
    pub fn preserve_with_run_time(&self, execution: ExecutionId, run_time: Duration) {
        let work = WorkTakenOver { elapsed_run_time: Some(run_time) };
        self.preserved_work.send_modify(|held_work| _ = held_work.insert(execution, work));
    }

    /// Returns the visible state.
    #[must_use]
    pub fn recorded_work(&self) -> RecordedWork {
        self.recorded_work.borrow().clone()
    }

    /// Records that held work has read an answer, as `WIRE:WORD`, from a service that did not record that.
    pub fn add_delivered_answer(&self, id: ExecutionId, answer: &str) {
        self.recorded_work
            .send_modify(|work| work.delivered_answers.push(format!("{id} {answer}")));
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
        let requested_workspace = request.effective_overrides().working_dir.map(Workspace::new);
        requested_workspace.or_else(|| self.workspaces.borrow().get(spec.id.as_str()).cloned())
    }

    fn start(&self, work: AttemptWork, reporter: Reporter) -> Lease {
        self.spawn_attempt("", &work, reporter)
    }

    fn take_over_held_work(&self, execution: ExecutionId, _: AttemptId) -> Option<WorkTakenOver> {
        self.preserved_work.borrow().get(&execution).copied()
    }

    fn resume(&self, work: AttemptWork, reporter: Reporter) -> Lease {
        self.spawn_attempt("again ", &work, reporter)
    }
}

impl ScriptedDriver {
    fn spawn_attempt(
        &self,
        start_description_prefix: &str,
        work: &AttemptWork,
        reporter: Reporter,
    ) -> Lease {
        let text = &work.request.input.text();
        let attempt = work.attempt_id.attempt;
        let start_description = format!(
            "{start_description_prefix}{text}#{attempt}@{}",
            self.created_at.elapsed().as_secs()
        );
        let pid = 1 + u32::try_from(self.recorded_work.borrow().starts.len()).unwrap_or(u32::MAX);
        self.recorded_work.send_modify(|work| work.starts.push(start_description));
        let script = self.scripted_attempt(text, attempt);
        assert_ne!(
            script.behavior,
            ScriptedBehavior::PanicsOnStart,
            "the driver panics as scripted"
        );
        let (stop_sender, stop_receiver) = watch::channel(false);
        let (answer_sender, answer_receiver) = mpsc::unbounded_channel();
        let question_exchange = QuestionExchange {
            execution: work.execution,
            answer_receiver,
            recorded_work: Arc::clone(&self.recorded_work),
        };
        let live_work_guard = LiveWorkGuard::record_start(
            &self.recorded_work,
            work,
            !start_description_prefix.is_empty(),
        );
        let lease_count_guard = LeaseCountGuard::increment(&self.recorded_work);
        let cleanup_time = script.cleanup_time;
        let is_resumed = !start_description_prefix.is_empty();
        let task = tokio::spawn(async move {
            if is_resumed {
                _ = reporter.delete_output().await; // A lost event fails the test.
            }
            run_scripted_attempt(
                script,
                pid,
                reporter,
                (stop_receiver, question_exchange),
                live_work_guard,
            )
            .await;
        });
        let started_at = Instant::now();
        Box::new(ScriptedLease {
            stop_sender,
            answer_sender,
            task,
            cleanup_time,
            started_at,
            _lease_count_guard: lease_count_guard,
        })
    }
}

async fn run_scripted_attempt(
    script: ScriptedAttempt,
    pid: u32,
    reporter: Reporter,
    (mut stop_receiver, mut question_exchange): (watch::Receiver<bool>, QuestionExchange),
    live_work_guard: LiveWorkGuard,
) {
    let ignores_stop = script.behavior == ScriptedBehavior::IgnoresStop;
    let stop = async {
        let is_requested = stop_receiver.wait_for(|stopped| *stopped).await.is_ok();
        if !is_requested || ignores_stop {
            std::future::pending::<()>().await;
        }
        sleep(script.stop_delay).await;
    };
    tokio::select! {
        () = stop => {}
        () = run_until_end(&script, pid, &reporter, &mut question_exchange) => {}
    }
    drop(live_work_guard);
    if script.behavior == ScriptedBehavior::RequestsInput {
        reporter.report_input_required(Interruption::InputRequired, Some(0));
    } else if script.behavior != ScriptedBehavior::DropsReporter {
        let until = script.retry_after.map(|retry_after| reporter.now() + retry_after);
        let to_failure = |code| Failure { until, ..Failure::new(code, "it failed as scripted") };
        let result = script.result.map_err(to_failure);
        let exit_code = i32::from(result.is_err());
        if script.behavior == ScriptedBehavior::WarnsAtEnd {
            reporter.record_later(EventKind::Warning { message: "that was all".to_owned() });
        }
        reporter.report_end(result, Some(exit_code));
    }
}

async fn run_until_end(
    script: &ScriptedAttempt,
    pid: u32,
    reporter: &Reporter,
    question_exchange: &mut QuestionExchange,
) {
    sleep(script.start_delay).await;
    match script.behavior {
        ScriptedBehavior::EndsBeforeStart => return,
        ScriptedBehavior::NeverReportsStart => {}
        _ => {
            reporter.report_start(Some(pid));
        }
    }
    if !script.answer_text.is_empty() {
        let mut output_writer = reporter.open_output(TextChannel::Stdout);
        let write_result = output_writer.write(script.answer_text.as_bytes()).await;
        if let (Ok(()), Ok(text)) = (write_result, output_writer.close().await) {
            _ = reporter.record_event(EventKind::answer_artifact(text)).await; // A lost event fails the test.
        }
    }
    let mut output_writer = reporter.open_output(TextChannel::Parts);
    for artifact in &script.artifacts {
        _ = output_writer.store_artifact_piece(artifact.clone()).await; // A lost write fails the test.
    }
    for (input, output, cumulative) in &script.usage_reports {
        let counters = [("input_tokens", *input), ("output_tokens", *output)];
        let counters = counters.map(|(name, count)| (name.to_owned(), count.into())).into();
        _ = reporter
            .record_event(EventKind::UsageReported { counters, cumulative: *cumulative })
            .await; // A lost event fails the test.
    }
    if script.behavior == ScriptedBehavior::EndsWithOpenQuestion {
        let answer_wait = question_exchange.send_and_await_answers(&script.questions, reporter);
        _ = tokio::time::timeout(script.run_time, answer_wait).await; // The end of the run ends the wait.
        return;
    }
    question_exchange.send_and_await_answers(&script.questions, reporter).await;
    write_stderr(script, reporter).await;
    sleep(script.run_time).await;
    _ = output_writer.close().await;
}

async fn write_stderr(script: &ScriptedAttempt, reporter: &Reporter) {
    if script.stderr_pauses.is_empty() {
        return;
    }
    let mut output_writer = reporter.open_output(TextChannel::Stderr);
    for pause in &script.stderr_pauses {
        sleep(*pause).await;
        _ = output_writer.write(b"hm\n").await; // A lost write fails the test.
    }
    _ = output_writer.close().await;
}

struct ScriptedLease {
    stop_sender: watch::Sender<bool>,
    answer_sender: mpsc::UnboundedSender<(WireId, Option<AnswerValue>)>,
    task: JoinHandle<()>,
    cleanup_time: Duration,
    started_at: Instant,
    _lease_count_guard: LeaseCountGuard,
}

impl Drop for ScriptedLease {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[async_trait]
impl AttemptLease for ScriptedLease {
    fn stop(&self) {
        self.stop_sender.send_replace(true);
    }

    fn send_answer(&self, wire_id: WireId, answer: Option<AnswerValue>) {
        _ = self.answer_sender.send((wire_id, answer)); // Ended work needs no answer.
    }

    /// Reports all elapsed time as processor time.
    fn measure_usage(&self) -> UsageFuture {
        let cpu_ms = u64::try_from(self.started_at.elapsed().as_millis()).unwrap_or(u64::MAX);
        let usage = UsageReading { cpu_ms, processes: 1, ..UsageReading::default() };
        Box::pin(std::future::ready(Some(usage)))
    }

    async fn clean_up(self: Box<Self>) {
        self.task.abort();
        sleep(self.cleanup_time).await;
    }
}
