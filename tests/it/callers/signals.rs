//! A second signal during the drain: everything that runs is killed and recorded, and nothing continues.

use nix::sys::signal::Signal;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::harness::client::{completed_outcome, task_outcome};
use crate::harness::mock_model::{MockModel, prompt_with_turns, turn_with_calls};
use crate::harness::processes::pids_with_env;
use crate::harness::{
    ServiceProcess, Setup, fake_agent_config, gated_agent_config, poll_until, within_deadline,
};

/// Ignores every polite request to end, as do its children, one of which has left its session.
const STUBBORN_AGENT: &str = r#"
[agents.stubborn]
command = "sh"
args = ["-c", '''
trap '' INT HUP
trap 'echo asked >> HERE/asked' TERM
setsid sh -c 'trap "" TERM; echo apart >> HERE/log; sleep 600' &
echo begun >> HERE/log
while :; do sleep 600; done
''']
access = "read-write"
sandbox.writable = ["HERE"]
stop_grace = 60
"#;

async fn wait_for_drain_start(service: &ServiceProcess, agent: &str) {
    poll_until("the drain", async || {
        (service.fetch_agent_status(agent).await["health"] == "draining").then_some(())
    })
    .await;
}

/// Starts an execution for which a caller waits; returns its id and the future answer of the caller.
async fn start_stubborn_execution(service: &ServiceProcess) -> (String, JoinHandle<Value>) {
    let client = service.client.clone();
    let caller = tokio::spawn(async move { client.send("stubborn", "ann").await });
    poll_until("both processes", async || {
        (service.setup.read_file("log").lines().count() == 2).then_some(())
    })
    .await;
    let running_id = service.fetch_agent_status("stubborn").await["running"][0]["id"].clone();
    (running_id.as_str().unwrap().to_owned(), caller)
}

#[tokio::test]
async fn a_second_signal_kills_and_records_running_work() {
    for (first_signal, second_signal) in [
        (Signal::SIGTERM, Signal::SIGTERM),
        (Signal::SIGTERM, Signal::SIGINT),
        (Signal::SIGINT, Signal::SIGINT),
    ] {
        let agents = [STUBBORN_AGENT, &fake_agent_config("echo", "echo", "")].concat();
        let mut service = Setup::with_server_settings("drain_timeout = 600", &agents).start().await;
        let (id, running_caller) = start_stubborn_execution(&service).await;
        let client = service.client.clone();
        let queued_caller = tokio::spawn(async move { client.send("stubborn", "bob").await });
        poll_until("bob in the queue", async || {
            (service.fetch_agent_status("stubborn").await["queued"].as_array().unwrap().len() == 1)
                .then_some(())
        })
        .await;
        service.send_signal(first_signal);
        wait_for_drain_start(&service, "stubborn").await;
        service.send_signal(second_signal);
        assert_eq!(service.wait_for_exit().await.code(), Some(0), "{second_signal}");
        // Both callers were answered before that.
        assert_eq!(
            within_deadline("an answer", queued_caller).await.unwrap()["status"]["state"],
            "submitted"
        );
        let expected = ("canceled".to_owned(), "execution-cancelled".to_owned());
        assert_eq!(
            task_outcome(&within_deadline("an answer", running_caller).await.unwrap()),
            expected
        );
        let remaining = pids_with_env(&format!("ALGONIUS_EXECUTION_ID={id}"));
        assert_eq!(remaining, Vec::<i32>::new(), "{second_signal}");
        let home = format!("HOME={}", service.setup.test_folder().join("home").display());
        assert_eq!(pids_with_env(&home), Vec::<i32>::new(), "{second_signal}");
        service.start_again().await;
        // R-55: A second SIGTERM or SIGINT kills running work, records it as cancelled, and ends
        // the service within seconds
        assert_eq!(
            task_outcome(&service.fetch_task("stubborn", &id).await),
            expected,
            "{second_signal}"
        );
        assert_eq!(task_outcome(&service.send("echo", "hello").await), completed_outcome("hello"));
    }
}

/// A team, a conversation with a kept program, and a cognitive agent whose tool runs a program. None ends on request.
const OTHER_AGENTS: &str = r#"
[agents.crew]
kind = "team"
team.steps = ["stubborn"]
[agents.kept]
command = "sh"
args = ["-c", '''
trap '' INT HUP TERM
read line
echo begun > HERE/kept
while :; do sleep 600; done
''']
mode = "interactive"
sandbox.writable = ["HERE"]
stop_grace = 60
turn.end_line = "END"
[models.local]
base_url = "MODEL"
[tools.shell]
source = "handler"
description = "Runs a script."
timeout = 600
inputs.script = { type = "string" }
[tools.shell.handler]
kind = "command"
command = "sh"
args = ["-c", "{{ script }}"]
sandbox = { writable = ["HERE"] }
[agents.worker]
kind = "cognitive"
layer = "perceptual"
model_id = "local/mock-1"
tools = ["shell"]
"#;

