//! Test environment: the real tree in virtual time, with scripted ports.
//!
//! A [`TestTree`] must be [ended](TestTree::end). It panics if an actor, a lease or a task outlives it, and if a
//! recorded transition is not in the table or does not follow the previous one.

mod client;
mod clock;
pub mod cognition;
mod driver;
mod fault_injection;
mod fixtures;
mod host_metrics;
mod interactions;
mod ledger;
mod reconfigure;
mod recorded_work;
mod schedule_store;
mod scheduling;
mod sealer;
mod service_instance;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use tokio::runtime::Handle;
use tokio::sync::watch;

pub use self::client::CallerResult;
pub use self::clock::VirtualClock;
pub use self::driver::{ScriptedAttempt, ScriptedDriver};
use self::fault_injection::FaultInjector;
pub use self::fault_injection::{LedgerCallKind, LedgerFaults};
pub use self::fixtures::agent_spec;
use self::fixtures::{caller, text_request};
pub use self::host_metrics::{PRESSURE_LIMITS, READING_INTERVAL, ScriptedHostMetrics, full_disk};
pub use self::interactions::{answer_question, record_answer_without_service};
pub use self::ledger::MemoryLedger;
pub use self::recorded_work::{RecordedWork, WorkLifetime};
pub use self::schedule_store::MemoryScheduleStore;
pub use self::scheduling::cron_schedule;
pub use self::sealer::ScriptedSealer;
use self::service_instance::{create_scheduler_config, create_services, start_tree};

use crate::api::{Api, supervision_tree::SupervisionTree};
use crate::model::agent::AgentSpec;
use crate::model::code::Code;
use crate::model::execution::{event::EventKind, progress::Progress, record::ExecutionRecord};
use crate::model::id::ExecutionId;
use crate::model::observation::status::{AgentStatus, TreeStatus};
use crate::model::schedule::ConfiguredSchedule;
use crate::ports::ledger::Ledger;

/// Longest wait for an end; beyond it something is lost.
const TEST_TIMEOUT: Duration = Duration::from_secs(3600);

/// Id of the agent in an environment with a single agent.
pub const DEFAULT_AGENT: &str = "worker";

/// Supervision tree with its test environment.
pub struct TestTree {
    /// Faults of the tree's ledger.
    pub faults: Arc<LedgerFaults>,
    /// Ledger without faults.
    pub ledger: MemoryLedger,
    /// Store of the schedules without faults.
    pub schedule_store: MemoryScheduleStore,
    configured_schedules: Vec<ConfiguredSchedule>,
    /// Driver of all agents.
    pub driver: Arc<ScriptedDriver>,
    /// Wall clock.
    pub clock: Arc<VirtualClock>,
    /// Resource readings of the machine, if enabled.
    pub host_metrics: Arc<ScriptedHostMetrics>,
    has_monitor: bool,
    specs: Vec<AgentSpec>,
    fault_injector: Arc<FaultInjector>,
    redactor: Arc<algonius_redact::Redactor>,
    /// Sealer of inputs that redaction changes.
    pub sealer: Arc<ScriptedSealer>,
    tree: Option<SupervisionTree>,
    api: Box<Api>,
    progress_receivers: watch::Sender<HashMap<ExecutionId, watch::Receiver<Progress>>>,
    message_count: AtomicU32,
    /// Number of spawned futures, which are tasks of Tokio, before the start.
    initial_future_count: usize,
    has_ended: bool,
}

impl TestTree {
    /// Creates an environment with one agent, [`DEFAULT_AGENT`], modified by `tune`.
    pub async fn with_tuned_agent(tune: impl FnOnce(&mut AgentSpec)) -> Self {
        let mut worker = agent_spec(DEFAULT_AGENT);
        tune(&mut worker);
        Self::with_agents([worker]).await
    }

    /// Creates an environment with one agent, [`DEFAULT_AGENT`].
    pub async fn new() -> Self {
        Self::with_agents([agent_spec(DEFAULT_AGENT)]).await
    }

