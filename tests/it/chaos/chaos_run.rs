//! What happens to a service, in the order that is drawn.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::sync::watch;
use tokio::task::JoinSet;

use super::callers::{CallerMessage, cancel, send_until_accepted};
use super::seeded_rng::ChaosRng;
use crate::harness::ServiceProcess;
use crate::harness::client::ServiceClient;
use crate::harness::processes::{holder_pids, is_alive, pids_with_env};
use crate::history_check::{AgentLogLine, HistoryCheckInput, is_live_holder};

/// How long everything may take to come to rest.
const IDLE_TIMEOUT: Duration = Duration::from_secs(120);

/// So many may be under way before the next step waits for them.
const MAX_UNFINISHED_EXECUTIONS: usize = 40;

#[derive(Debug, Clone, Copy)]
pub(super) enum ChaosAction {
    Send,
    SendAgain,
    Cancel,
    KillAgentProcess,
    KillHolder,
    KillService,
    KillHolderAndService,
}

pub(super) struct ChaosRun {
    pub(super) service: ServiceProcess,
    rng: ChaosRng,
    client_sender: watch::Sender<ServiceClient>,
    tokens: [String; 3],
    sent_messages: Vec<CallerMessage>,
    /// Ids of the executions, by those of their messages.
    pub(super) execution_ids_by_message_id: BTreeMap<String, String>,
    calls: JoinSet<Option<(CallerMessage, String)>>,
    /// Process ids of all process holders that were seen.
    pub(super) holder_pids: BTreeSet<i32>,
}

impl ChaosRun {
    pub(super) fn new(service: ServiceProcess, rng: ChaosRng) -> Self {
        let client_sender = watch::Sender::new(service.client.clone());
        let tokens = [service.token.clone(), "a".repeat(40), "b".repeat(40)];
        let (sent_messages, execution_ids_by_message_id) = (Vec::new(), BTreeMap::new());
        let (calls, holder_pids) = (JoinSet::new(), BTreeSet::new());
        Self {
            service,
            rng,
            client_sender,
            tokens,
            sent_messages,
            execution_ids_by_message_id,
            calls,
            holder_pids,
        }
    }

    /// Lets so many of these things happen.
    pub(super) async fn run_random_actions(&mut self, actions: &[ChaosAction], rounds: u64) {
        for _ in 0..rounds {
            let action = *self.rng.pick(actions).unwrap();
            println!("{action:?}");
            self.holder_pids.extend(holder_pids(self.service.pid()));
            self.perform(action).await;
            while let Some(result) = self.calls.try_join_next() {
                self.record_result(result.unwrap());
            }
            if self.calls.len() > MAX_UNFINISHED_EXECUTIONS
                || self.unfinished_count().await > MAX_UNFINISHED_EXECUTIONS
            {
                self.wait_until_idle().await;
            }
            // The story is what comes in between: it gets a moment of a length that is drawn.
            tokio::time::sleep(Duration::from_millis(self.rng.random_below(60))).await;
        }
    }

    async fn perform(&mut self, action: ChaosAction) {
        match action {
            ChaosAction::Send => {
                for _ in 0..=self.rng.random_below(3) {
                    let message = self.random_message();
                    self.sent_messages.push(message.clone());
                    self.start_call(message);
                }
            }
            ChaosAction::SendAgain => {
                let message = self.rng.pick(&self.sent_messages).cloned();
                message.into_iter().for_each(|message| self.start_call(message));
            }
            ChaosAction::Cancel => self.cancel(),
            ChaosAction::KillAgentProcess => self.kill_agent_process(),
            ChaosAction::KillHolder => self.kill_holder(),
            ChaosAction::KillService => self.restart().await,
            ChaosAction::KillHolderAndService => {
                if self.rng.random_below(2) == 0 {
                    self.kill_holder();
                    self.restart().await;
                } else {
                    self.service.kill9().await;
                    self.kill_holder();
                    self.start_service().await;
                }
            }
        }
    }

    fn random_message(&mut self) -> CallerMessage {
        let agent = *self.rng.pick(&["writer", "editor", "reader"]).unwrap();
        let token = self.rng.pick(&self.tokens).unwrap().clone();
        let work_ms = self.rng.random_below(120);
        CallerMessage { token, agent, id: format!("m-{}", self.sent_messages.len()), work_ms }
    }

    fn start_call(&mut self, message: CallerMessage) {
        let client_receiver = self.client_sender.subscribe();
        self.calls.spawn(async { Some(send_until_accepted(client_receiver, message).await) });
    }

