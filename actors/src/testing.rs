//! A world for tests: the real tree on paused time, with scripted ports.
//!
//! A [`World`] must be [ended](World::end). It panics when an actor, a lease or a task outlives
//! it, and when a move was recorded that is in no table or does not follow the one before.

mod asking;
mod clock;
mod driver;
mod gate;
mod history;
mod ledger;
mod life;
mod meter;
mod parts;
mod rows;
mod scheduling;
mod seating;
mod stage;
mod timebook;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;

pub use self::asking::Answer;
pub use self::clock::VirtualClock;
pub use self::driver::{Act, ScriptedDriver};
use self::gate::Gate;
pub use self::gate::{Call, Faults};
pub use self::ledger::MemoryLedger;
use self::life::{agenda, grow, kit};
pub use self::meter::{BOUNDS, PACE, ScriptedMeter, full_disk};
pub use self::parts::spec;
use self::parts::{asked, caller};
pub use self::scheduling::every;
pub use self::stage::{Life, Stage};
pub use self::timebook::MemoryTimebook;
use crate::agent::Ticket;
use crate::decide::redact::Redactor;
use crate::door::Gateway;
use crate::model::agent::AgentSpec;
use crate::model::code::Code;
use crate::model::event::Fact;
use crate::model::id::ExecutionId;
use crate::model::progress::Progress;
use crate::model::record::Record;
use crate::model::schedule::Configured;
use crate::model::status::{AgentStatus, TreeStatus};
use crate::ports::ledger::Ledger;
use crate::tree::Tree;

/// The longest time that anybody waits for an end; then something is lost.
const FOR_EVER: Duration = Duration::from_secs(3600);

/// The agent of a world that has one.
pub const WORKER: &str = "worker";

/// A tree with everything around it.
pub struct World {
    /// What the tree's ledger suffers.
    pub faults: Arc<Faults>,
    /// The rows, past all faults.
    pub ledger: MemoryLedger,
    /// The schedules and their times, past all faults.
    pub timebook: MemoryTimebook,
    configured: Vec<Configured>,
    /// What does the work of all agents.
    pub driver: Arc<ScriptedDriver>,
    /// Wall time.
    pub clock: Arc<VirtualClock>,
    /// The gauges of the machine, where it is watched.
    pub meter: Arc<ScriptedMeter>,
    is_watched: bool,
    specs: Vec<AgentSpec>,
    gate: Arc<Gate>,
    redactor: Arc<Redactor>,
    tree: Option<Tree>,
    door: Gateway,
    progress: watch::Sender<HashMap<ExecutionId, watch::Receiver<Progress>>>,
    messages: AtomicU32,
    /// Tasks that were there before.
    tasks: usize,
    ended: bool,
}

impl World {
    /// A world with one agent, [`WORKER`], changed by `tune`.
    pub async fn tuned(tune: impl FnOnce(&mut AgentSpec)) -> Self {
        let mut worker = spec(WORKER);
        tune(&mut worker);
        Self::of([worker]).await
    }

    /// A world with one agent, [`WORKER`].
    pub async fn new() -> Self {
        Self::of([spec(WORKER)]).await
    }

    /// A world with these agents.
    pub async fn of(specs: impl IntoIterator<Item = AgentSpec>) -> Self {
        Self::masked(specs, Arc::new(Redactor::new([]))).await
    }

    /// A world with these agents on a machine that is watched under [`BOUNDS`].
    pub async fn watched(specs: impl IntoIterator<Item = AgentSpec>) -> Self {
        Self::on(specs, true, Arc::new(Redactor::new([]))).await
    }

    /// A world with these agents and a redactor, which many worlds may share: to make one takes long.
    pub async fn masked(
        specs: impl IntoIterator<Item = AgentSpec>,
        redactor: Arc<Redactor>,
    ) -> Self {
        Self::on(specs, false, redactor).await
    }

    async fn on(
        specs: impl IntoIterator<Item = AgentSpec>,
        is_watched: bool,
        redactor: Arc<Redactor>,
    ) -> Self {
        let tasks = Handle::current().metrics().num_alive_tasks();
        let specs: Vec<_> = specs.into_iter().collect();
        let (ledger, clock) = (MemoryLedger::default(), Arc::new(VirtualClock::default()));
        let (driver, faults) = (Arc::new(ScriptedDriver::default()), Arc::new(Faults::default()));
        let gate = Arc::new(Gate::new(Arc::clone(&faults)));
        let world = kit((&ledger, &redactor), &gate, &clock);
        let meter = Arc::new(ScriptedMeter::default());
        let timebook = MemoryTimebook::default();
        let nothing = agenda(&timebook, &gate, &[]);
        let tree = grow(world, (&specs, &driver), is_watched.then_some(&meter), nothing).await;
        let door = tree.gateway().clone();
        Self {
            faults,
            ledger,
            timebook,
            configured: Vec::new(),
            driver,
            clock,
            meter,
            is_watched,
            specs,
            gate,
            redactor,
            tree: Some(tree),
            door,
            progress: watch::Sender::default(),
            messages: AtomicU32::new(0),
            tasks,
            ended: false,
        }
    }

