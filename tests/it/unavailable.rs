//! An agent whose program is not installed: the service starts, the other agents work, and the service finds
//! the program after its installation.

use std::fs;

use serde_json::{Value, json};

use crate::harness::client::{completed_outcome, failed_outcome, task_id, task_outcome};
use crate::harness::{
    ServiceProcess, Setup, fake_agent_config, gated_agent_config, message_params, poll_until,
};

const PROGRAM_SCRIPT: &str = "#!/bin/sh\nread word\necho \"tool $word\"\n";

/// An agent whose program is searched in the folder of the test, and one that works.
fn setup_with_missing_program(settings: &str) -> Setup {
    let tool_agent = format!("[agents.tool]\ncommand = 'tool'\n{settings}\n");
    let setup = Setup::with_server_settings(
        "watch = false",
        &[tool_agent, fake_agent_config("echo", "echo", "")].concat(),
    );
    let path = format!("{}:/usr/bin:/bin", setup.test_folder().display());
    setup.env("PATH", &path)
}

/// Installs the program as a package manager does: at once and whole.
fn install_program(setup: &Setup, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    let temporary_file = setup.test_folder().join("tool.new");
    fs::write(&temporary_file, text).unwrap();
    fs::set_permissions(&temporary_file, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(temporary_file, setup.test_folder().join("tool")).unwrap();
}

fn remove_program(setup: &Setup) {
    fs::remove_file(setup.test_folder().join("tool")).unwrap();
}

async fn agent_status_in_tree(service: &ServiceProcess, agent: &str) -> Value {
    let tree = service.get("/status").await.json();
    let agents = tree["agents"].as_array().unwrap().clone();
    agents.into_iter().find(|it| it["id"] == agent).unwrap()
}

/// Waits until the service reports this health of the agent.
async fn wait_for_health(service: &ServiceProcess, expected: &str) {
    poll_until(expected, async || {
        (agent_status_in_tree(service, "tool").await["health"] == expected).then_some(())
    })
    .await;
}

async fn card_description(service: &ServiceProcess) -> String {
    let card = service.get("/agents/tool/.well-known/agent-card.json").await.json();
    card["description"].as_str().unwrap().to_owned()
}

const UNAVAILABLE_REASON: &str = "agent `tool` is unavailable: its program `tool` is not installed";

#[tokio::test]
async fn one_missing_program_does_not_affect_other_agents() {
    let service = setup_with_missing_program("").start().await;
    assert!(
        service.stderr_text().contains("tool (unavailable: its program `tool` is not installed)"),
        "{}",
        service.stderr_text()
    );
    assert_eq!(task_outcome(&service.send("echo", "hello").await), completed_outcome("hello"));
    let answer = service.call("tool", "message/send", &message_params("hello")).await;
    let error = &answer.json()["error"];
    assert_eq!(
        (answer.status, &error["code"], &error["message"]),
        (503, &json!(-32067), &json!(UNAVAILABLE_REASON))
    );
    assert_eq!(answer.error_code(), "agent-unavailable");
    let agent = agent_status_in_tree(&service, "tool").await;
    assert_eq!(
        (&agent["health"], &agent["unavailable"]),
        (&json!("unavailable"), &json!(UNAVAILABLE_REASON))
    );
    assert!(
        card_description(&service).await.contains("unavailable"),
        "{}",
        card_description(&service).await
    );
    assert_eq!(service.get("/ready").await.status, 200, "the others can take work");
    for args in [&["agents", "list"][..], &["status"]] {
        let output = service.run_command(args, "").await.stdout;
        assert!(output.contains("unavailable"), "{output}");
    }
    let send_output = service.run_command(&["send", "tool", "hello"], "").await;
    assert!(
        send_output.exit_code == Some(1) && send_output.stderr.contains(UNAVAILABLE_REASON),
        "{send_output:?}"
    );
}

#[tokio::test]
async fn an_installed_program_is_found_without_a_restart() {
    let service = setup_with_missing_program("").start().await;
    wait_for_health(&service, "unavailable").await;
    install_program(&service.setup, PROGRAM_SCRIPT);
    wait_for_health(&service, "alive").await;
    assert_eq!(
        task_outcome(&service.send("tool", "hello").await),
        completed_outcome("tool hello\n")
    );
    assert!(
        !card_description(&service).await.contains("unavailable"),
        "{}",
        card_description(&service).await
    );
    // It is replaced where it is, as updates do.
    install_program(&service.setup, &PROGRAM_SCRIPT.replace("tool $", "new $"));
    assert_eq!(
        task_outcome(&service.send("tool", "hello").await),
        completed_outcome("new hello\n")
    );
}

#[tokio::test]
async fn a_removed_program_makes_its_agent_unavailable() {
    let setup = setup_with_missing_program("");
    install_program(&setup, PROGRAM_SCRIPT);
    let service = setup.start().await;
    assert_eq!(
        task_outcome(&service.send("tool", "hello").await),
        completed_outcome("tool hello\n")
    );
    remove_program(&service.setup);
    // Before the next check of the service, the attempt itself notices that the program is missing.
    let mut params = message_params("hello");
    params["configuration"] = json!({"blocking": true});
    let answer = service.call("tool", "message/send", &params).await.json();
    let error_text = answer["error"]["message"].as_str().map(str::to_owned);
    let error_text = error_text.unwrap_or_else(|| {
        assert_eq!(
            task_outcome(&answer["result"]).0,
            failed_outcome("agent-unavailable").0,
            "{answer}"
        );
        answer["result"].to_string()
    });
    assert!(error_text.contains(UNAVAILABLE_REASON), "{error_text}");
    wait_for_health(&service, "unavailable").await;
    let (_, code) = service.expect_refusal("tool", "message/send", message_params("hello")).await;
    assert_eq!(code, "agent-unavailable");
    install_program(&service.setup, PROGRAM_SCRIPT);
    wait_for_health(&service, "alive").await;
    assert_eq!(
        task_outcome(&service.send("tool", "hello").await),
        completed_outcome("tool hello\n")
    );
}

#[tokio::test]
async fn queued_work_waits_for_its_program_over_a_restart() {
    let gated_agent =
        gated_agent_config("tool", "max_concurrent = 1").replace("\"sh\"", "\"tool\"");
    let setup = Setup::with_server_settings(
        "watch = false",
        &[gated_agent, fake_agent_config("echo", "echo", "")].concat(),
    );
    let path = format!("{}:/usr/bin:/bin", setup.test_folder().display());
    let setup = setup.env("PATH", &path);
    let shell_script = "#!/bin/sh\nexec sh \"$@\"\n";
    install_program(&setup, shell_script);
    let mut service = setup.start().await;
    let (running_id, waiting_id) =
        (service.start_task("tool", "ann").await, service.start_task("tool", "bob").await);
    service.setup.wait_for_file_text("log", "start ann\n").await;
    service.kill9_with_holder().await;
    remove_program(&service.setup);
    service.start_again().await;
    wait_for_health(&service, "unavailable").await;
    let queued = agent_status_in_tree(&service, "tool").await["queued"].clone();
    assert_eq!(
        (&queued[0]["id"], &queued[0]["reason"]),
        (&json!(waiting_id), &json!("program-missing"))
    );
    assert_eq!(task_outcome(&service.wait_for_task_end("tool", &running_id).await).0, "failed");
    install_program(&service.setup, shell_script);
    service.setup.open_gate("go");
    assert_eq!(
        task_outcome(&service.wait_for_task_end("tool", &waiting_id).await),
        completed_outcome("bob\n")
    );
}

#[tokio::test]
async fn a_queue_timeout_without_a_program_is_agent_unavailable() {
    let gated_agent = gated_agent_config("tool", "max_concurrent = 1\nqueue_timeout = 4")
        .replace("\"sh\"", "\"tool\"");
    let setup = Setup::with_server_settings("watch = false", &gated_agent);
    let path = format!("{}:/usr/bin:/bin", setup.test_folder().display());
    let setup = setup.env("PATH", &path);
    install_program(&setup, "#!/bin/sh\nexec sh \"$@\"\n");
    let service = setup.start().await;
    let (_, waiting_id) =
        (service.start_task("tool", "ann").await, service.start_task("tool", "bob").await);
    service.setup.wait_for_file_text("log", "start ann\n").await;
    remove_program(&service.setup);
    let task = service.wait_for_task_end("tool", &waiting_id).await;
    assert!(task.to_string().contains(UNAVAILABLE_REASON), "{task}");
    assert_eq!(service.fetch_execution(&waiting_id).await["error"]["code"], "agent-unavailable");
    service.setup.open_gate("go");
}

#[tokio::test]
async fn a_schedule_runs_once_its_program_is_installed() {
    let service = setup_with_missing_program("").start().await;
    let arguments =
        ["schedule", "create", "s", "--agent", "tool", "--cron", "0 0 1 1 *", "--input", "hello"];
    assert_eq!(service.run_command(&arguments, "").await.exit_code, Some(0));
    _ = service.run_command(&["schedule", "run", "s"], "").await;
    install_program(&service.setup, PROGRAM_SCRIPT);
    poll_until("the run of the schedule", async || {
        let list = service.get("/api/v1/executions?schedule=s").await.json();
        (list["executions"][0]["outcome"] == "completed").then_some(())
    })
    .await;
}

#[tokio::test]
async fn strict_checks_and_the_doctor_fail_for_a_missing_program() {
    let setup = setup_with_missing_program("");
    let config = setup.write_config().display().to_string();
    let check_args = |options: &'static [&'static str]| [&["check", &config][..], options].concat();
    let output = setup.run_command(&check_args(&[]), "").await;
    assert_eq!(output.exit_code, Some(0), "{output:?}");
    assert!(output.stderr.contains("no such program on the PATH"), "{output:?}");
    assert!(output.stdout.contains("1 unavailable"), "{output:?}");
    assert_eq!(setup.run_command(&check_args(&["--strict"]), "").await.exit_code, Some(4));
    assert_eq!(setup.run_command(&["doctor", &config], "").await.exit_code, Some(1));
    install_program(&setup, PROGRAM_SCRIPT);
    assert_eq!(setup.run_command(&check_args(&["--strict"]), "").await.exit_code, Some(0));
    assert_eq!(setup.run_command(&["doctor", &config], "").await.exit_code, Some(0));
}

#[tokio::test]
async fn an_enabled_agent_is_checked_for_its_program() {
    let setup = setup_with_missing_program("");
    install_program(&setup, PROGRAM_SCRIPT);
    let service = setup.start().await;
    service.run_command(&["agents", "disable", "tool"], "").await;
    remove_program(&service.setup);
    let enable_output = service.run_command(&["agents", "enable", "tool"], "").await;
    assert_eq!(enable_output.exit_code, Some(0), "{enable_output:?}");
    wait_for_health(&service, "unavailable").await;
    assert_eq!(task_id(&service.send("echo", "x").await).len(), 36);
}