    fn cancel(&mut self) {
        let cancellable = self.sent_messages.iter().rev().take(10);
        let cancellable = cancellable.filter_map(|message| {
            Some((message.clone(), self.execution_ids_by_message_id.get(&message.id)?.clone()))
        });
        let cancellable: Vec<_> = cancellable.collect();
        if let Some((message, id)) = self.rng.pick(&cancellable).cloned() {
            let client_receiver = self.client_sender.subscribe();
            self.calls.spawn(async {
                cancel(client_receiver, message, id).await;
                None
            });
        }
    }

    fn record_result(&mut self, result: Option<(CallerMessage, String)>) {
        let Some((message, id)) = result else { return };
        let known_id = self.execution_ids_by_message_id.insert(message.id.clone(), id.clone());
        assert!(
            known_id.as_ref().is_none_or(|known_id| *known_id == id),
            "{message:?}: {known_id:?}, {id}"
        );
    }

    fn kill_agent_process(&mut self) {
        let log_lines = self.agent_log_lines();
        let has_ended = |start: &AgentLogLine| {
            log_lines.iter().any(|line| line.kind == "end" && line.pid == start.pid)
        };
        let unfinished_lines =
            log_lines.iter().filter(|line| line.kind == "start" && !has_ended(line));
        let env_entry = |line: &AgentLogLine| format!("ALGONIUS_EXECUTION_ID={}", line.execution);
        let running_lines = unfinished_lines.filter(|line| {
            is_alive(line.pid) && pids_with_env(&env_entry(line)).contains(&line.pid)
        });
        let running_pids: Vec<_> = running_lines.map(|line| line.pid).collect();
        self.kill_random(&running_pids);
    }

    fn kill_holder(&mut self) {
        let running_holders: Vec<_> =
            self.holder_pids.iter().copied().filter(|pid| is_live_holder(*pid)).collect();
        self.kill_random(&running_holders);
    }

    fn kill_random(&mut self, candidates: &[i32]) {
        if let Some(pid) = self.rng.pick(candidates) {
            // The process may have ended meanwhile, so the result of the signal does not matter.
            _ = kill(Pid::from_raw(*pid), Signal::SIGKILL);
        }
    }

    pub(super) async fn restart(&mut self) {
        self.service.kill9().await;
        self.start_service().await;
    }

    async fn start_service(&mut self) {
        self.service.start_again().await;
        self.client_sender.send_replace(self.service.client.clone());
    }

    /// Returns when all callers were answered and all executions have ended.
    pub(super) async fn wait_until_idle(&mut self) {
        while let Some(result) = self.calls.join_next().await {
            self.record_result(result.unwrap());
        }
        let idle_wait = tokio::time::timeout(IDLE_TIMEOUT, async {
            let mut ticks = tokio::time::interval(Duration::from_millis(50));
            while self.unfinished_count().await > 0 {
                ticks.tick().await;
            }
        });
        if idle_wait.await.is_err() {
            let stuck_executions = self.service.get("/api/v1/executions?unfinished=true").await;
            panic!("stuck: {}\n{}", stuck_executions.body, self.service.get("/status").await.body);
        }
    }

    async fn unfinished_count(&self) -> usize {
        let list = self.service.get("/api/v1/executions?unfinished=true&limit=1000").await.json();
        list["executions"].as_array().unwrap_or_else(|| panic!("{list}")).len()
    }

    /// Every message comes once more, and is known.
    pub(super) async fn send_all_again(&mut self) {
        self.sent_messages.clone().into_iter().for_each(|message| self.start_call(message));
        self.wait_until_idle().await;
    }

    /// What the agents wrote down.
    pub(super) fn agent_log_lines(&self) -> Vec<AgentLogLine> {
        self.service.setup.read_file("witnessed").lines().map(AgentLogLine::parse).collect()
    }

    /// What is to be judged.
    pub(super) fn history_check_input(&self) -> HistoryCheckInput<'_> {
        let Self { service, execution_ids_by_message_id, holder_pids, sent_messages, .. } = self;
        HistoryCheckInput {
            service,
            execution_ids_by_message_id,
            message_count: sent_messages.len(),
            seen_holder_pids: holder_pids,
        }
    }

    /// Returns when it has become so.
    pub(super) async fn wait_until(&self, description: &str, mut condition: impl FnMut() -> bool) {
        crate::harness::poll_until(description, async || condition().then_some(())).await;
    }
}
