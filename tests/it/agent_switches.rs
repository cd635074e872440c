//! Agents are switched on and off while the service runs.

use std::fs;

use serde_json::{Value, json};

use crate::harness::client::{completed_outcome, task_id, task_outcome, task_state};
use crate::harness::{
    ServiceProcess, Setup, fake_agent_config, gated_agent_config, message_params, poll_until,
};

fn parse_json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {text}"))
}

/// Asks first, and answers with what it is told.
const QUESTION_AGENT: &str = r#"
[agents.asks]
command = "sh"
args = ["-c", '''
read word
if [ "$word" = ask ]; then echo '{"type":"input_required","text":"what?"}'; exit 0; fi
printf '{"type":"text","text":"%s"}\n' "$word"
''']
output = "events"
"#;

#[tokio::test]
async fn a_disabled_agent_refuses_work_and_finishes_its_own() {
    let service = ServiceProcess::start(&gated_agent_config("one", "max_concurrent = 1")).await;
    let (running_task, waiting_task) =
        (service.start_task("one", "ann").await, service.start_task("one", "bob").await);
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let disabled = service.run_command(&["agents", "disable", "one"], "").await;
    assert_eq!(disabled.exit_code, Some(0), "{disabled:?}");
    let refused = service.run_command(&["send", "one", "cat"], "").await;
    assert!(
        refused.stderr.contains("agent-disabled") && refused.exit_code == Some(1),
        "{refused:?}"
    );
    let list = service.run_command(&["agents", "list"], "").await.stdout;
    assert!(list.contains("disabled (switched)") && list.contains("1/1"), "{list}");
    service.setup.open_gate("go");
    for (task, word) in [(running_task, "ann\n"), (waiting_task, "bob\n")] {
        assert_eq!(
            task_outcome(&service.wait_for_task_end("one", &task).await),
            completed_outcome(word)
        );
    }
    let enabled = service.run_command(&["agents", "enable", "one"], "").await;
    assert_eq!(enabled.stdout, "agent one is enabled, as configured\n");
    assert_eq!(service.run_command(&["send", "one", "cat"], "").await.stdout, "cat\n");
}

#[tokio::test]
async fn a_disabled_agent_accepts_the_answer_to_its_question() {
    let service = ServiceProcess::start(QUESTION_AGENT).await;
    let open_task = service.send("asks", "ask").await;
    assert_eq!(task_state(&open_task), "input-required");
    service.run_command(&["agents", "disable", "asks"], "").await;
    let mut answer = message_params("blue");
    answer["message"]["taskId"] = json!(task_id(&open_task));
    let task = service.expect_result("asks", "message/send", &answer).await;
    assert_eq!(task_outcome(&task), completed_outcome("blue"));
    let (_, code) = service.expect_refusal("asks", "message/send", message_params("more")).await;
    assert_eq!(code, "agent-disabled");
}

#[tokio::test]
async fn a_disabled_agent_stays_disabled_over_reloads_and_restarts() {
    let mut service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    service.run_command(&["agents", "disable", "echo"], "").await;
    let reload = service.run_command(&["reload"], "").await;
    assert_eq!(reload.exit_code, Some(0), "{reload:?}");
    assert_eq!(service.fetch_agent_status("echo").await["enabled"], json!(false));
    for is_graceful in [false, true] {
        if is_graceful {
            service.send_sigterm();
            assert!(service.wait_for_exit().await.success());
        } else {
            service.kill9().await;
        }
        service.start_again().await;
        let status = service.get("/status").await.json();
        assert_eq!(status["configuration"]["switched"], json!(["echo"]), "{status}");
        assert_eq!(service.fetch_agent_status("echo").await["enabled"], json!(false));
    }
    service.run_command(&["agents", "enable", "echo"], "").await;
    service.kill9().await;
    service.start_again().await;
    assert_eq!(service.fetch_agent_status("echo").await["enabled"], json!(true));
    let status = service.get("/status").await.json();
    assert_eq!(status["configuration"]["switched"], json!([]), "{status}");
}

#[tokio::test]
async fn a_disabled_agent_is_enabled_once_its_program_exists() {
    let agent = "[agents.late]\nenabled = false\ncommand = 'HERE/late'\n";
    let service =
        ServiceProcess::start(&format!("{agent}{}", fake_agent_config("echo", "echo", ""))).await;
    let refused = service.run_command(&["agents", "enable", "late"], "").await;
    assert_eq!(refused.exit_code, Some(4), "{refused:?}");
    for expected in ["configuration-rejected", "agents.late.command", "does not exist"] {
        assert!(refused.stderr.contains(expected), "{expected}: {refused:?}");
    }
    assert_eq!(service.fetch_agent_status("late").await["enabled"], json!(false));
    let path = service.setup.test_folder().join("late");
    fs::write(&path, "#!/bin/sh\nexec cat\n").unwrap();
    use std::os::unix::fs::PermissionsExt;
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    let enabled =
        parse_json(&service.run_command(&["agents", "enable", "late", "--json"], "").await.stdout);
    assert_eq!(enabled, json!({"id": "late", "enabled": true, "configured": false}));
    assert_eq!(service.run_command(&["send", "late", "here"], "").await.stdout, "here");
}