    /// Creates an environment with these agents.
    pub async fn with_agents(specs: impl IntoIterator<Item = AgentSpec>) -> Self {
        Self::with_redactor(specs, Arc::new(algonius_redact::Redactor::new([]))).await
    }

    /// Creates an environment with these agents, and resource readings with the limits [`PRESSURE_LIMITS`].
    pub async fn with_monitor(specs: impl IntoIterator<Item = AgentSpec>) -> Self {
        Self::build(specs, true, Arc::new(algonius_redact::Redactor::new([]))).await
    }

    /// Creates an environment with these agents and a redactor, which many environments may share, because its
    /// construction is expensive.
    pub async fn with_redactor(
        specs: impl IntoIterator<Item = AgentSpec>,
        redactor: Arc<algonius_redact::Redactor>,
    ) -> Self {
        Self::build(specs, false, redactor).await
    }

    async fn build(
        specs: impl IntoIterator<Item = AgentSpec>,
        has_monitor: bool,
        redactor: Arc<algonius_redact::Redactor>,
    ) -> Self {
        let initial_future_count = Handle::current().metrics().num_alive_tasks();
        let specs: Vec<_> = specs.into_iter().collect();
        let (ledger, clock) = (MemoryLedger::default(), Arc::new(VirtualClock::default()));
        let (driver, faults) = (Arc::<ScriptedDriver>::default(), Arc::<LedgerFaults>::default());
        let fault_injector = Arc::new(FaultInjector::new(Arc::clone(&faults)));
        let sealer = Arc::<ScriptedSealer>::default();
        let services = create_services((&ledger, &redactor), &sealer, &fault_injector, &clock);
        let host_metrics = Arc::new(ScriptedHostMetrics::default());
        let schedule_store = MemoryScheduleStore::default();
        let empty_config = create_scheduler_config(&schedule_store, &fault_injector, &[]);
        let metrics = has_monitor.then_some(&host_metrics);
        let tree = start_tree(services, (&specs, &driver), metrics, empty_config).await;
        let api = Box::new(tree.api().clone());
        Self {
            faults,
            ledger,
            schedule_store,
            configured_schedules: Vec::new(),
            driver,
            clock,
            host_metrics,
            has_monitor,
            specs,
            fault_injector,
            redactor,
            sealer,
            tree: Some(tree),
            api,
            progress_receivers: watch::Sender::default(),
            message_count: AtomicU32::new(0),
            initial_future_count,
            has_ended: false,
        }
    }

    /// Scripts the attempts of every execution with this input.
    pub fn script(&self, text: &str, attempts: impl IntoIterator<Item = ScriptedAttempt>) {
        self.driver.script(text, attempts);
    }

    /// Returns the seconds since the start of the environment.
    #[must_use]
    pub fn elapsed_seconds(&self) -> u64 {
        self.clock.created_at().elapsed().as_secs()
    }

    /// Waits until this many seconds have passed since the start of the environment.
    pub async fn advance_to(&self, second: u64) {
        tokio::time::sleep_until(self.clock.created_at() + Duration::from_secs(second)).await;
    }

    /// Submits a text to the worker under a new message id.
    ///
    /// # Errors
    /// Returns the code of the rejection.
    pub async fn submit(&self, text: &str) -> Result<ExecutionId, Code> {
        self.submit_to(DEFAULT_AGENT, text).await
    }

    /// Submits a text under a new message id.
    ///
    /// # Errors
    /// Returns the code of the rejection.
    pub async fn submit_to(&self, agent: &str, text: &str) -> Result<ExecutionId, Code> {
        let message_id = format!("message {}", self.message_count.fetch_add(1, Ordering::SeqCst));
        self.submit_with_message_id(agent, &message_id, text).await.map(|(id, _)| id)
    }

