//! One scenario: a service with a fault is asked for four things; the next one, without a fault, has
//! to know of each what the first one said.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::harness::client::{message_params_with_id, task_id, task_state};
use crate::harness::fault_injection::{FaultTally, InjectedFault, remove_fault};
use crate::harness::processes::holder_pids;
use crate::harness::service::CommandOutput;
use crate::harness::wait::WAIT_TIMEOUT;
use crate::harness::{ServiceClient, ServiceProcess, Setup};
use crate::history_check::{HistoryCheckInput, HistoryChecker};

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
const RUNTIME_START_FAILURE: &str = "failed to create UnixStream";

/// How long it is waited for an answer where a fault stays.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// What came of a scenario.
pub(super) struct ScenarioResult {
    pub(super) tally: FaultTally,
    /// How its executions ended, and why messages were refused.
    pub(super) outcomes: Vec<String>,
}

/// Caller of a scenario, with the answers that it received.
struct ScenarioCaller {
    fault: InjectedFault,
    /// The ids of executions, by those of their messages.
    execution_ids_by_message_id: BTreeMap<String, String>,
    /// The states that were told as the last ones.
    end_states: BTreeMap<String, String>,
    refusal_codes: Vec<String>,
    holder_pids: BTreeSet<i32>,
}

/// Runs a scenario with a fault.
pub(super) async fn run_scenario(fault: InjectedFault) -> ScenarioResult {
    let setup = Setup::new(AGENTS);
    fs::create_dir(setup.test_folder().join("work")).unwrap();
    let (execution_ids_by_message_id, end_states, refusal_codes) = Default::default();
    let mut caller = ScenarioCaller {
        fault,
        execution_ids_by_message_id,
        end_states,
        refusal_codes,
        holder_pids: BTreeSet::new(),
    };
    let (service, tally) = match fault.inject_into(setup).try_start().await {
        Ok(mut service) => {
            caller.send_to_first_process(&mut service).await;
            caller.stop_service(&mut service).await;
            let tally = FaultTally::read(service.setup.test_folder());
            remove_fault(&mut service.setup);
            service.start_again().await;
            (service, tally)
        }
        Err((mut setup, output)) => {
            caller.check_failed_start(&output);
            let tally = FaultTally::read(setup.test_folder());
            remove_fault(&mut setup);
            (setup.start().await, tally)
        }
    };
    caller.resend_to_second_process(&service).await;
    let ScenarioCaller {
        execution_ids_by_message_id: accepted,
        holder_pids,
        refusal_codes: refused,
        ..
    } = &caller;
    let history_check_input = HistoryCheckInput {
        service: &service,
        execution_ids_by_message_id: accepted,
        message_count: REQUESTS.len(),
        seen_holder_pids: holder_pids,
    };
    let checker = HistoryChecker::new(history_check_input).await;
    checker.check().await;
    let outcomes = checker.code_or_outcome_counts().into_keys().map(str::to_owned);
    ScenarioResult { tally, outcomes: outcomes.chain(refused.iter().cloned()).collect() }
}

fn numbered_message_params(index: usize, work_ms: u64, blocking: bool) -> Value {
    let mut params = message_params_with_id(&format!("m-{index}"), &format!("{work_ms}e-3"));
    params["configuration"] = json!({"blocking": blocking});
    params
}

impl ScenarioCaller {
    async fn send_to_first_process(&mut self, service: &mut ServiceProcess) {
        self.holder_pids.extend(holder_pids(service.pid()));
        let client = service.client.clone();
        for (index, (agent, work_ms)) in REQUESTS.iter().enumerate() {
            let params = numbered_message_params(index, *work_ms, index == 0);
            if let Some(task) =
                self.call_and_record_refusal(&client, agent, "message/send", &params).await
            {
                self.execution_ids_by_message_id.insert(format!("m-{index}"), task_id(&task));
                self.record_end_state(&task);
            }
        }
        if let Some(last_id) = self.execution_ids_by_message_id.get("m-3").cloned() {
            let cancelled = self
                .call_and_record_refusal(&client, "writer", "tasks/cancel", &json!({"id": last_id}))
                .await;
            cancelled.iter().for_each(|task| self.record_end_state(task));
        }
        if !self.fault.mode.is_persistent() {
            self.wait_until_settled(service, &client).await;
        }
        if !service.has_exited() {
            self.holder_pids.extend(holder_pids(service.pid())); // It may have had to start another.
        }
    }

