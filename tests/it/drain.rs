//! A service that is told to stop: what runs may finish, what waits stays, nothing new comes in.

use std::io::ErrorKind;

use nix::sys::signal::Signal;
use serde_json::{Value, json};

use crate::harness::client::{completed_outcome, task_outcome, task_state};
use crate::harness::{
    ServiceProcess, Setup, gated_agent_config, message_params, poll_until, within_deadline,
};

/// Waits until the agent says that the service is on its way out.
async fn wait_for_drain(service: &ServiceProcess) {
    poll_until("the drain", async || {
        (service.fetch_agent_status("one").await["health"] == "draining").then_some(())
    })
    .await;
}

#[tokio::test]
async fn sigterm_finishes_running_work_and_keeps_queued_work() {
    let mut service =
        ServiceProcess::start(&gated_agent_config("one", "access = 'read-write'")).await;
    let client = service.client.clone();
    let caller = tokio::spawn(async move { client.send("one", "ann").await });
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let waiting_id = service.start_task("one", "bob").await;
    service.send_sigterm();
    wait_for_drain(&service).await;
    let answer = service.call("one", "message/send", &message_params("cid")).await;
    assert_eq!((answer.status, &answer.json()["error"]["code"]), (503, &json!(-32055)));
    assert_eq!(service.request("GET /health", &[], b"").await.status, 200);
    service.setup.open_gate("go-ann");
    assert_eq!(
        task_outcome(&within_deadline("the answer", caller).await.unwrap()),
        completed_outcome("ann\n")
    );
    assert_eq!(service.wait_for_exit().await.code(), Some(0));
    let refused = tokio::net::TcpStream::connect(service.address).await;
    assert_eq!(refused.map_err(|error| error.kind()).err(), Some(ErrorKind::ConnectionRefused));
    assert_eq!(service.setup.read_file("log"), "start ann\nend ann\n");
    service.setup.open_gate("go");
    service.start_again().await;
    assert_eq!(
        task_outcome(&service.wait_for_task_end("one", &waiting_id).await),
        completed_outcome("bob\n")
    );
    // On SIGTERM and SIGINT, running work may finish, and queued work runs after the next
    // start
    assert_eq!(service.setup.read_file("log"), "start ann\nend ann\nstart bob\nend bob\n");
}

#[tokio::test]
async fn a_queued_caller_is_answered_when_the_service_stops() {
    let server_settings = "drain_timeout = 0.3";
    let agent = gated_agent_config("one", "access = 'read-write'\nstop_grace = 0.1");
    let mut service = Setup::with_server_settings(server_settings, &agent).start().await;
    service.start_task("one", "ann").await;
    let client = service.client.clone();
    let caller = tokio::spawn(async move { client.send("one", "bob").await });
    poll_until("bob in the queue", async || {
        (service.fetch_agent_status("one").await["queued"].as_array().unwrap().len() == 1)
            .then_some(())
    })
    .await;
    service.send_sigterm();
    let task = within_deadline("the answer", caller).await.unwrap();
    assert_eq!(task_state(&task), "submitted");
    assert_eq!(service.wait_for_exit().await.code(), Some(0));
    service.setup.open_gate("go");
    service.start_again().await;
    let task = service.wait_for_task_end("one", task["id"].as_str().unwrap()).await;
    assert_eq!(task_outcome(&task), completed_outcome("bob\n"));
}

#[tokio::test]
async fn sigint_finishes_running_work_too() {
    let mut service = ServiceProcess::start(&gated_agent_config("one", "")).await;
    let client = service.client.clone();
    let caller = tokio::spawn(async move { client.send("one", "ann").await });
    service.setup.wait_for_file_text("log", "start ann\n").await;
    service.send_signal(Signal::SIGINT);
    wait_for_drain(&service).await;
    service.setup.open_gate("go");
    assert_eq!(
        task_outcome(&within_deadline("the answer", caller).await.unwrap()),
        completed_outcome("ann\n")
    );
    // On SIGTERM and SIGINT, running work may finish, and queued work runs after the next
    // start
    assert_eq!(service.wait_for_exit().await.code(), Some(0));
}

#[tokio::test]
async fn work_beyond_the_drain_timeout_is_cancelled() {
    let server_settings = "drain_timeout = 0.3";
    let agent = gated_agent_config("one", "stop_grace = 0.1");
    let mut service = Setup::with_server_settings(server_settings, &agent).start().await;
    let client = service.client.clone();
    let caller = tokio::spawn(async move { client.send("one", "ann").await });
    service.setup.wait_for_file_text("log", "start ann\n").await;
    service.send_sigterm();
    let task = within_deadline("the answer", caller).await.unwrap();
    // Work that runs longer than `drain_timeout` is cancelled
    assert_eq!(task_outcome(&task), ("canceled".to_owned(), "execution-cancelled".to_owned()));
    assert_eq!(service.wait_for_exit().await.code(), Some(0));
    service.start_again().await;
    // The next process listens on another port, and so does the address of the page.
    let without_page = |mut task: Value| {
        task["status"]["message"]["metadata"]["page"].take();
        task
    };
    let stored_task = service.fetch_task("one", task["id"].as_str().unwrap()).await;
    assert_eq!(without_page(stored_task), without_page(task));
}