    /// Submits a text under a message id; also returns true if it is a duplicate of an earlier one.
    ///
    /// # Errors
    /// Returns the code of the rejection.
    pub async fn submit_with_message_id(
        &self,
        agent: &str,
        message_id: &str,
        text: &str,
    ) -> Result<(ExecutionId, bool), Code> {
        let request = text_request(agent, message_id, text);
        let reply =
            self.api.requests.submit(&caller(), request).await.map_err(|failure| failure.code)?;
        if let Some(receiver) = reply.progress_receiver {
            self.progress_receivers.send_modify(|all| _ = all.insert(reply.execution, receiver));
        }
        Ok((reply.execution, reply.is_duplicate))
    }

    /// Waits for the end as a caller does, and returns it: `completed`, `failed: agent-exit`, `unfinished`, or `lost`
    /// after an hour without an end.
    pub async fn wait_for_end(&self, id: ExecutionId) -> String {
        let progress = self.progress_receivers.borrow().get(&id).cloned();
        if let Some(record) = self.record(id).await {
            let wait = client::wait_until_settled(&self.api.requests, &record, progress);
            if tokio::time::timeout(TEST_TIMEOUT, wait).await.is_err() {
                return "lost".to_owned();
            }
        }
        self.describe_end(id).await
    }

    /// Returns the end of an execution without waiting.
    pub async fn describe_end(&self, id: ExecutionId) -> String {
        let Some(record) = self.record(id).await else { return "unknown".to_owned() };
        match (record.outcome, record.failure) {
            (None, _) => "unfinished".to_owned(),
            (Some(outcome), None) => outcome.to_string(),
            (Some(outcome), Some(failure)) => format!("{outcome}: {}", failure.code),
        }
    }

    /// Submits a text to the worker, waits, and returns its end with the second of the environment: `completed at 7`.
    pub async fn submit_and_describe_end(&self, text: &str) -> String {
        match self.submit(text).await {
            Ok(id) => format!("{} at {}", self.wait_for_end(id).await, self.elapsed_seconds()),
            Err(code) => format!("refused: {code} at {}", self.elapsed_seconds()),
        }
    }

    /// Cancels an execution.
    ///
    /// # Errors
    /// Returns the code of the rejection.
    pub async fn cancel(&self, id: ExecutionId) -> Result<(), Code> {
        self.api.requests.cancel(&caller(), id).await.map(drop).map_err(|failure| failure.code)
    }

    /// Returns the record of an execution.
    pub async fn record(&self, id: ExecutionId) -> Option<ExecutionRecord> {
        self.ledger.execution(id).await.ok().flatten()
    }

    /// Returns the recorded states of an execution: `idle starting running completed cleanup idle`.
    pub async fn states(&self, id: ExecutionId) -> String {
        let events = self.ledger.events(id, 0).await.unwrap_or_default();
        let entered_states = events.iter().filter_map(|event| match &event.data {
            EventKind::StateChanged(state_change) => Some(state_change.to.as_str()),
            _ => None,
        });
        std::iter::once("idle").chain(entered_states).collect::<Vec<_>>().join(" ")
    }

    /// Returns the answer of an execution.
    pub async fn answer(&self, id: ExecutionId) -> String {
        let events = self.ledger.events(id, 0).await.unwrap_or_default();
        let mut answer = String::new();
        for event in events {
            let EventKind::Artifact { pieces, .. } = event.data else { continue };
            for piece in pieces {
                answer += &self.ledger.text(id, piece.text).await.unwrap_or_default();
            }
        }
        answer
    }

    /// Returns the status of the whole tree.
    pub async fn status(&self) -> TreeStatus {
        self.api.tree.status().await
    }

    /// Returns the status of one agent.
    ///
    /// # Panics
    /// Panics if the status does not contain the agent.
    pub async fn agent_status(&self, id: &str) -> AgentStatus {
        let found = self.status().await.agents.into_iter().find(|agent| agent.id.as_str() == id);
        found.unwrap_or_else(|| unreachable!("no agent `{id}` is shown"))
    }

