//! What goes wrong: each failure has its code, and only what may pass by itself is tried again.

use serde_json::Value;

use crate::harness::client::{
    completed_outcome, failed_outcome, task_id, task_outcome, task_state,
};
use crate::harness::disk::SmallDisk;
use crate::harness::processes::pids_with_env;
use crate::harness::{ServiceProcess, Setup, fake_agent_config, message_params, poll_until};

#[tokio::test]
async fn a_permanent_exit_code_fails_the_task_at_once() {
    let service = ServiceProcess::start(&fake_agent_config("exit", "exit 7 sorry", "")).await;
    let task = service.send("exit", "try").await;
    assert_eq!(task_outcome(&task), failed_outcome("agent-exit"));
    let message = &task["status"]["message"];
    assert_eq!(message["parts"][0]["text"], "exited with code 7");
    assert_eq!(
        (&message["metadata"]["category"], &message["role"]),
        (&"agent".into(), &"agent".into())
    );
    assert!(message["metadata"]["hint"].as_str().is_some_and(|hint| !hint.is_empty()));
    let record = service.fetch_execution(task["id"].as_str().unwrap()).await;
    assert_eq!((&record["exitCode"], &record["attempt"]), (&7.into(), &1.into()));
    assert_eq!((&record["stderr"], &record["state"]), (&"sorry".into(), &"failed".into()));
    assert_eq!(record["error"]["code"], "agent-exit");
}

#[tokio::test]
async fn a_program_removed_after_the_start_fails_without_a_retry() {
    // The program removes itself, so the next attempt starts before the service has looked for the program
    // again. If the service does look in between, the wait in the queue ends the same way.
    let agent = "[agents.tool]\nsandbox.writable = ['HERE']\ncommand = 'HERE/tool'\n\
        max_concurrent = 1\nqueue_timeout = 2\nretry.base = 0.01\n";
    let script = "#!/bin/sh\nread word\nsleep 0.5\nrm \"$0\"\n";
    let service = Setup::new(agent).with_executable("tool", script).start().await;
    let (_, second_id) =
        (service.start_task("tool", "one").await, service.start_task("tool", "two").await);
    let task = service.wait_for_task_end("tool", &second_id).await;
    assert_eq!(task_outcome(&task), failed_outcome("agent-unavailable"));
    assert_eq!(task["status"]["message"]["metadata"]["category"], "system");
    let record = service.fetch_execution(&second_id).await;
    assert_eq!((&record["attempt"], record.get("exitCode")), (&1.into(), None));
}

/// The codes of the attempts that failed, as the events of the record tell them.
fn failed_attempt_codes(record: &Value) -> Vec<String> {
    let events = record["events"].as_array().unwrap().iter().map(|event| &event["data"]);
    let failed = events.filter(|event| event["kind"] == "attempt-failed");
    failed.map(|event| event["code"].as_str().unwrap_or_default().to_owned()).collect()
}

#[tokio::test]
async fn a_transient_failure_is_retried_until_it_passes() {
    let service = ServiceProcess::start(&fake_agent_config(
        "flaky",
        "flaky HERE/runs 2 75",
        "sandbox.writable = ['HERE']\nretry.base = 0.01",
    ))
    .await;
    let task = service.send("flaky", "").await;
    assert_eq!(task_outcome(&task), completed_outcome("run 3"));
    let record = service.fetch_execution(task["id"].as_str().unwrap()).await;
    assert_eq!((&record["attempt"], &record["exitCode"]), (&3.into(), &0.into()));
    assert_eq!(failed_attempt_codes(&record), ["agent-transient", "agent-transient"]);
    assert_eq!(service.setup.read_file("runs"), "run\n".repeat(3));
}

#[tokio::test]
async fn a_persistent_transient_failure_has_four_attempts() {
    let agent = fake_agent_config(
        "flaky",
        "flaky HERE/runs 9 75",
        "sandbox.writable = ['HERE']\nretry.base = 0.01",
    );
    let service = ServiceProcess::start(&agent).await;
    let task = service.send("flaky", "").await;
    assert_eq!(task_outcome(&task), failed_outcome("agent-transient"));
    assert_eq!(task["status"]["message"]["metadata"]["category"], "transient");
    assert_eq!(service.setup.read_file("runs"), "run\n".repeat(4));
}

