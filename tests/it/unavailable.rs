//! An agent whose program is not installed: the service starts, the other agents work, and the service finds
//! the program after its installation.

use std::fs;

use serde_json::{Value, json};

use crate::harness::client::{completed, failed, id, outcome};
use crate::harness::{Service, Setup, fake, gated, message, poll_until};

const TOOL: &str = "#!/bin/sh\nread word\necho \"tool $word\"\n";

/// An agent whose program is searched in the folder of the test, and one that works.
fn setup(settings: &str) -> Setup {
    let tool = format!("[agents.tool]\ncommand = 'tool'\n{settings}\n");
    let setup = Setup::server("watch = false", &[tool, fake("echo", "echo", "")].concat());
    let path = format!("{}:/usr/bin:/bin", setup.test_folder().display());
    setup.env("PATH", &path)
}

/// Installs the program as a package manager does: at once and whole.
fn install(setup: &Setup, text: &str) {
    use std::os::unix::fs::PermissionsExt;
    let temporary_file = setup.test_folder().join("tool.new");
    fs::write(&temporary_file, text).unwrap();
    fs::set_permissions(&temporary_file, fs::Permissions::from_mode(0o755)).unwrap();
    fs::rename(temporary_file, setup.test_folder().join("tool")).unwrap();
}

fn remove(setup: &Setup) {
    fs::remove_file(setup.test_folder().join("tool")).unwrap();
}

async fn status(service: &Service, agent: &str) -> Value {
    let tree = service.get("/status").await.json();
    let agents = tree["agents"].as_array().unwrap().clone();
    agents.into_iter().find(|it| it["id"] == agent).unwrap()
}

/// Waits until the service reports this health of the agent.
async fn health(service: &Service, expected: &str) {
    poll_until(expected, async || {
        (status(service, "tool").await["health"] == expected).then_some(())
    })
    .await;
}

async fn card(service: &Service) -> String {
    let card = service.get("/agents/tool/.well-known/agent-card.json").await.json();
    card["description"].as_str().unwrap().to_owned()
}

const UNAVAILABLE_REASON: &str = "agent `tool` is unavailable: its program `tool` is not installed";

#[tokio::test]
async fn one_missing_program_does_not_affect_other_agents() {
    let service = setup("").start().await;
    assert!(
        service.stderr_text().contains("tool (unavailable: its program `tool` is not installed)"),
        "{}",
        service.stderr_text()
    );
    assert_eq!(outcome(&service.send("echo", "hello").await), completed("hello"));
    let answer = service.call("tool", "message/send", &message("hello")).await;
    let error = &answer.json()["error"];
    assert_eq!(
        (answer.status, &error["code"], &error["message"]),
        (503, &json!(-32067), &json!(UNAVAILABLE_REASON))
    );
    assert_eq!(answer.code(), "agent-unavailable");
    let agent = status(&service, "tool").await;
    assert_eq!(
        (&agent["health"], &agent["unavailable"]),
        (&json!("unavailable"), &json!(UNAVAILABLE_REASON))
    );
    assert!(card(&service).await.contains("unavailable"), "{}", card(&service).await);
    assert_eq!(service.get("/ready").await.status, 200, "the others can take work");
    for words in [&["agents", "list"][..], &["status"]] {
        let output = service.command(words, "").await.stdout;
        assert!(output.contains("unavailable"), "{output}");
    }
    let sent = service.command(&["send", "tool", "hello"], "").await;
    assert!(sent.code == Some(1) && sent.stderr.contains(UNAVAILABLE_REASON), "{sent:?}");
}

#[tokio::test]
async fn an_installed_program_is_found_without_a_restart() {
    let service = setup("").start().await;
    health(&service, "unavailable").await;
    install(&service.setup, TOOL);
    health(&service, "alive").await;
    assert_eq!(outcome(&service.send("tool", "hello").await), completed("tool hello\n"));
    assert!(!card(&service).await.contains("unavailable"), "{}", card(&service).await);
    // It is replaced where it is, as updates do.
    install(&service.setup, &TOOL.replace("tool $", "new $"));
    assert_eq!(outcome(&service.send("tool", "hello").await), completed("new hello\n"));
}

#[tokio::test]
async fn a_removed_program_makes_its_agent_unavailable() {
    let setup = setup("");
    install(&setup, TOOL);
    let service = setup.start().await;
    assert_eq!(outcome(&service.send("tool", "hello").await), completed("tool hello\n"));
    remove(&service.setup);
    // Before the next check of the service, the attempt itself notices that the program is missing.
    let mut params = message("hello");
    params["configuration"] = json!({"blocking": true});
    let answer = service.call("tool", "message/send", &params).await.json();
    let error_text = answer["error"]["message"].as_str().map(str::to_owned);
    let error_text = error_text.unwrap_or_else(|| {
        assert_eq!(outcome(&answer["result"]).0, failed("agent-unavailable").0, "{answer}");
        answer["result"].to_string()
    });
    assert!(error_text.contains(UNAVAILABLE_REASON), "{error_text}");
    health(&service, "unavailable").await;
    let (_, code) = service.refused("tool", "message/send", message("hello")).await;
    assert_eq!(code, "agent-unavailable");
    install(&service.setup, TOOL);
    health(&service, "alive").await;
    assert_eq!(outcome(&service.send("tool", "hello").await), completed("tool hello\n"));
}

