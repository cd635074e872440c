//! Driver that follows a script: one [`Act`] for each attempt.

mod act;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::questions::Asking;
use super::stage::{Alive, LeaseCounter, StageState};
use crate::driver::{Claimed, Driver, Hold, Lease, UsageFuture, Work};
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

pub use self::act::Act;
use self::act::Manner;

/// Driver whose script is selected by the text of the input. Unscripted work succeeds at once.
pub struct ScriptedDriver {
    born: Instant,
    acts: watch::Sender<HashMap<String, Vec<Act>>>,
    workspaces: watch::Sender<HashMap<String, Workspace>>,
    held: watch::Sender<HashMap<ExecutionId, Claimed>>,
    stage: Arc<watch::Sender<StageState>>,
}

impl Default for ScriptedDriver {
    fn default() -> Self {
        Self {
            born: Instant::now(),
            acts: watch::Sender::default(),
            workspaces: watch::Sender::default(),
            held: watch::Sender::default(),
            stage: Arc::new(watch::Sender::default()),
        }
    }
}

impl ScriptedDriver {
    /// Scripts the attempts of executions with this input; the last act serves all later ones.
    pub fn script(&self, text: &str, acts: impl IntoIterator<Item = Act>) {
        let acts = acts.into_iter().collect();
        self.acts.send_modify(|all| _ = all.insert(text.to_owned(), acts));
    }

    /// Sets the workspace of a read-write agent from its next attempt on, unless its caller chooses another one.
    pub fn settle(&self, agent: &str, folder: &str) {
        let workspace = Workspace::new(folder);
        self.workspaces.send_modify(|all| _ = all.insert(agent.to_owned(), workspace));
    }

    /// Holds the work of this execution from the next process of the service on.
    pub fn hold(&self, execution: ExecutionId) {
        self.held.send_modify(|held| _ = held.insert(execution, Claimed::default()));
    }

    /// Holds the work like [`hold`](Self::hold), with a known run time.
    pub fn hold_aged(&self, execution: ExecutionId, ran: Duration) {
        let work = Claimed { ran: Some(ran) };
        self.held.send_modify(|held| _ = held.insert(execution, work));
    }

    /// Returns the visible state.
    #[must_use]
    pub fn stage(&self) -> StageState {
        self.stage.borrow().clone()
    }