#[tokio::test]
async fn a_task_between_attempts_is_working_and_can_be_cancelled() {
    let agent = fake_agent_config(
        "flaky",
        "flaky HERE/runs 9 75",
        "sandbox.writable = ['HERE']\nretry.base = 60",
    );
    let service = ServiceProcess::start(&agent).await;
    let id = service.start_task("flaky", "").await;
    poll_until("the pause", async || {
        (service.fetch_execution(&id).await["phase"] == "failed").then_some(())
    })
    .await;
    assert_eq!(task_state(&service.fetch_task("flaky", &id).await), "working");
    assert_eq!(task_outcome(&service.cancel("flaky", &id).await).0, "canceled");
    assert_eq!(service.setup.read_file("runs"), "run\n");
}

#[tokio::test]
async fn success_criteria_come_from_the_configuration() {
    let agents = [
        fake_agent_config("empty", "sleep 0", "success.require_output = true"),
        fake_agent_config("words", "sleep 0 ERROR:lost", "success.fail_regex = '^ERROR'"),
        fake_agent_config("seven", "exit 7", "success.exit_codes = [7]"),
        fake_agent_config(
            "field",
            "sleep 0 {\"a\":{\"b\":\"c\"}}",
            "success.json_pointer = '/a/b'",
        ),
        fake_agent_config("absent", "sleep 0 {}", "success.json_pointer = '/a/b'"),
        fake_agent_config("told", "events text failed:agent:no-luck", "output = 'events'"),
    ];
    let service = ServiceProcess::start(&agents.concat()).await;
    for (agent, expected) in [
        ("empty", failed_outcome("empty-answer")),
        ("words", failed_outcome("failure-pattern")),
        ("seven", completed_outcome("")),
        ("field", completed_outcome("c")),
        ("absent", failed_outcome("answer-missing")),
        ("told", failed_outcome("agent-reported")),
    ] {
        assert_eq!(task_outcome(&service.send(agent, "").await), expected, "{agent}");
    }
}

#[tokio::test]
async fn a_disabled_agent_is_listed_and_refuses_work() {
    let agents =
        [fake_agent_config("off", "echo", "enabled = false"), fake_agent_config("on", "echo", "")]
            .concat();
    let service = ServiceProcess::start(&agents).await;
    let refused = service.expect_refusal("off", "message/send", message_params("x")).await;
    assert_eq!(refused, (-32052, "agent-disabled".to_owned()));
    let list = service.get("/api/v1/agents").await.json();
    assert_eq!(
        (&list["agents"][0]["id"], &list["agents"][0]["enabled"]),
        (&"off".into(), &false.into())
    );
}

#[tokio::test]
async fn input_over_the_limit_of_an_agent_is_refused() {
    let service =
        ServiceProcess::start(&fake_agent_config("echo", "echo", "max_input_bytes = 10")).await;
    assert_eq!(
        task_outcome(&service.send("echo", "0123456789").await),
        completed_outcome("0123456789")
    );
    let refused =
        service.expect_refusal("echo", "message/send", message_params("0123456789a")).await;
    assert_eq!(refused, (-32602, "input-too-large".to_owned()));
}

/// The program ignores SIGTERM, has a child that does too, and one in a session of its own.
#[tokio::test]
async fn a_timeout_kills_the_whole_process_tree() {
    let agent = r#"
[agents.stuck]
command = "sh"
args = ["-c", "FAKE daemonize; exec FAKE stubborn"]
timeout = 2
stop_grace = 0.1
"#;
    let service = ServiceProcess::start(agent).await;
    let id = service.start_task("stuck", "").await;
    let env_entry = format!("ALGONIUS_EXECUTION_ID={id}");
    poll_until("three processes", async || (pids_with_env(&env_entry).len() == 3).then_some(()))
        .await;
    assert_eq!(
        task_outcome(&service.wait_for_task_end("stuck", &id).await),
        failed_outcome("execution-timeout")
    );
    poll_until("their end", async || pids_with_env(&env_entry).is_empty().then_some(())).await;
    assert_eq!(service.fetch_execution(&id).await["outcome"], "timeout");
}

