//! A second signal during the drain: everything that runs is killed and recorded, and nothing continues.

use nix::sys::signal::Signal;
use serde_json::Value;
use tokio::task::JoinHandle;

use crate::harness::client::{completed_with, task_outcome};
use crate::harness::processes::processes_with_env;
use crate::harness::{
    Service, Setup, fake_agent_config, gated_agent_config, poll_until, within_deadline,
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

async fn wait_for_drain(service: &Service, agent: &str) {
    poll_until("the drain", async || {
        (service.agent_status(agent).await["health"] == "draining").then_some(())
    })
    .await;
}

/// Starts an execution for which a caller waits; returns its id and the future answer of the caller.
async fn start_with_waiting_caller(service: &Service) -> (String, JoinHandle<Value>) {
    let client = service.client.clone();
    let caller = tokio::spawn(async move { client.send("stubborn", "ann").await });
    poll_until("both processes", async || {
        (service.setup.read("log").lines().count() == 2).then_some(())
    })
    .await;
    let running_id = service.agent_status("stubborn").await["running"][0]["id"].clone();
    (running_id.as_str().unwrap().to_owned(), caller)
}

#[tokio::test]
async fn a_second_signal_kills_and_records_running_work() {
    for (first, second) in [
        (Signal::SIGTERM, Signal::SIGTERM),
        (Signal::SIGTERM, Signal::SIGINT),
        (Signal::SIGINT, Signal::SIGINT),
    ] {
        let agents = [STUBBORN_AGENT, &fake_agent_config("echo", "echo", "")].concat();
        let mut service = Setup::with_server_settings("drain_timeout = 600", &agents).start().await;
        let (id, running) = start_with_waiting_caller(&service).await;
        let client = service.client.clone();
        let caller = tokio::spawn(async move { client.send("stubborn", "bob").await });
        poll_until("bob in the queue", async || {
            (service.agent_status("stubborn").await["queued"].as_array().unwrap().len() == 1)
                .then_some(())
        })
        .await;
        service.signal(first);
        wait_for_drain(&service, "stubborn").await;
        service.signal(second);
        assert_eq!(service.wait_for_exit().await.code(), Some(0), "{second}");
        // Both callers were answered before that.
        assert_eq!(
            within_deadline("an answer", caller).await.unwrap()["status"]["state"],
            "submitted"
        );
        let expected = ("canceled".to_owned(), "execution-cancelled".to_owned());
        assert_eq!(task_outcome(&within_deadline("an answer", running).await.unwrap()), expected);
        let remaining = processes_with_env(&format!("ALGONIUS_EXECUTION_ID={id}"));
        assert_eq!(remaining, Vec::<i32>::new(), "{second}");
        let home = format!("HOME={}", service.setup.test_folder().join("home").display());
        assert_eq!(processes_with_env(&home), Vec::<i32>::new(), "{second}");
        service.restart().await;
        // R-55: A second SIGTERM or SIGINT kills running work, records it as cancelled, and ends
        // the service within seconds
        assert_eq!(task_outcome(&service.task("stubborn", &id).await), expected, "{second}");
        assert_eq!(task_outcome(&service.send("echo", "hello").await), completed_with("hello"));
    }
}

/// The first deadline has passed and the agent is in its grace period.
#[tokio::test]
async fn a_second_signal_waits_for_no_grace_period() {
    let mut service =
        Setup::with_server_settings("drain_timeout = 0.1", STUBBORN_AGENT).start().await;
    let (id, _running) = start_with_waiting_caller(&service).await;
    service.sigterm();
    // The service asks the program to end when the drain is over. The grace is a minute, which is longer than any wait
    // of a test.
    service.setup.wait_for_text("asked", "asked\n").await;
    assert!(!processes_with_env(&format!("ALGONIUS_EXECUTION_ID={id}")).is_empty());
    service.sigterm();
    // R-105: The second signal also ends programs in their grace period
    assert_eq!(service.wait_for_exit().await.code(), Some(0));
    assert_eq!(processes_with_env(&format!("ALGONIUS_EXECUTION_ID={id}")), Vec::<i32>::new());
    service.restart().await;
    assert_eq!(task_outcome(&service.task("stubborn", &id).await).0, "canceled");
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
    let mut ids = Vec::new();
    for number in 0..8 {
        for word in ["ann", "bob", "cid", "dan"] {
            let agent = format!("one{number}");
            ids.push((agent.clone(), service.start_task(&agent, word).await));
        }
    }
    service.sigterm();
    wait_for_drain(&service, "one0").await;
    service.sigterm();
    assert_eq!(service.wait_for_exit().await.code(), Some(0));
    let home = format!("HOME={}", service.setup.test_folder().join("home").display());
    assert_eq!(processes_with_env(&home), Vec::<i32>::new());
    service.setup.open_gate("go");
    service.restart().await;
    for (agent, id) in ids {
        let (state, text) = task_outcome(&service.wait_for_end(&agent, &id).await);
        // An execution that had not started runs after the next start; one that had started
        // runs once and was cancelled.
        assert!(state == "completed" || text == "execution-cancelled", "{agent} {state} {text}");
    }
}

#[tokio::test]
async fn a_handover_leaves_programs_to_the_next_service() {
    let mut service = Service::start(&gated_agent_config("one", "access = 'read-write'")).await;
    let id = service.start_task("one", "ann").await;
    service.setup.wait_for_text("log", "start ann\n").await;
    service.signal(Signal::SIGUSR2);
    assert_eq!(service.wait_for_exit().await.code(), Some(0));
    assert!(!processes_with_env(&format!("ALGONIUS_EXECUTION_ID={id}")).is_empty());
    service.setup.open_gate("go");
    service.restart().await;
    assert_eq!(task_outcome(&service.wait_for_end("one", &id).await), completed_with("ann\n"));
}
