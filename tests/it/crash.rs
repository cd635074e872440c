//! The service is killed, or started twice: nothing is lost, nothing is run twice.

use serde_json::json;

use crate::harness::client::{completed_outcome, task_outcome, task_state};
use crate::harness::processes::{is_alive, pids_with_env};
use crate::harness::{ServiceProcess, Setup, fake_agent_config, gated_agent_config, poll_until};

#[tokio::test]
async fn a_kill_keeps_running_work_and_the_order_of_the_queue() {
    let mut service =
        ServiceProcess::start(&gated_agent_config("one", "access = 'read-write'")).await;
    let mut ids = Vec::new();
    for word in ["ann", "bob", "cid"] {
        ids.push(service.start_task("one", word).await);
    }
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let env_entry = format!("ALGONIUS_EXECUTION_ID={}", ids[0]);
    let pids = pids_with_env(&env_entry);
    assert!(!pids.is_empty());
    service.kill9().await;
    service.start_again().await;
    assert!(pids.iter().any(|pid| is_alive(*pid)), "what ran is gone");
    poll_until("it runs", async || {
        (service.fetch_execution(&ids[0]).await["state"] == "running").then_some(())
    })
    .await;
    for (word, id) in ["ann", "bob", "cid"].iter().zip(&ids) {
        service.setup.open_gate(&format!("go-{word}"));
        assert_eq!(
            task_outcome(&service.wait_for_task_end("one", id).await),
            completed_outcome(&format!("{word}\n"))
        );
    }
    let stderr = service.stderr_text();
    assert!(stderr.contains("goes on") && !stderr.contains('\u{1b}'), "no plain log: {stderr}");
    let log = "start ann\nend ann\nstart bob\nend bob\nstart cid\nend cid\n";
    // Queued executions keep their order after a kill
    assert_eq!(service.setup.read_file("log"), log);
    let list = service.get("/api/v1/executions").await.json();
    assert_eq!(list["executions"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn an_answered_task_is_unchanged_after_a_kill() {
    let mut service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    let task_before = service.send("echo", "hello").await;
    service.kill9().await;
    service.start_again().await;
    // A task that was answered before a kill has the same answer after it
    assert_eq!(service.fetch_task("echo", task_before["id"].as_str().unwrap()).await, task_before);
}

#[tokio::test]
async fn work_of_a_removed_agent_is_interrupted_at_the_start() {
    let agents = [gated_agent_config("gone", ""), fake_agent_config("echo", "echo", "")].concat();
    let mut service = ServiceProcess::start(&agents).await;
    let id = service.start_task("gone", "ann").await;
    service.kill9().await;
    let text = std::fs::read_to_string(service.setup.write_config()).unwrap();
    let text_before_section = text.split("[agents.gone]").next().unwrap().to_owned();
    let echo_section = text.split("[agents.echo]").nth(1).unwrap();
    service.setup.set_config_text(&format!("{text_before_section}\n[agents.echo]{echo_section}"));
    service.start_again().await;
    let record = service.fetch_execution(&id).await;
    assert_eq!(
        (&record["state"], &record["error"]["code"]),
        (&json!("failed"), &json!("interrupted"))
    );
}

#[tokio::test]
async fn a_second_service_on_the_same_ledger_is_refused() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    let config = service.setup.write_config().display().to_string();
    let second_command = ["serve", "--config", &config, "--listen", "127.0.0.1:0"];
    let output = service.setup.run_command(&second_command, "").await;
    assert_eq!((output.exit_code, output.stdout.as_str()), (Some(1), ""));
    assert!(output.stderr.contains("another"), "{}", output.stderr);
    assert!(!output.stderr.contains("panicked"), "{}", output.stderr);
    assert_eq!(task_state(&service.send("echo", "still here").await), "completed");
}

#[tokio::test]
async fn an_occupied_port_is_reported() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    let other_setup = Setup::new(&fake_agent_config("echo", "echo", ""));
    let (config, address) =
        (other_setup.write_config().display().to_string(), service.address.to_string());
    let output =
        other_setup.run_command(&["serve", "--config", &config, "--listen", &address], "").await;
    assert_eq!(output.exit_code, Some(1));
    assert!(output.stderr.contains(&format!("cannot listen on {address}")), "{}", output.stderr);
}

#[tokio::test]
async fn a_task_whose_queue_timeout_passed_offline_is_rejected() {
    let agent = gated_agent_config("one", "access = 'read-write'\nqueue_timeout = 1.5");
    let mut service = ServiceProcess::start(&agent).await;
    service.start_task("one", "ann").await;
    let waiting_id = service.start_task("one", "bob").await;
    let queued_at = tokio::time::Instant::now();
    service.kill9().await;
    // Time itself is the story here: it passes while nobody is there.
    tokio::time::sleep_until(queued_at + std::time::Duration::from_millis(1700)).await;
    service.start_again().await;
    let task = poll_until("the end", async || {
        let task = service.fetch_task("one", &waiting_id).await;
        (task_state(&task) == "rejected").then_some(task)
    })
    .await;
    // A request whose queue timeout passed while the service was down is rejected
    assert_eq!(task_outcome(&task).1, "queue-timeout");
    assert!(!service.setup.read_file("log").contains("bob"));
}