/// Three ways to want a person: to wait for one, to give up, and to look for a terminal.
const PROMPTING_AGENTS: &str = r#"
[agents.waits]
command = "sh"
args = ["-c", "echo begun; printf 'Overwrite? [y/N] '; sleep 600"]
prompt_silence = 0.2
[agents.gives-up]
command = "sh"
args = ["-c", "printf 'Password: ' >&2; read word || exit 75"]
retry.base = 0.01
[agents.terminal]
command = "setsid"
args = ["-w", "sh", "-c", "read word < /dev/tty"]
[agents.own]
command = "sh"
args = ["-c", "printf 'Quo vadis> '; sleep 600"]
interactive_prompts = ["> $"]
prompt_silence = 0.2
[agents.goes-on]
command = "sh"
args = ["-c", "printf 'Overwrite? [y/N] '; sleep 0.1; printf no"]
"#;

#[tokio::test]
async fn a_program_that_prompts_fails_without_a_retry() {
    let service = ServiceProcess::start(PROMPTING_AGENTS).await;
    for agent in ["waits", "gives-up", "terminal", "own"] {
        let task = service.send(agent, "").await;
        assert_eq!(task_outcome(&task), failed_outcome("interactive-input"), "{agent}");
        let message = &task["status"]["message"];
        let expected = "Interactive input required - execution not supported";
        assert_eq!(message["parts"][0]["text"], expected, "{agent}");
        assert_eq!(message["metadata"]["category"], "agent", "{agent}");
        let id = task["id"].as_str().unwrap();
        assert_eq!(service.fetch_execution(id).await["attempt"], 1, "{agent}");
        assert!(pids_with_env(&format!("ALGONIUS_EXECUTION_ID={id}")).is_empty(), "{agent}");
    }
    assert_eq!(
        task_outcome(&service.send("goes-on", "").await),
        completed_outcome("Overwrite? [y/N] no")
    );
}

#[tokio::test]
async fn an_execution_without_space_for_files_is_retried() {
    let settings =
        "command = 'cat'\nargs = ['{{ input_file }}']\ninput = 'file'\nretry.base = 0.5\n";
    let setup = Setup::new(&format!("[agents.reads]\n{settings}"));
    let Some(disk) = SmallDisk::mount_at_or_skip(setup.test_folder().join("run/algonius"), 1)
    else {
        return;
    };
    let (service, disk) = (setup.start().await, disk);
    disk.fill();
    let id = service.start_task("reads", "here it is").await;
    let failed_codes = poll_until("a failed attempt", async || {
        let failed_codes = failed_attempt_codes(&service.fetch_execution(&id).await);
        (!failed_codes.is_empty()).then_some(failed_codes)
    })
    .await;
    disk.remove_filler();
    assert_eq!(failed_codes[0], "no-resources");
    assert_eq!(
        task_outcome(&service.wait_for_task_end("reads", &id).await),
        completed_outcome("here it is")
    );
}

/// Whoever has to mend the work is told what is wrong with it.
#[tokio::test]
async fn the_output_of_a_failed_check_is_in_the_task_history() {
    let key = "k3y-0f-the-check-that-n0b0dy-sees";
    let agent = "[agents.a]\ncommand = 'cat'\nenv_from = { API_KEY = 'ACCOUNT' }\n[agents.a.success]\n\
                 check = ['sh', '-c', 'echo 2 of 7 fail; echo with $API_KEY >&2; exit 3']\n";
    let service = Setup::new(agent).env("ACCOUNT", key).start().await;
    let task = service.send("a", "work").await;
    assert_eq!(task_outcome(&task), failed_outcome("check-failed"));
    let output = service.run_command(&["tasks", "show", &task_id(&task)], "").await.stdout;
    let line = output
        .lines()
        .find(|line| line.contains("the check of the work failed: "))
        .unwrap_or_default();
    assert!(line.contains("2 of 7 fail") && line.contains("with "), "{output}");
    assert!(!output.contains(key), "{output}");
}