    /// One question; `None` when it is refused in words, or nobody answers any more.
    async fn call_and_record_refusal(
        &mut self,
        client: &ServiceClient,
        agent: &str,
        method: &str,
        params: &Value,
    ) -> Option<Value> {
        let time_limit =
            if self.fault.mode.is_persistent() { ANSWER_TIMEOUT } else { WAIT_TIMEOUT };
        let answer = match timeout(time_limit, client.try_call(agent, method, params)).await {
            Ok(answer) => answer?,
            Err(_elapsed) if self.fault.mode.is_persistent() => return None,
            Err(_elapsed) => panic!("{method} was never answered: {:?}", self.fault),
        };
        if answer["error"].is_null() {
            return Some(answer["result"].clone());
        }
        let code = answer["error"]["data"][0]["metadata"]["code"].as_str();
        self.refusal_codes.push(code.unwrap_or_else(|| panic!("no code: {answer}")).to_owned());
        None
    }

    /// Waits until all that was accepted has ended, or the service has.
    async fn wait_until_settled(&mut self, service: &mut ServiceProcess, client: &ServiceClient) {
        let settled_wait = timeout(WAIT_TIMEOUT, async {
            let mut ticks = tokio::time::interval(Duration::from_millis(20));
            for (agent, id) in self.accepted_tasks() {
                while !self.end_states.contains_key(&id) && !service.has_exited() {
                    ticks.tick().await;
                    let params = json!({"id": id});
                    let task = client.try_call(agent, "tasks/get", &params).await;
                    let task = task.map(|answer| answer["result"].clone());
                    task.iter().for_each(|task| self.record_end_state(task));
                }
            }
        });
        assert!(
            settled_wait.await.is_ok(),
            "stuck, and {:?}: {}",
            self.end_states,
            service.stderr_text()
        );
    }

    /// The agents and executions that callers know of, in the order in which they asked.
    fn accepted_tasks(&self) -> Vec<(&'static str, String)> {
        let accepted = |(index, (agent, _)): (usize, &(&'static str, u64))| {
            Some((*agent, self.execution_ids_by_message_id.get(&format!("m-{index}"))?.clone()))
        };
        REQUESTS.iter().enumerate().filter_map(accepted).collect()
    }

    /// What was told as the end is not taken back.
    fn record_end_state(&mut self, task: &Value) {
        let state = task_state(task);
        if END_STATES.contains(&state.as_str()) {
            let previous_state = self.end_states.insert(task_id(task), state.clone());
            assert!(
                previous_state.as_ref().is_none_or(|previous_state| *previous_state == state),
                "{previous_state:?}: {task}"
            );
        }
    }

    /// Ends the service: it closes its ledger where it still can.
    async fn stop_service(&mut self, service: &mut ServiceProcess) {
        let InjectedFault { mode, .. } = self.fault;
        if mode.is_persistent() && !service.has_exited() {
            service.kill9().await;
        }
        let has_exited = service.has_exited();
        if !has_exited {
            service.send_sigterm();
        }
        let status = service.wait_for_exit().await;
        let is_killed = status.signal() == Some(Signal::SIGKILL as i32);
        assert!(status.success() || is_killed, "{status}: {}", service.stderr_text());
        assert!(!service.stderr_text().contains("panicked"), "{}", service.stderr_text());
        let may_be_killed = mode.is_persistent() || (mode.is_deadly() && mode.process == "serve");
        assert!(may_be_killed || !is_killed, "{}", service.stderr_text());
    }

    /// A service that cannot begin says so in a sentence, and runs nothing.
    fn check_failed_start(&self, output: &CommandOutput) {
        let stderr = &output.stderr;
        if stderr.contains(RUNTIME_START_FAILURE) {
            return;
        }
        assert!(!stderr.contains("panicked"), "{stderr}");
        let is_killed = output.exit_code.is_none() && self.fault.mode.is_deadly();
        assert!(
            is_killed || (output.exit_code == Some(1) && stderr.contains("error: ")),
            "{output:?}"
        );
    }

    /// Every message comes once more; each is what was told of it.
    async fn resend_to_second_process(&mut self, service: &ServiceProcess) {
        self.holder_pids.extend(holder_pids(service.pid()));
        for (index, (agent, work_ms)) in REQUESTS.iter().enumerate() {
            let task = service
                .expect_result(
                    agent,
                    "message/send",
                    &numbered_message_params(index, *work_ms, false),
                )
                .await;
            let previous_id =
                self.execution_ids_by_message_id.insert(format!("m-{index}"), task_id(&task));
            assert!(
                previous_id.as_ref().is_none_or(|known_id| *known_id == task_id(&task)),
                "{previous_id:?}: {task}"
            );
        }
        for (agent, id) in self.accepted_tasks() {
            let task = service.wait_for_task_end(agent, &id).await;
            self.record_end_state(&task);
        }
    }
}
