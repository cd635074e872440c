//! The service is killed, or started twice: nothing is lost, nothing is run twice.

use serde_json::json;

use crate::harness::door::{completed, outcome, state};
use crate::harness::processes::{is_alive, marked};
use crate::harness::{Service, Setup, fake, gated, until};

#[tokio::test]
async fn after_a_kill_the_running_one_goes_on_and_the_waiting_ones_run_in_order() {
    let mut service = Service::start(&gated("one", "access = 'read-write'")).await;
    let mut ids = Vec::new();
    for word in ["ann", "bob", "cid"] {
        ids.push(service.begin("one", word).await);
    }
    service.setup.written("log", "start ann\n").await;
    let mark = format!("ALGONIUS_EXECUTION_ID={}", ids[0]);
    let left = marked(&mark);
    assert!(!left.is_empty());
    service.kill9().await;
    service.restart().await;
    assert!(left.iter().any(|pid| is_alive(*pid)), "what ran is gone");
    until("it runs", async || {
        (service.execution(&ids[0]).await["state"] == "running").then_some(())
    })
    .await;
    for (word, id) in ["ann", "bob", "cid"].iter().zip(&ids) {
        service.setup.open(&format!("go-{word}"));
        assert_eq!(outcome(&service.ended("one", id).await), completed(&format!("{word}\n")));
    }
    let said = service.said();
    assert!(said.contains("goes on") && !said.contains('\u{1b}'), "no plain log: {said}");
    let log = "start ann\nend ann\nstart bob\nend bob\nstart cid\nend cid\n";
    assert_eq!(service.setup.read("log"), log);
    let list = service.get("/api/v1/executions").await.json();
    assert_eq!(list["executions"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn what_was_told_before_a_kill_is_told_after_it() {
    let mut service = Service::start(&fake("echo", "echo", "")).await;
    let before = service.send("echo", "hello").await;
    service.kill9().await;
    service.restart().await;
    assert_eq!(service.task("echo", before["id"].as_str().unwrap()).await, before);
}

#[tokio::test]
async fn what_belongs_to_an_agent_that_is_no_longer_configured_is_ended() {
    let agents = [gated("gone", ""), fake("echo", "echo", "")].concat();
    let mut service = Service::start(&agents).await;
    let id = service.begin("gone", "ann").await;
    service.kill9().await;
    let text = std::fs::read_to_string(service.setup.write()).unwrap();
    let kept = text.split("[agents.gone]").next().unwrap().to_owned();
    let echo = text.split("[agents.echo]").nth(1).unwrap();
    service.setup.rewrite(&format!("{kept}\n[agents.echo]{echo}"));
    service.restart().await;
    let record = service.execution(&id).await;
    assert_eq!(
        (&record["state"], &record["error"]["code"]),
        (&json!("failed"), &json!("interrupted"))
    );
}

#[tokio::test]
async fn a_second_service_on_the_same_ledger_is_refused_with_a_sentence() {
    let service = Service::start(&fake("echo", "echo", "")).await;
    let config = service.setup.write().display().to_string();
    let second = ["serve", "--config", &config, "--listen", "127.0.0.1:0"];
    let output = service.setup.run(&second, "").await;
    assert_eq!((output.code, output.stdout.as_str()), (Some(1), ""));
    assert!(output.stderr.contains("another"), "{}", output.stderr);
    assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
    assert_eq!(state(&service.send("echo", "still here").await), "completed");
}

#[tokio::test]
async fn a_port_that_is_taken_is_refused_with_a_sentence() {
    let service = Service::start(&fake("echo", "echo", "")).await;
    let other = Setup::new(&fake("echo", "echo", ""));
    let (config, address) = (other.write().display().to_string(), service.address.to_string());
    let output = other.run(&["serve", "--config", &config, "--listen", &address], "").await;
    assert_eq!(output.code, Some(1));
    assert!(output.stderr.contains(&format!("cannot listen on {address}")), "{}", output.stderr);
}

#[tokio::test]
async fn what_waited_too_long_while_the_service_was_away_is_rejected() {
    let agent = gated("one", "access = 'read-write'\nqueue_timeout = 1.5");
    let mut service = Service::start(&agent).await;
    service.begin("one", "ann").await;
    let waiting = service.begin("one", "bob").await;
    let since = tokio::time::Instant::now();
    service.kill9().await;
    // Time itself is the story here: it passes while nobody is there.
    tokio::time::sleep_until(since + std::time::Duration::from_millis(1700)).await;
    service.restart().await;
    let task = until("the end", async || {
        let task = service.task("one", &waiting).await;
        (state(&task) == "rejected").then_some(task)
    })
    .await;
    assert_eq!(outcome(&task).1, "queue-timeout");
    assert!(!service.setup.read("log").contains("bob"));
}
