//! What the log says of executions: which, how they ended, what it took, and no secret.

use serde_json::{Value, json};

use crate::harness::client::{completed_outcome, failed_outcome, task_id, task_outcome};
use crate::harness::fault_injection::{FaultMode, FaultTally, InjectedFault};
use crate::harness::{
    ServiceProcess, Setup, fake_agent_config, gated_agent_config, message_params, poll_until,
};

/// Says in its own words that it failed, with a secret among them.
const AGENTS: &str = r#"
[agents.leaks]
command = "sh"
args = ["-c", 'printf "%s\n" "{\"type\":\"failed\",\"message\":\"refused $SERVICE_API_KEY\"}"']
output = "events"
[agents.leaks.env_from]
SERVICE_API_KEY = "GIVEN"
[log]
format = "json"
"#;

/// What the log says about the end of an execution.
async fn wait_for_end_log_line(service: &ServiceProcess, id: &str) -> Value {
    poll_until("the line of the end", async || {
        let log_text = service.stderr_text();
        let mut lines =
            log_text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
        lines.find(|line| line["message"] == "ended" && line["execution"] == id)
    })
    .await
}

#[tokio::test]
async fn the_log_line_of_an_end_has_its_duration_and_no_secret() {
    let secret = "q7Rk2vXw9TzLm4Bn8Hs3Jd6Fg1Pc5Ye0";
    let service = Setup::new(AGENTS).env("GIVEN", secret).start().await;
    let task = service.send("leaks", "go").await;
    assert_eq!(task_outcome(&task), failed_outcome("agent-reported"));
    let line = wait_for_end_log_line(&service, &task_id(&task)).await;
    assert_eq!((&line["agent"], &line["outcome"]), (&json!("leaks"), &json!("failed")));
    assert_eq!((&line["code"], &line["level"]), (&json!("agent-reported"), &json!("INFO")));
    assert_eq!(line["reason"], "the agent reported: refused ***");
    assert!(!service.stderr_text().contains(secret), "{}", service.stderr_text());
    // In milliseconds it would be less: no program starts and ends in fewer than these.
    let duration_us = line["duration_us"].as_u64().unwrap_or_else(|| panic!("{line}"));
    assert!((500..60_000_000).contains(&duration_us), "{duration_us}");
}

#[tokio::test]
async fn an_execution_that_never_began_has_no_duration() {
    let agents =
        format!("{}[log]\nformat = 'json'\n", gated_agent_config("one", "max_concurrent = 1"));
    let service = ServiceProcess::start(&agents).await;
    service.start_task("one", "ann").await;
    let waiting_id = task_id(&service.submit("one", message_params("bob")).await);
    service.cancel("one", &waiting_id).await;
    let line = wait_for_end_log_line(&service, &waiting_id).await;
    assert_eq!((&line["outcome"], line.get("duration_us")), (&json!("cancelled"), None));
    assert_eq!(line["reason"], "called off by operator");
    service.setup.open_gate("go");
}

#[tokio::test]
async fn a_service_that_cannot_write_its_log_continues() {
    let mode = FaultMode { process: "serve", counted_call_kinds: "log", effect: "on:28" };
    let start_with_fault = async |call_number| {
        let setup = Setup::new(&fake_agent_config("echo", "echo", ""));
        InjectedFault { mode, call_number }.inject_into(setup).start().await
    };
    let startup_call_count =
        FaultTally::read(start_with_fault(u64::MAX).await.setup.test_folder()).counted_calls;
    let mut service = start_with_fault(startup_call_count + 1).await;
    for word in ["one", "two"] {
        // R-17: The service continues if it cannot write its log, as on a full disk
        assert_eq!(task_outcome(&service.send("echo", word).await), completed_outcome(word));
    }
    service.send_sigterm();
    assert!(service.wait_for_exit().await.success());
    assert!(FaultTally::read(service.setup.test_folder()).affected_calls > 1);
}