#[tokio::test]
async fn only_an_administrator_enables_and_disables_an_agent() {
    let agents =
        [fake_agent_config("echo", "echo", ""), fake_agent_config("other", "echo", "")].concat();
    let service = ServiceProcess::start(&agents).await;
    let create_client = async |name: &str, scopes: &str| {
        let args = ["token", "create", name, "--scope", scopes, "--agent", "echo", "--json"];
        let output = service.run_command(&args, "").await;
        service.client_with_token(parse_json(&output.stdout)["token"].as_str().unwrap())
    };
    let (reader, admin) =
        (create_client("ann", "read,run").await, create_client("bob", "read,admin").await);
    let disable_path = |agent: &str| format!("/api/v1/agents/{agent}/disable");
    assert_eq!(reader.post(&disable_path("echo"), "").await.status, 403);
    assert_eq!(admin.post(&disable_path("other"), "").await.status, 403);
    assert_eq!(admin.post(&disable_path("nobody"), "").await.status, 404);
    assert_eq!(service.post(&disable_path("other"), "").await.status, 200);
    assert_eq!(admin.post(&disable_path("echo"), "").await.status, 200);
    let schedule_args = ["--agent", "other", "--cron", "@every 9h", "--input", "x"];
    service.run_command(&["agents", "enable", "other"], "").await;
    let create_schedule = [&["schedule", "create", "nightly"][..], &schedule_args].concat();
    assert_eq!(service.run_command(&create_schedule, "").await.exit_code, Some(0));
    service.run_command(&["agents", "disable", "other"], "").await;
    let visible_status = reader.get("/status").await.json();
    assert_eq!(visible_status["configuration"]["switched"], json!(["echo"]), "{visible_status}");
    assert_eq!(visible_status["scheduler"].get("due"), None, "{visible_status}");
    let full_status = service.get("/status").await.json();
    assert_eq!(full_status["configuration"]["switched"], json!(["echo", "other"]), "{full_status}");
    assert_eq!(full_status["scheduler"]["due"][0]["schedule"], "nightly", "{full_status}");
}

#[tokio::test]
async fn unreadable_agent_states_disable_all_agents() {
    let mut service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    service.send_sigterm();
    service.wait_for_exit().await;
    let file = service.setup.test_folder().join("state/algonius/switches.json");
    fs::write(&file, "{\"echo\": fal").unwrap();
    let config = service.setup.write_config().display().to_string();
    let args = ["serve", "--config", &config, "--listen", "127.0.0.1:0"];
    let refused = service.setup.run_command(&args, "").await;
    assert_eq!(refused.exit_code, Some(1), "{refused:?}");
    assert!(refused.stderr.contains("`switches.json` in `data_dir`"), "{refused:?}");
    fs::remove_file(&file).unwrap();
    service.start_again().await;
}

#[tokio::test]
async fn agents_test_reports_exactly_the_failure() {
    let agents = [
        fake_agent_config("echo", "echo", ""),
        fake_agent_config("exit", "exit 7", ""),
        QUESTION_AGENT.to_owned(),
    ]
    .concat();
    let service = Setup::new(&agents).start().await;
    let passed = service.run_command(&["agents", "test", "echo", "--input", "ping"], "").await;
    assert_eq!(passed.exit_code, Some(0), "{passed:?}");
    assert!(passed.stdout.contains("answer    ping\ngood      agent echo works"), "{passed:?}");
    let list =
        service.run_command(&["tasks", "list", "--trigger", "probe", "--json"], "").await.stdout;
    assert_eq!(parse_json(&list)["executions"][0]["trigger"], "probe", "{list}");
    let failed = service.run_command(&["agents", "test", "exit"], "").await;
    assert_eq!(failed.exit_code, Some(5), "{failed:?}");
    for expected in ["hint: ", "(agent-exit, agent)", "page: `algonius explain agent-exit`"] {
        assert!(failed.stderr.contains(expected), "{expected}: {failed:?}");
    }
    let question_output =
        service.run_command(&["agents", "test", "asks", "--input", "ask", "--json"], "").await;
    assert_eq!(question_output.exit_code, Some(5), "{question_output:?}");
    assert_eq!(parse_json(&question_output.stdout)["asksAQuestion"], json!(true));
    let task = parse_json(&question_output.stdout)["task"].as_str().unwrap().to_owned();
    let is_over =
        async || (service.fetch_execution(&task).await["outcome"] == "cancelled").then_some(());
    poll_until("its end", is_over).await;
}