    /// Makes an agent's actor panic, by a clock that fails while the agent accepts a message.
    ///
    /// # Panics
    /// Panics if the actor accepted the message unharmed.
    pub async fn crash_agent(&self, agent: &str) {
        self.clock.panic_at_reading(1);
        let answer = self.submit_to(agent, "the last straw").await;
        assert_eq!(answer, Err(Code::Internal), "agent `{agent}` did not crash");
    }

    /// Kills the service as `kill -9` does, and starts another one on the same ledger.
    pub async fn restart(&mut self) {
        self.restart_with(|_| ()).await;
    }

    /// Kills the service, changes its configuration, and starts another one on the same ledger.
    pub async fn restart_with(&mut self, change: impl FnOnce(&mut Vec<AgentSpec>)) {
        self.kill().await;
        change(&mut self.specs);
        self.start().await;
    }

    /// Kills the service as `kill -9` does: without notifications, and no call returns.
    pub async fn kill(&mut self) {
        self.fault_injector.kill_process();
        if self.tree.take().is_some() {
            _ = self.api.tree.root.get_cell().kill_and_wait(None).await; // It may have stopped already.
        }
        if self.wait_for_tasks().await > 0 {
            // A task that pauses before a retry notices only then that the service was killed.
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        self.assert_nothing_left().await;
    }

    /// Starts the service again on the same ledger.
    pub async fn start(&mut self) {
        self.fault_injector = Arc::new(FaultInjector::new(Arc::clone(&self.faults)));
        let (sealer, injector, clock) = (&self.sealer, &self.fault_injector, &self.clock);
        let services = create_services((&self.ledger, &self.redactor), sealer, injector, clock);
        let metrics = self.has_monitor.then_some(&self.host_metrics);
        let schedules = &self.configured_schedules;
        let config = create_scheduler_config(&self.schedule_store, injector, schedules);
        let tree = start_tree(services, (&self.specs, &self.driver), metrics, config).await;
        *self.api = tree.api().clone();
        self.progress_receivers.send_modify(HashMap::clear);
        self.tree = Some(tree);
    }

    /// Stops the service gracefully: running executions may finish within this many seconds.
    pub async fn stop(&mut self, seconds: u64) {
        self.stop_future(seconds).await;
        self.assert_nothing_left().await;
    }

    /// Returns the graceful stop as a separate future, so that callers may send requests meanwhile.
    pub fn stop_future(&mut self, seconds: u64) -> impl Future<Output = ()> + use<> {
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
    /// Panics if an actor, a lease or a task lives on, or if recorded transitions are not a valid sequence.
    pub async fn end(mut self) {
        self.faults.clear_faults();
        self.stop(0).await;
        assert_eq!(self.ledger.violations().await, [""; 0], "moves are a chain of the table");
        self.has_ended = true;
    }

    /// Waits for ending tasks, and returns the number of remaining ones.
    async fn wait_for_tasks(&self) -> usize {
        let metrics = Handle::current().metrics();
        for _ in 0..1000 {
            if metrics.num_alive_tasks() <= self.initial_future_count {
                break;
            }
            tokio::task::yield_now().await;
        }
        metrics.num_alive_tasks().saturating_sub(self.initial_future_count)
    }

    /// Waits for ending tasks, then checks that no task, work or lease is left.
    async fn assert_nothing_left(&self) {
        let tasks = self.wait_for_tasks().await;
        let RecordedWork { alive_count, lease_count, .. } = self.driver.recorded_work();
        assert_eq!((tasks, alive_count, lease_count), (0, 0, 0), "tasks, work or leases are left");
    }
}

impl Drop for TestTree {
    fn drop(&mut self) {
        let is_abandoned = !self.has_ended && !std::thread::panicking();
        assert!(!is_abandoned, "a world was left without `end`");
    }
}
