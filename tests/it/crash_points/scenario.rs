//! One scenario: a service with a fault is asked for four things; the next one, without a fault, has
//! to know of each what the first one said.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::harness::client::{id, message_with_id, state};
use crate::harness::fault_injection::{Fault, Tally, heal};
use crate::harness::processes::wardens;
use crate::harness::service::CommandOutput;
use crate::harness::wait::DEADLINE;
use crate::harness::{Service, ServiceClient, Setup};
use crate::history_check::{HistoryCase, HistoryChecker};

/// Two agents that change one folder, and one that changes nothing.
const AGENTS: &str = "
[pressure]
enabled = false
[agents.writer]
sandbox.writable = ['HERE']
command = 'FAKE'
args = ['witness', 'HERE/witnessed', 'HERE/lock']
access = 'read-write'
working_dir = 'HERE/work'
retry.base = 0.01
[agents.editor]
sandbox.writable = ['HERE']
command = 'FAKE'
args = ['witness', 'HERE/witnessed', 'HERE/lock']
access = 'read-write'
working_dir = 'HERE/work'
retry.base = 0.01
[agents.reader]
sandbox.writable = ['HERE']
command = 'FAKE'
args = ['witness', 'HERE/witnessed', '-']
retry.base = 0.01
";

/// Who is asked, and how many milliseconds it shall take. The first is waited for, the last one is
/// called off.
const REQUESTS: [(&str, u64); 4] = [("reader", 5), ("writer", 20), ("editor", 20), ("writer", 300)];

const END_STATES: [&str; 4] = ["completed", "failed", "canceled", "rejected"];

/// What the runtime says where it cannot even begin, before anything of ours.
const RUNTIME: &str = "failed to create UnixStream";

/// How long it is waited for an answer where a fault stays.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// What came of a scenario.
pub(super) struct ScenarioResult {
    pub(super) tally: Tally,
    /// How its executions ended, and why messages were refused.
    pub(super) ends: Vec<String>,
}

/// What callers know.
struct CallerRecords {
    fault: Fault,
    /// The ids of executions, by those of their messages.
    accepted: BTreeMap<String, String>,
    /// The states that were told as the last ones.
    over: BTreeMap<String, String>,
    refused: Vec<String>,
    wardens: BTreeSet<i32>,
}

/// Runs a scenario with a fault.
pub(super) async fn run_scenario(fault: Fault) -> ScenarioResult {
    let setup = Setup::new(AGENTS);
    fs::create_dir(setup.here().join("work")).unwrap();
    let (accepted, over, refused) = Default::default();
    let mut callers = CallerRecords { fault, accepted, over, refused, wardens: BTreeSet::new() };
    let (service, tally) = match fault.into(setup).attempt().await {
        Ok(mut service) => {
            callers.first_life(&mut service).await;
            callers.end(&mut service).await;
            let tally = Tally::read(service.setup.here());
            heal(&mut service.setup);
            service.restart().await;
            (service, tally)
        }
        Err((mut setup, output)) => {
            callers.not_begun(&output);
            let tally = Tally::read(setup.here());
            heal(&mut setup);
            (setup.start().await, tally)
        }
    };
    callers.second_life(&service).await;
    let CallerRecords { accepted, wardens, refused, .. } = &callers;
    let case = HistoryCase { service: &service, accepted, messages: REQUESTS.len(), wardens };
    let judge = HistoryChecker::new(case).await;
    judge.judge().await;
    let ends = judge.counts().into_keys().map(str::to_owned);
    ScenarioResult { tally, ends: ends.chain(refused.iter().cloned()).collect() }
}

fn params(nth: usize, takes: u64, blocking: bool) -> Value {
    let mut params = message_with_id(&format!("m-{nth}"), &format!("{takes}e-3"));
    params["configuration"] = json!({"blocking": blocking});
    params
}

impl CallerRecords {
    async fn first_life(&mut self, service: &mut Service) {
        self.wardens.extend(wardens(service.pid()));
        let client = service.client.clone();
        for (nth, (agent, takes)) in REQUESTS.iter().enumerate() {
            let params = params(nth, *takes, nth == 0);
            if let Some(task) = self.ask(&client, agent, "message/send", &params).await {
                self.accepted.insert(format!("m-{nth}"), id(&task));
                self.note(&task);
            }
        }
        if let Some(last) = self.accepted.get("m-3").cloned() {
            let called_off =
                self.ask(&client, "writer", "tasks/cancel", &json!({"id": last})).await;
            called_off.iter().for_each(|task| self.note(task));
        }
        if !self.fault.mode.stays() {
            self.rest(service, &client).await;
        }
        if !service.has_exited() {
            self.wardens.extend(wardens(service.pid())); // It may have had to start another.
        }
    }