    fn act(&self, text: &str, attempt: u32) -> Act {
        let all = self.acts.borrow();
        let acts = all.get(text).map(Vec::as_slice).unwrap_or_default();
        let index = attempt.saturating_sub(1) as usize;
        acts.get(index).or(acts.last()).cloned().unwrap_or(Act::ok(0))
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

    fn claim(&self, execution: ExecutionId, _: AttemptId) -> Option<Claimed> {
        self.held.borrow().get(&execution).copied()
    }

    fn resume(&self, work: Work, report: Reporter) -> Lease {
        self.perform("again ", &work, report)
    }
}

impl ScriptedDriver {
    fn perform(&self, how: &str, work: &Work, report: Reporter) -> Lease {
        let text = &work.request.input.text();
        let attempt = work.stamp.attempt;
        let begun = format!("{how}{text}#{attempt}@{}", self.born.elapsed().as_secs());
        let pid = 1 + u32::try_from(self.stage.borrow().begun.len()).unwrap_or(u32::MAX);
        self.stage.send_modify(|stage| stage.begun.push(begun));
        let act = self.act(text, attempt);
        assert_ne!(act.manner, Manner::Bomb, "the driver panics as scripted");
        let (stop, stopped) = watch::channel(false);
        let (answers, answered) = mpsc::unbounded_channel();
        let asking = Asking { of: work.execution, answered, stage: Arc::clone(&self.stage) };
        let alive = Alive::enter(&self.stage, work, !how.is_empty());
        let held = LeaseCounter::enter(&self.stage);
        let clears_for = act.clears_for;
        let is_again = !how.is_empty();
        let task = tokio::spawn(async move {
            if is_again {
                _ = report.restart_output().await; // A lost event fails the test.
            }
            play(act, pid, report, (stopped, asking), alive).await;
        });
        let begun = Instant::now();
        Box::new(ScriptedLease { stop, answers, task, clears_for, begun, _held: held })
    }
}

async fn play(
    act: Act,
    pid: u32,
    report: Reporter,
    (mut stopped, mut asking): (watch::Receiver<bool>, Asking),
    alive: Alive,
) {
    let is_deaf = act.manner == Manner::Deaf;
    let stop = async {
        let asked = stopped.wait_for(|stopped| *stopped).await.is_ok();
        if !asked || is_deaf {
            std::future::pending::<()>().await;
        }
        sleep(act.ends_after_stop).await;
    };
    tokio::select! {
        () = stop => {}
        () = live(&act, pid, &report, &mut asking) => {}
    }
    drop(alive);
    if act.manner == Manner::Asker {
        report.with_interruption(Interruption::InputRequired, Some(0));
    } else if act.manner != Manner::Deserter {
        let until = act.lasts.map(|lasts| report.now() + lasts);
        let failed = |code| Failure { until, ..Failure::new(code, "it failed as scripted") };
        let verdict = act.verdict.map_err(failed);
        let exit_code = i32::from(verdict.is_err());
        report.ended(verdict, Some(exit_code));
    }
}

async fn live(act: &Act, pid: u32, report: &Reporter, asking: &mut Asking) {
    sleep(act.starts_after).await;
    match act.manner {
        Manner::Stillborn => return,
        Manner::Mute => {}
        _ => {
            report.started(Some(pid));
        }
    }
    if !act.says.is_empty() {
        let mut scribe = report.scribe(TextChannel::Stdout);
        let written = scribe.write(act.says.as_bytes()).await;
        if let (Ok(()), Ok(text)) = (written, scribe.close().await) {
            _ = report.note(EventKind::answer(text)).await; // A lost event fails the test.
        }
    }
    let mut scribe = report.scribe(TextChannel::Parts);
    for made in &act.makes {
        _ = scribe.make(made.clone()).await; // A lost write fails the test.
    }
    for (input, output, cumulative) in &act.uses {
        let numbers = [("input_tokens", *input), ("output_tokens", *output)];
        let numbers = numbers.map(|(name, count)| (name.to_owned(), count.into())).into();
        _ = report
            .note(EventKind::UsageReported { counters: numbers, cumulative: *cumulative })
            .await; // A lost event fails the test.
    }
    asking.ask_all(&act.questions, report).await;
    murmur(act, report).await;
    sleep(act.runs_for).await;
    _ = scribe.close().await;
}

async fn murmur(act: &Act, report: &Reporter) {
    if act.murmurs.is_empty() {
        return;
    }
    let mut scribe = report.scribe(TextChannel::Stderr);
    for pause in &act.murmurs {
        sleep(*pause).await;
        _ = scribe.write(b"hm\n").await; // A lost write fails the test.
    }
    _ = scribe.close().await;
}

struct ScriptedLease {
    stop: watch::Sender<bool>,
    answers: mpsc::UnboundedSender<(WireId, Option<AnswerValue>)>,
    task: JoinHandle<()>,
    clears_for: Duration,
    begun: Instant,
    _held: LeaseCounter,
}

impl Drop for ScriptedLease {
    fn drop(&mut self) {
        self.task.abort();
    }
}

#[async_trait]
impl Hold for ScriptedLease {
    fn stop(&self) {
        self.stop.send_replace(true);
    }

    fn answer(&self, wire: WireId, answer: Option<AnswerValue>) {
        _ = self.answers.send((wire, answer)); // Ended work needs no answer.
    }

    /// Reports all elapsed time as processor time.
    fn usage(&self) -> UsageFuture {
        let cpu_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let usage = UsageReading { cpu_ms, processes: 1, ..UsageReading::default() };
        Box::pin(std::future::ready(Some(usage)))
    }

    async fn clean(self: Box<Self>) {
        self.task.abort();
        sleep(self.clears_for).await;
    }
}
