//! Work that follows a script: one [`Act`] for each attempt.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep};

use super::stage::{Alive, Held, Stage};
use crate::decide::grow::Made;
use crate::model::agent::{Access, AgentSpec};
use crate::model::code::Code;
use crate::model::content::Part;
use crate::model::event::{Channel, Fact};
use crate::model::execution::Stamp;
use crate::model::failure::Failure;
use crate::model::id::ExecutionId;
use crate::model::request::Request;
use crate::model::usage::Usage;
use crate::model::workspace::Workspace;
use crate::ports::driver::{Claimed, Driver, Hold, Lease, Reading, Work};
use crate::report::Reporter;

/// What one attempt does. Made by [`Act::ok`], [`Act::fail`] and their kin, then refined.
#[derive(Debug, Clone)]
pub struct Act {
    starts_after: Duration,
    runs_for: Duration,
    verdict: Result<(), Code>,
    says: String,
    murmurs: Vec<Duration>,
    makes: Vec<Made<Part>>,
    uses: Vec<Used>,
    lasts: Option<Duration>,
    manner: Manner,
    ends_after_stop: Duration,
    clears_for: Duration,
}

/// Input and output tokens, and whether they are of the whole attempt.
type Used = (u64, u64, bool);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    Proper,
    /// Never hears a stop.
    Deaf,
    /// Lives, but does not say so.
    Mute,
    /// Ends without starting.
    Stillborn,
    /// Drops its reporter.
    Deserter,
    /// Panics in `start`.
    Bomb,
}

impl Act {
    const fn new(seconds: u64, verdict: Result<(), Code>, manner: Manner) -> Self {
        Self {
            starts_after: Duration::ZERO,
            runs_for: Duration::from_secs(seconds),
            verdict,
            says: String::new(),
            murmurs: Vec::new(),
            makes: Vec::new(),
            uses: Vec::new(),
            lasts: None,
            manner,
            ends_after_stop: Duration::ZERO,
            clears_for: Duration::ZERO,
        }
    }

    /// Runs so long, then succeeds. When stopped, it says that it succeeded.
    #[must_use]
    pub const fn ok(seconds: u64) -> Self {
        Self::new(seconds, Ok(()), Manner::Proper)
    }

    /// Runs so long, then fails.
    #[must_use]
    pub const fn fail(seconds: u64, code: Code) -> Self {
        Self::new(seconds, Err(code), Manner::Proper)
    }

    /// Fails before it lives.
    #[must_use]
    pub const fn stillborn(code: Code) -> Self {
        Self::new(0, Err(code), Manner::Stillborn)
    }

    /// Runs until it is killed, whatever it is told.
    #[must_use]
    pub const fn deaf() -> Self {
        Self::new(u32::MAX as u64, Ok(()), Manner::Deaf)
    }

    /// Never says that it lives.
    #[must_use]
    pub const fn mute() -> Self {
        Self::new(u32::MAX as u64, Ok(()), Manner::Mute)
    }

    /// Runs so long, then drops its reporter without a word.
    #[must_use]
    pub const fn desert(seconds: u64) -> Self {
        Self::new(seconds, Ok(()), Manner::Deserter)
    }

    /// Panics in the driver's `start`, hence in the execution's actor.
    #[must_use]
    pub const fn bomb() -> Self {
        Self::new(0, Ok(()), Manner::Bomb)
    }

    /// Lives only after a while.
    #[must_use]
    pub const fn starting_for(mut self, seconds: u64) -> Self {
        self.starts_after = Duration::from_secs(seconds);
        self
    }

    /// Ends only a while after it is told to stop.
    #[must_use]
    pub const fn stopping_for(mut self, seconds: u64) -> Self {
        self.ends_after_stop = Duration::from_secs(seconds);
        self
    }

    /// Needs a while to be cleaned.
    #[must_use]
    pub const fn clearing_for(mut self, seconds: u64) -> Self {
        self.clears_for = Duration::from_secs(seconds);
        self
    }

    /// Writes an answer.
    #[must_use]
    pub fn saying(mut self, text: &str) -> Self {
        text.clone_into(&mut self.says);
        self
    }

    /// Writes something on its standard error after each of these pauses, before it runs on.
    #[must_use]
    pub fn murmuring(mut self, pauses: impl IntoIterator<Item = u64>) -> Self {
        self.murmurs.extend(pauses.into_iter().map(Duration::from_secs));
        self
    }

    /// Counts tokens that it was given and that it answered, before it runs on: each time what is new, or,
    /// where that is so, what it is by then.
    #[must_use]
    pub fn using(mut self, uses: impl IntoIterator<Item = (u64, u64, bool)>) -> Self {
        self.uses.extend(uses);
        self
    }

    /// Says that its failure lasts for so long.
    #[must_use]
    pub const fn lasting(mut self, seconds: u64) -> Self {
        self.lasts = Some(Duration::from_secs(seconds));
        self
    }