    /// One question; `None` when it is refused in words, or nobody answers any more.
    async fn ask(
        &mut self,
        client: &ServiceClient,
        agent: &str,
        method: &str,
        params: &Value,
    ) -> Option<Value> {
        let patience = if self.fault.mode.stays() { ANSWER_TIMEOUT } else { DEADLINE };
        let answer = match timeout(patience, client.attempt(agent, method, params)).await {
            Ok(answer) => answer?,
            Err(_elapsed) if self.fault.mode.stays() => return None,
            Err(_elapsed) => panic!("{method} was never answered: {:?}", self.fault),
        };
        if answer["error"].is_null() {
            return Some(answer["result"].clone());
        }
        let code = answer["error"]["data"][0]["metadata"]["code"].as_str();
        self.refused.push(code.unwrap_or_else(|| panic!("no code: {answer}")).to_owned());
        None
    }

    /// Waits until all that was accepted has ended, or the service has.
    async fn rest(&mut self, service: &mut Service, client: &ServiceClient) {
        let rested = timeout(DEADLINE, async {
            let mut ticks = tokio::time::interval(Duration::from_millis(20));
            for (agent, id) in self.tasks() {
                while !self.over.contains_key(&id) && !service.has_exited() {
                    ticks.tick().await;
                    let asked = json!({"id": id});
                    let task = client.attempt(agent, "tasks/get", &asked).await;
                    let task = task.map(|answer| answer["result"].clone());
                    task.iter().for_each(|task| self.note(task));
                }
            }
        });
        assert!(rested.await.is_ok(), "stuck, and {:?}: {}", self.over, service.stderr_text());
    }

    /// The agents and executions that callers know of, in the order in which they asked.
    fn tasks(&self) -> Vec<(&'static str, String)> {
        let known = |(nth, (agent, _)): (usize, &(&'static str, u64))| {
            Some((*agent, self.accepted.get(&format!("m-{nth}"))?.clone()))
        };
        REQUESTS.iter().enumerate().filter_map(known).collect()
    }

    /// What was told as the end is not taken back.
    fn note(&mut self, task: &Value) {
        let state = state(task);
        if END_STATES.contains(&state.as_str()) {
            let before = self.over.insert(id(task), state.clone());
            assert!(before.as_ref().is_none_or(|before| *before == state), "{before:?}: {task}");
        }
    }

    /// Ends the service: it closes its ledger where it still can.
    async fn end(&mut self, service: &mut Service) {
        let Fault { mode, .. } = self.fault;
        if mode.stays() && !service.has_exited() {
            service.kill9().await;
        }
        let is_over = service.has_exited();
        if !is_over {
            service.sigterm();
        }
        let status = service.exit().await;
        let is_killed = status.signal() == Some(Signal::SIGKILL as i32);
        assert!(status.success() || is_killed, "{status}: {}", service.stderr_text());
        assert!(!service.stderr_text().contains("panicked"), "{}", service.stderr_text());
        let may_be_killed = mode.stays() || (mode.is_deadly() && mode.process == "serve");
        assert!(may_be_killed || !is_killed, "{}", service.stderr_text());
    }

    /// A service that cannot begin says so in a sentence, and runs nothing.
    fn not_begun(&self, output: &CommandOutput) {
        let said = &output.stderr;
        if said.contains(RUNTIME) {
            return;
        }
        assert!(!said.contains("panicked"), "{said}");
        let is_killed = output.code.is_none() && self.fault.mode.is_deadly();
        assert!(is_killed || (output.code == Some(1) && said.contains("error: ")), "{output:?}");
    }

    /// Every message comes once more; each is what was told of it.
    async fn second_life(&mut self, service: &Service) {
        self.wardens.extend(wardens(service.pid()));
        for (nth, (agent, takes)) in REQUESTS.iter().enumerate() {
            let task = service.rpc(agent, "message/send", &params(nth, *takes, false)).await;
            let before = self.accepted.insert(format!("m-{nth}"), id(&task));
            assert!(before.as_ref().is_none_or(|told| *told == id(&task)), "{before:?}: {task}");
        }
        for (agent, id) in self.tasks() {
            let task = service.ended(agent, &id).await;
            self.note(&task);
        }
    }
}