#[tokio::test]
async fn queued_work_waits_for_its_program_over_a_restart() {
    let gated = gated("tool", "max_concurrent = 1").replace("\"sh\"", "\"tool\"");
    let setup = Setup::server("watch = false", &[gated, fake("echo", "echo", "")].concat());
    let path = format!("{}:/usr/bin:/bin", setup.test_folder().display());
    let setup = setup.env("PATH", &path);
    let shell = "#!/bin/sh\nexec sh \"$@\"\n";
    install(&setup, shell);
    let mut service = setup.start().await;
    let (running, waiting) =
        (service.begin("tool", "ann").await, service.begin("tool", "bob").await);
    service.setup.wait_for_text("log", "start ann\n").await;
    service.kill9_both().await;
    remove(&service.setup);
    service.restart().await;
    health(&service, "unavailable").await;
    let queued = status(&service, "tool").await["queued"].clone();
    assert_eq!(
        (&queued[0]["id"], &queued[0]["reason"]),
        (&json!(waiting), &json!("program-missing"))
    );
    assert_eq!(outcome(&service.wait_for_end("tool", &running).await).0, "failed");
    install(&service.setup, shell);
    service.setup.open("go");
    assert_eq!(outcome(&service.wait_for_end("tool", &waiting).await), completed("bob\n"));
}

#[tokio::test]
async fn a_queue_timeout_without_a_program_is_agent_unavailable() {
    let gated =
        gated("tool", "max_concurrent = 1\nqueue_timeout = 4").replace("\"sh\"", "\"tool\"");
    let setup = Setup::server("watch = false", &gated);
    let path = format!("{}:/usr/bin:/bin", setup.test_folder().display());
    let setup = setup.env("PATH", &path);
    install(&setup, "#!/bin/sh\nexec sh \"$@\"\n");
    let service = setup.start().await;
    let (_, waiting) = (service.begin("tool", "ann").await, service.begin("tool", "bob").await);
    service.setup.wait_for_text("log", "start ann\n").await;
    remove(&service.setup);
    let task = service.wait_for_end("tool", &waiting).await;
    assert!(task.to_string().contains(UNAVAILABLE_REASON), "{task}");
    assert_eq!(service.execution(&waiting).await["error"]["code"], "agent-unavailable");
    service.setup.open("go");
}

#[tokio::test]
async fn a_schedule_runs_once_its_program_is_installed() {
    let service = setup("").start().await;
    let arguments =
        ["schedule", "create", "s", "--agent", "tool", "--cron", "0 0 1 1 *", "--input", "hello"];
    assert_eq!(service.command(&arguments, "").await.code, Some(0));
    _ = service.command(&["schedule", "run", "s"], "").await;
    install(&service.setup, TOOL);
    poll_until("the run of the schedule", async || {
        let list = service.get("/api/v1/executions?schedule=s").await.json();
        (list["executions"][0]["outcome"] == "completed").then_some(())
    })
    .await;
}

#[tokio::test]
async fn strict_checks_and_the_doctor_fail_for_a_missing_program() {
    let setup = setup("");
    let config = setup.write().display().to_string();
    let check = |options: &'static [&'static str]| [&["check", &config][..], options].concat();
    let output = setup.run(&check(&[]), "").await;
    assert_eq!(output.code, Some(0), "{output:?}");
    assert!(output.stderr.contains("no such program on the PATH"), "{output:?}");
    assert!(output.stdout.contains("1 unavailable"), "{output:?}");
    assert_eq!(setup.run(&check(&["--strict"]), "").await.code, Some(4));
    assert_eq!(setup.run(&["doctor", &config], "").await.code, Some(1));
    install(&setup, TOOL);
    assert_eq!(setup.run(&check(&["--strict"]), "").await.code, Some(0));
    assert_eq!(setup.run(&["doctor", &config], "").await.code, Some(0));
}

#[tokio::test]
async fn an_enabled_agent_is_checked_for_its_program() {
    let setup = setup("");
    install(&setup, TOOL);
    let service = setup.start().await;
    service.command(&["agents", "disable", "tool"], "").await;
    remove(&service.setup);
    let enabled = service.command(&["agents", "enable", "tool"], "").await;
    assert_eq!(enabled.code, Some(0), "{enabled:?}");
    health(&service, "unavailable").await;
    assert_eq!(id(&service.send("echo", "x").await).len(), 36);
}