    /// Makes artifacts, or pieces of them, before it runs on.
    #[must_use]
    pub fn making(mut self, made: impl IntoIterator<Item = Made<Part>>) -> Self {
        self.makes.extend(made);
        self
    }
}

/// A driver whose work is chosen by the input's text. What was not scripted succeeds at once.
pub struct ScriptedDriver {
    born: Instant,
    acts: watch::Sender<HashMap<String, Vec<Act>>>,
    workspaces: watch::Sender<HashMap<String, Workspace>>,
    held: watch::Sender<HashMap<ExecutionId, Claimed>>,
    stage: Arc<watch::Sender<Stage>>,
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

    /// Lets an agent that changes things work in this folder from its next attempt on, unless its
    /// caller chose another.
    pub fn settle(&self, agent: &str, folder: &str) {
        let workspace = Workspace::new(folder);
        self.workspaces.send_modify(|all| _ = all.insert(agent.to_owned(), workspace));
    }

    /// From the next life on the work of this execution is held.
    pub fn hold(&self, execution: ExecutionId) {
        self.held.send_modify(|held| _ = held.insert(execution, Claimed::default()));
    }

    /// As [`hold`](Self::hold), and it is known for how long it will have run then.
    pub fn hold_aged(&self, execution: ExecutionId, ran: Duration) {
        let work = Claimed { ran: Some(ran) };
        self.held.send_modify(|held| _ = held.insert(execution, work));
    }

    /// What can be seen now.
    #[must_use]
    pub fn stage(&self) -> Stage {
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

    fn claim(&self, execution: ExecutionId, _: Stamp) -> Option<Claimed> {
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
        let alive = Alive::enter(&self.stage, work, !how.is_empty());
        let held = Held::enter(&self.stage);
        let clears_for = act.clears_for;
        let is_again = !how.is_empty();
        let task = tokio::spawn(async move {
            if is_again {
                _ = report.begin_again().await; // A lost one is seen.
            }
            play(act, pid, report, stopped, alive).await;
        });
        let begun = Instant::now();
        Box::new(ScriptedLease { stop, task, clears_for, begun, _held: held })
    }
}

async fn play(
    act: Act,
    pid: u32,
    report: Reporter,
    mut stopped: watch::Receiver<bool>,
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
        () = live(&act, pid, &report) => {}
    }
    drop(alive);
    if act.manner != Manner::Deserter {
        let until = act.lasts.map(|lasts| report.now() + lasts);
        let failed = |code| Failure { until, ..Failure::new(code, "it failed as scripted") };
        let verdict = act.verdict.map_err(failed);
        let exit_code = i32::from(verdict.is_err());
        report.ended(verdict, Some(exit_code));
    }
}

async fn live(act: &Act, pid: u32, report: &Reporter) {
    sleep(act.starts_after).await;
    match act.manner {
        Manner::Stillborn => return,
        Manner::Mute => {}
        Manner::Proper | Manner::Deaf | Manner::Deserter | Manner::Bomb => {
            report.started(Some(pid));
        }
    }
    if !act.says.is_empty() {
        let mut scribe = report.scribe(Channel::Stdout);
        let written = scribe.write(act.says.as_bytes()).await;
        if let (Ok(()), Ok(text)) = (written, scribe.close().await) {
            _ = report.note(Fact::answer(text)).await; // A lost note is seen.
        }
    }
    let mut scribe = report.scribe(Channel::Parts);
    for made in &act.makes {
        _ = scribe.make(made.clone()).await; // What is lost is seen.
    }
    for (input, output, cumulative) in &act.uses {
        let numbers = [("input_tokens", *input), ("output_tokens", *output)];
        let numbers = numbers.map(|(name, count)| (name.to_owned(), count.into())).into();
        _ = report.note(Fact::Used { numbers, cumulative: *cumulative }).await; // A lost one is seen.
    }
    murmur(act, report).await;
    sleep(act.runs_for).await;
    _ = scribe.close().await;
}

async fn murmur(act: &Act, report: &Reporter) {
    if act.murmurs.is_empty() {
        return;
    }
    let mut scribe = report.scribe(Channel::Stderr);
    for pause in &act.murmurs {
        sleep(*pause).await;
        _ = scribe.write(b"hm\n").await; // What is lost is seen.
    }
    _ = scribe.close().await;
}

struct ScriptedLease {
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
    clears_for: Duration,
    begun: Instant,
    _held: Held,
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

    /// It takes all the time there is.
    fn usage(&self) -> Reading {
        let cpu_ms = u64::try_from(self.begun.elapsed().as_millis()).unwrap_or(u64::MAX);
        let usage = Usage { cpu_ms, processes: 1, ..Usage::default() };
        Box::pin(std::future::ready(Some(usage)))
    }

    async fn clean(self: Box<Self>) {
        self.task.abort();
        sleep(self.clears_for).await;
    }
}