#[tokio::test]
async fn a_second_signal_kills_work_of_every_kind() {
    let model = MockModel::start(&[]);
    let agents = [STUBBORN_AGENT, &OTHER_AGENTS.replace("MODEL", &model.base_url())].concat();
    let mut service = Setup::with_server_settings("drain_timeout = 600", &agents).start().await;
    let script = format!(
        "trap '' TERM; echo begun > '{}/tool'; while :; do sleep 600; done",
        service.setup.test_folder().display()
    );
    let turns = [turn_with_calls(&[("shell", json!({ "script": script }))])];
    let prompt = prompt_with_turns("go", &turns);
    let mut tasks = Vec::new();
    for (agent, text, file, content) in [
        ("crew", "ann", "log", "begun\napart\n"),
        ("kept", "bob", "kept", "begun\n"),
        ("worker", &prompt, "tool", "begun\n"),
    ] {
        tasks.push((agent, service.start_task(agent, text).await));
        poll_until(file, async || {
            (service.setup.read_file(file).len() == content.len()).then_some(())
        })
        .await;
    }
    service.send_sigterm();
    wait_for_drain_start(&service, "crew").await;
    service.send_sigterm();
    assert_eq!(service.wait_for_exit().await.code(), Some(0));
    let home = format!("HOME={}", service.setup.test_folder().join("home").display());
    assert_eq!(pids_with_env(&home), Vec::<i32>::new());
    for (_, id) in &tasks {
        assert_eq!(pids_with_env(&format!("A2A_TASK_ID={id}")), Vec::<i32>::new());
    }
    service.start_again().await;
    for (agent, id) in tasks {
        // R-55: A second SIGTERM or SIGINT kills running work, records it as cancelled, and ends
        // the service within seconds
        let outcome = task_outcome(&service.fetch_task(agent, &id).await);
        assert_eq!(outcome, ("canceled".to_owned(), "execution-cancelled".to_owned()), "{agent}");
    }
}

/// The first deadline has passed and the agent is in its grace period.
#[tokio::test]
async fn a_second_signal_waits_for_no_grace_period() {
    let mut service =
        Setup::with_server_settings("drain_timeout = 0.1", STUBBORN_AGENT).start().await;
    let (id, _running_caller) = start_stubborn_execution(&service).await;
    service.send_sigterm();
    // The service asks the program to end when the drain is over. The grace is a minute, which is longer than any wait
    // of a test.
    service.setup.wait_for_file_text("asked", "asked\n").await;
    assert!(!pids_with_env(&format!("ALGONIUS_EXECUTION_ID={id}")).is_empty());
    service.send_sigterm();
    // R-105: The second signal also ends programs in their grace period
    assert_eq!(service.wait_for_exit().await.code(), Some(0));
    assert_eq!(pids_with_env(&format!("ALGONIUS_EXECUTION_ID={id}")), Vec::<i32>::new());
    service.start_again().await;
    assert_eq!(task_outcome(&service.fetch_task("stubborn", &id).await).0, "canceled");
}

/// Many at once, some of them just being started.
#[tokio::test]
async fn a_second_signal_kills_programs_that_are_just_started() {
    let agents: Vec<_> = (0..8)
        .map(|number| {
            gated_agent_config(&format!("one{number}"), "max_concurrent = 4\nstop_grace = 60")
        })
        .collect();
    let mut service =
        Setup::with_server_settings("drain_timeout = 600", &agents.concat()).start().await;
    let mut agents_and_ids = Vec::new();
    for number in 0..8 {
        for word in ["ann", "bob", "cid", "dan"] {
            let agent = format!("one{number}");
            agents_and_ids.push((agent.clone(), service.start_task(&agent, word).await));
        }
    }
    service.send_sigterm();
    wait_for_drain_start(&service, "one0").await;
    service.send_sigterm();
    assert_eq!(service.wait_for_exit().await.code(), Some(0));
    let home = format!("HOME={}", service.setup.test_folder().join("home").display());
    assert_eq!(pids_with_env(&home), Vec::<i32>::new());
    service.setup.open_gate("go");
    service.start_again().await;
    for (agent, id) in agents_and_ids {
        let (state, text) = task_outcome(&service.wait_for_task_end(&agent, &id).await);
        // An execution that had not started runs after the next start; one that had started
        // runs once and was cancelled.
        assert!(state == "completed" || text == "execution-cancelled", "{agent} {state} {text}");
    }
}

#[tokio::test]
async fn a_handover_leaves_programs_to_the_next_service() {
    let mut service =
        ServiceProcess::start(&gated_agent_config("one", "access = 'read-write'")).await;
    let id = service.start_task("one", "ann").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    service.send_signal(Signal::SIGUSR2);
    assert_eq!(service.wait_for_exit().await.code(), Some(0));
    assert!(!pids_with_env(&format!("ALGONIUS_EXECUTION_ID={id}")).is_empty());
    service.setup.open_gate("go");
    service.start_again().await;
    assert_eq!(
        task_outcome(&service.wait_for_task_end("one", &id).await),
        completed_outcome("ann\n")
    );
}