    /// Scripts the attempts of every execution with this input.
    pub fn script(&self, text: &str, acts: impl IntoIterator<Item = Act>) {
        self.driver.script(text, acts);
    }

    /// The seconds since the world began.
    #[must_use]
    pub fn second(&self) -> u64 {
        self.clock.born().elapsed().as_secs()
    }

    /// Waits until so many seconds have passed since the world began.
    pub async fn at(&self, second: u64) {
        tokio::time::sleep_until(self.clock.born() + Duration::from_secs(second)).await;
    }

    /// Submits a text to the worker under a message id of its own.
    ///
    /// # Errors
    /// The code of the refusal.
    pub async fn submit(&self, text: &str) -> Result<ExecutionId, Code> {
        self.submit_to(WORKER, text).await
    }

    /// Submits a text under a message id of its own.
    ///
    /// # Errors
    /// The code of the refusal.
    pub async fn submit_to(&self, agent: &str, text: &str) -> Result<ExecutionId, Code> {
        let number = self.messages.fetch_add(1, Ordering::SeqCst);
        self.submit_as(agent, &format!("message {number}"), text).await.map(|(id, _)| id)
    }

    /// Submits a text under a message id; answers also whether it joined an earlier one.
    ///
    /// # Errors
    /// The code of the refusal.
    pub async fn submit_as(
        &self,
        agent: &str,
        message: &str,
        text: &str,
    ) -> Result<(ExecutionId, bool), Code> {
        let request = asked(agent, message, text);
        let ticket = self.door.submit(&caller(), request).await.map_err(|failure| failure.code)?;
        let Ticket { execution, joined, progress, .. } = ticket;
        if let Some(progress) = progress {
            self.progress.send_modify(|all| _ = all.insert(execution, progress));
        }
        Ok((execution, joined))
    }

    /// Waits for the end as a caller does, and tells it: `completed`, `failed: agent-exit`,
    /// `unfinished`, and `lost` when it is still waited for after an hour.
    pub async fn wait(&self, id: ExecutionId) -> String {
        let progress = self.progress.borrow().get(&id).cloned();
        if let Some(record) = self.record(id).await {
            let settled = self.door.settled(&record.agent, record.id, progress);
            let settled = tokio::time::timeout(FOR_EVER, settled);
            if settled.await.is_err() {
                return "lost".to_owned();
            }
        }
        self.end_of(id).await
    }

    /// How an execution has ended, without waiting.
    pub async fn end_of(&self, id: ExecutionId) -> String {
        let Some(record) = self.record(id).await else {
            return "unknown".to_owned();
        };
        match (record.outcome, record.failure) {
            (None, _) => "unfinished".to_owned(),
            (Some(outcome), None) => outcome.to_string(),
            (Some(outcome), Some(failure)) => format!("{outcome}: {}", failure.code),
        }
    }

    /// Submits a text to the worker, waits, and tells how it ended and in which second of the
    /// world: `completed at 7`.
    pub async fn run(&self, text: &str) -> String {
        match self.submit(text).await {
            Ok(id) => format!("{} at {}", self.wait(id).await, self.second()),
            Err(code) => format!("refused: {code} at {}", self.second()),
        }
    }

    /// Calls an execution off.
    ///
    /// # Errors
    /// The code of the refusal.
    pub async fn cancel(&self, id: ExecutionId) -> Result<(), Code> {
        self.door.cancel(&caller(), id).await.map(drop).map_err(|failure| failure.code)
    }

    /// The row of an execution.
    pub async fn record(&self, id: ExecutionId) -> Option<Record> {
        self.ledger.execution(id).await.ok().flatten()
    }

    /// The recorded states of an execution: `idle starting running completed cleanup idle`.
    pub async fn path(&self, id: ExecutionId) -> String {
        let events = self.ledger.events(id, 0).await.unwrap_or_default();
        let moves = events.iter().filter_map(|event| match &event.fact {
            Fact::Moved(moved) => Some(moved.to.as_str()),
            _ => None,
        });
        std::iter::once("idle").chain(moves).collect::<Vec<_>>().join(" ")
    }

    /// What an execution answered.
    pub async fn answer(&self, id: ExecutionId) -> String {
        let events = self.ledger.events(id, 0).await.unwrap_or_default();
        let mut answer = String::new();
        for event in events {
            let Fact::Artifact { pieces, .. } = event.fact else { continue };
            for piece in pieces {
                answer += &self.ledger.text(id, piece.text).await.unwrap_or_default();
            }
        }
        answer
    }

    /// The whole tree as it shows itself.
    pub async fn status(&self) -> TreeStatus {
        self.door.status().await
    }

    /// One agent as it shows itself.
    ///
    /// # Panics
    /// When the root does not show it.
    pub async fn agent(&self, id: &str) -> AgentStatus {
        let found = self.status().await.agents.into_iter().find(|agent| agent.id.as_str() == id);
        found.unwrap_or_else(|| unreachable!("no agent `{id}` is shown"))
    }

    /// Lets an agent's actor panic, by a clock that fails while the agent takes a message.
    ///
    /// # Panics
    /// When the actor took the message unharmed.
    pub async fn crash_agent(&self, agent: &str) {
        self.clock.arm(1);
        let answer = self.submit_to(agent, "the last straw").await;
        assert_eq!(answer, Err(Code::Internal), "agent `{agent}` did not crash");
    }

    /// Kills the service as `kill -9` does and starts another on the same ledger.
    pub async fn restart(&mut self) {
        self.restart_with(|_| ()).await;
    }

    /// Kills the service, changes its configuration, and starts another on the same ledger.
    pub async fn restart_with(&mut self, change: impl FnOnce(&mut Vec<AgentSpec>)) {
        self.kill().await;
        change(&mut self.specs);
        self.start().await;
    }

    /// Kills the service as `kill -9` does: nobody is told, no call comes back.
    pub async fn kill(&mut self) {
        self.gate.shut();
        if self.tree.take().is_some() {
            _ = self.door.root.get_cell().kill_and_wait(None).await; // Dead already is dead too.
        }
        if self.settle_down().await > 0 {
            // Whoever pauses before it asks the ledger again finds only then that it was killed.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        self.assert_still().await;
    }

    /// Starts the service again on the same ledger.
    pub async fn start(&mut self) {
        self.gate = Arc::new(Gate::new(Arc::clone(&self.faults)));
        let kit = kit((&self.ledger, &self.redactor), &self.gate, &self.clock);
        let meter = self.is_watched.then_some(&self.meter);
        let agenda = agenda(&self.timebook, &self.gate, &self.configured);
        let tree = grow(kit, (&self.specs, &self.driver), meter, agenda).await;
        self.door = tree.gateway().clone();
        self.progress.send_modify(HashMap::clear);
        self.tree = Some(tree);
    }

    /// Stops the service gently: what runs may finish within so many seconds.
    pub async fn stop(&mut self, seconds: u64) {
        self.stopping(seconds).await;
        self.assert_still().await;
    }

    /// The same as a future of its own, so that others may ask meanwhile.
    pub fn stopping(&mut self, seconds: u64) -> impl Future<Output = ()> + use<> {
        let tree = self.tree.take();
        async move {
            if let Some(tree) = tree {
                tree.stop(Duration::from_secs(seconds)).await;
            }
        }
    }

    /// Stops the service and checks that nothing outlives it.
    ///
    /// # Panics
    /// When an actor, a lease or a task lives on, or the history of an execution is no chain.
    pub async fn end(mut self) {
        self.faults.heal();
        self.stop(0).await;
        assert_eq!(self.ledger.breaches().await, [""; 0], "moves are a chain of the table");
        self.ended = true;
    }

    /// Lets what is ending end, and tells how many tasks are left.
    async fn settle_down(&self) -> usize {
        let metrics = Handle::current().metrics();
        for _ in 0..1000 {
            if metrics.num_alive_tasks() <= self.tasks {
                break;
            }
            tokio::task::yield_now().await;
        }
        metrics.num_alive_tasks().saturating_sub(self.tasks)
    }

    /// Lets what is ending end, then checks that nothing is left.
    async fn assert_still(&self) {
        let left = self.settle_down().await;
        let Stage { alive, leases, .. } = self.driver.stage();
        assert_eq!((left, alive, leases), (0, 0, 0), "tasks, work and leases outlive the service");
    }
}

impl Drop for World {
    fn drop(&mut self) {
        let is_left = !self.ended && !std::thread::panicking();
        assert!(!is_left, "a world was left without `end`");
    }
}
