//! The command line, as people and scripts use it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use algonius_skips::skip_without;
use serde_json::{Value, json};

use crate::harness::{
    ServiceProcess, Setup, fake_agent_config, gated_agent_config, poll_until, within_deadline,
};

fn parse_json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|_| panic!("no JSON: {text}"))
}

#[tokio::test]
async fn check_reports_every_error_and_exits_with_4() {
    let broken_config = "[server]\nlistn = 'x'\n[agents.one]\ncommand = 'no-such-program'\ntimeout = 1\n\
         acess = 'read-write'\n[agents.two]\ncommand = 'cat'\ninput = 'json-rpc'\n";
    let setup = Setup::from_config_text(broken_config);
    let file = setup.write_config().display().to_string();
    let output = setup.run_command(&["check", &file], "").await;
    assert_eq!((output.exit_code, output.stdout.as_str()), (Some(4), ""));
    for expected in [
        ":2:",
        "listn",
        "listen",
        ":4:",
        "no-such-program",
        ":5:",
        "60",
        ":6:",
        "access",
        ":7:",
        "json_rpc",
    ] {
        assert!(output.stderr.contains(expected), "{expected} is not in {}", output.stderr);
    }
    let refused = setup.run_command(&["serve", "--config", &file], "").await;
    assert_eq!(refused.exit_code, Some(4), "{}", refused.stderr);
}

#[tokio::test]
async fn check_confirms_a_valid_file_and_warns_of_prompts() {
    let agents = [
        fake_agent_config("echo", "echo", ""),
        "[agents.claude]\ncommand = 'HERE/claude'\n".to_owned(),
    ];
    let setup = Setup::new(&agents.concat()).with_executable("claude", "#!/bin/sh\n");
    let file = setup.write_config().display().to_string();
    let output = setup.run_command(&["check", &file], "").await;
    let mut lines = output.stdout.lines();
    assert_eq!((output.exit_code, lines.next()), (Some(0), Some("good: 2 agents (echo, claude)")));
    assert!(lines.next().unwrap().starts_with("  echo: boundary "), "{}", output.stdout);
    assert!(output.stderr.contains("warning") && output.stderr.contains("-p"), "{}", output.stderr);
    let output = setup.run_command(&["check", "--json", &file], "").await;
    assert_eq!(parse_json(&output.stdout)["agents"], json!(["echo", "claude"]));
    let shipped = setup.run_command(&["check"], "").await;
    assert_eq!(shipped.exit_code, Some(0), "{}", shipped.stderr);
}

#[tokio::test]
async fn check_prints_the_json_schema() {
    let setup = Setup::from_config_text("");
    let output = setup.run_command(&["check", "--schema"], "").await;
    assert_eq!((output.exit_code, output.stderr.as_str()), (Some(0), ""));
    let schema_file = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/schema.json");
    assert_eq!(output.stdout, fs::read_to_string(schema_file).unwrap());
}

#[tokio::test]
async fn send_prints_the_answer_and_exits_by_the_outcome() {
    let agents =
        [fake_agent_config("echo", "echo", ""), fake_agent_config("exit", "exit 7", "")].concat();
    let service = ServiceProcess::start(&agents).await;
    for (args, input, code, expected_output) in [
        (vec!["send", "echo", "hello"], "", 0, "hello"),
        (vec!["send", "echo", "-"], "from a pipe\n", 0, "from a pipe\n"),
        (vec!["send", "echo"], "from a pipe", 0, "from a pipe"),
        (vec!["send", "exit", "hello"], "", 5, ""),
        (vec!["send", "nobody", "hello"], "", 3, ""),
        (vec!["send", "--token-file", "none", "echo", "hello"], "", 2, ""),
        (vec!["send", "--token-file", "supervisor.toml", "echo", "hello"], "", 2, ""),
        (vec!["send", "--url", "http://127.0.0.1:1", "echo", "hello"], "", 1, ""),
        (vec!["send", "--url", "ftp://nowhere", "echo", "hello"], "", 4, ""),
        (vec!["send", "--nonsense"], "", 4, ""),
        (vec!["nonsense"], "", 4, ""),
    ] {
        let output = service.run_command(&args, input).await;
        assert_eq!(
            (output.exit_code, output.stdout.as_str()),
            (Some(code), expected_output),
            "{output:?}"
        );
        assert_eq!(output.stderr.is_empty(), code == 0, "{output:?}");
    }
    let failure_text = service.run_command(&["send", "exit", "x"], "").await.stderr;
    assert!(
        failure_text.contains("agent-exit") && failure_text.contains("hint:"),
        "{failure_text}"
    );
}

#[tokio::test]
async fn send_accepts_parameters_a_message_id_and_a_context() {
    let agent = fake_agent_config(
        "args",
        "args {{param.word}}",
        "input = 'stdin'\nparams.word = 'usual'\noverrides.params = ['word']",
    );
    let service = ServiceProcess::start(&agent).await;
    let default_output = service.run_command(&["send", "args", "x"], "").await;
    assert_eq!(default_output.stdout, "\"usual\"\n");
    let args = [
        "send",
        "--json",
        "--no-stream",
        "--param",
        "word=a=b",
        "--message-id",
        "m-1",
        "--context",
        "c-1",
        "args",
        "x",
    ];
    let first = parse_json(&service.run_command(&args, "").await.stdout);
    assert_eq!(first["artifacts"][0]["parts"][0]["text"], "\"a=b\"\n");
    assert_eq!((&first["contextId"], &first["kind"]), (&json!("c-1"), &json!("task")));
    let second = parse_json(&service.run_command(&args, "").await.stdout);
    assert_eq!(second["id"], first["id"]);
}

#[tokio::test]
async fn tasks_are_listed_shown_and_cancelled() {
    let service = ServiceProcess::start(&gated_agent_config("one", "access = 'read-write'")).await;
    let send_output = service.run_command(&["send", "--no-wait", "one", "ann"], "").await;
    let id = send_output.stdout.trim().to_owned();
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let is_running =
        async || (service.fetch_execution(&id).await["state"] == "running").then_some(());
    poll_until("it runs", is_running).await;
    let list = service.run_command(&["tasks", "list", "--unfinished"], "").await.stdout;
    assert!(list.contains("TASK") && list.contains(&id) && list.contains("running"), "{list}");
    let list = service.run_command(&["tasks", "list", "--json"], "").await.stdout;
    assert_eq!(parse_json(&list)["executions"][0]["id"], json!(id));
    let details = service.run_command(&["tasks", "show", &id], "").await.stdout;
    assert!(
        details.contains("state    running (attempt 1)") && details.contains("ann"),
        "{details}"
    );
    let cancelled = service.run_command(&["tasks", "cancel", &id], "").await;
    assert_eq!(
        (cancelled.exit_code, cancelled.stdout.trim()),
        (Some(0), format!("task {id} is cancelled").as_str())
    );
    let second = service.run_command(&["tasks", "cancel", &id], "").await;
    assert_eq!(second.exit_code, Some(1), "{second:?}");
    let details = service.run_command(&["tasks", "show", "--json", &id], "").await.stdout;
    assert_eq!(parse_json(&details)["outcome"], "cancelled");
    let unknown = service.run_command(&["tasks", "show", "nothing"], "").await;
    assert_eq!(unknown.exit_code, Some(3), "{unknown:?}");
}

#[tokio::test]
async fn status_shows_the_supervision_tree_as_text_and_json() {
    let agents =
        [fake_agent_config("echo", "echo", ""), gated_agent_config("one", "access = 'read-write'")]
            .concat();
    let service = ServiceProcess::start(&agents).await;
    service.start_task("one", "ann").await;
    service.start_task("one", "bob").await;
    service.setup.wait_for_file_text("log", "start ann\n").await;
    let status = service.run_command(&["status"], "").await.stdout;
    for expected in ["root", "gateway", "echo", "one", "running 1/1, queue 1/10", "pid ", "place 1"]
    {
        assert!(status.contains(expected), "{expected} is not in {status}");
    }
    let json = parse_json(&service.run_command(&["status", "--json"], "").await.stdout);
    assert_eq!(json["agents"][1]["queued"][0]["position"], 1);
}

#[tokio::test]
async fn errors_are_json_with_the_json_option() {
    let service = ServiceProcess::start(&fake_agent_config("exit", "exit 7", "")).await;
    let output = service.run_command(&["send", "--json", "nobody", "x"], "").await;
    assert_eq!((output.exit_code, &parse_json(&output.stderr)["exitCode"]), (Some(3), &json!(3)));
    let output = service.run_command(&["send", "--json", "--no-stream", "exit", "x"], "").await;
    assert_eq!(output.exit_code, Some(5));
    assert_eq!(parse_json(&output.stdout)["status"]["state"], "failed");
    assert_eq!(parse_json(&output.stderr)["exitCode"], 5);
}

#[tokio::test]
async fn init_writes_the_file_that_serve_uses() {
    let setup = Setup::from_config_text("");
    let folder = setup.test_folder().join("mine");
    let init_args = ["init", folder.to_str().unwrap()];
    let output = setup.run_command(&init_args, "").await;
    assert_eq!(output.exit_code, Some(0), "{}", output.stderr);
    let mode = |file: &Path| fs::metadata(file).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&setup.token_file()), 0o600);
    let token = fs::read_to_string(setup.token_file()).unwrap();
    assert!(token.trim().len() >= 32 && output.stdout.contains("supervisor.toml"));
    let second = setup.run_command(&init_args, "").await;
    assert_eq!(second.exit_code, Some(1), "{second:?}");
    assert_eq!(setup.run_command(&["init", "--force", init_args[1]], "").await.exit_code, Some(0));
    let service = setup.with_config_file(&folder.join("supervisor.toml")).start().await;
    assert_eq!(service.token, token.trim());
    assert_eq!(service.run_command(&["send", "echo", "hello"], "").await.stdout, "hello");
    let data_folder = service.setup.test_folder().join("state/algonius");
    let files = fs::read_dir(data_folder).unwrap().flatten().map(|entry| entry.path());
    let accessible_files: Vec<_> = files.filter(|file| mode(file) & 0o077 != 0).collect();
    assert!(accessible_files.is_empty(), "others may read {accessible_files:?}");
}

#[tokio::test]
async fn help_names_every_command_and_exit_code() {
    let setup = Setup::from_config_text("");
    let help = setup.run_command(&["--help"], "").await;
    assert_eq!((help.exit_code, help.stderr.as_str()), (Some(0), ""));
    for command in [
        "init",
        "serve",
        "check",
        "doctor",
        "agents",
        "send",
        "status",
        "tasks",
        "service",
        "completions",
        "man",
        "Exit codes:",
    ] {
        assert!(help.stdout.contains(command), "{command} is not in {}", help.stdout);
    }
    for code in 0..=5 {
        assert!(help.stdout.contains(&format!("\n  {code}  ")), "{code}: {}", help.stdout);
    }
    let version = setup.run_command(&["--version"], "").await;
    assert_eq!(version.stdout.trim(), concat!("algonius ", env!("CARGO_PKG_VERSION")));
}

#[tokio::test]
async fn the_request_of_the_banner_works_as_printed() {
    let service = ServiceProcess::start(&fake_agent_config("echo", "echo", "")).await;
    let stderr = service.stderr_text();
    let request = stderr.split("or from any program:\n").nth(1).unwrap();
    let script = request.lines().take(4).collect::<Vec<_>>().join("\n");
    let run_shell = async |script: &str| {
        let output = tokio::process::Command::new("sh").args(["-c", script]).output();
        String::from_utf8(within_deadline("the shell", output).await.unwrap().stdout).unwrap()
    };
    if run_shell("command -v curl").await.is_empty() {
        skip_without("curl");
        return;
    }
    let answer = run_shell(&script).await;
    assert_eq!(parse_json(&answer)["result"]["artifacts"][0]["parts"][0]["text"], "hello");
}

#[tokio::test]
async fn redact_masks_a_text_without_a_service() {
    let setup = Setup::from_config_text("");
    fs::write(setup.test_folder().join("secrets"), "correct-horse-battery\n").unwrap();
    let file = setup.test_folder().join("secrets").display().to_string();
    let args = ["redact", "--secret-file", &file];
    let redacted = setup.run_command(&args, "say correct-horse-battery now\nand go").await;
    assert_eq!(redacted.exit_code, Some(0), "{}", redacted.stderr);
    assert!(redacted.stdout.starts_with("say ") && redacted.stdout.ends_with(" now\nand go"));
    assert!(!redacted.stdout.contains("horse"), "{}", redacted.stdout);
    let lines = "{\"say\": \"correct-horse-battery\"}\n{\"n\": 1}\n";
    let redacted = setup.run_command(&[&args[..], &["--ndjson"]].concat(), lines).await;
    let documents: Vec<_> = redacted.stdout.lines().map(parse_json).collect();
    assert_eq!((documents.len(), &documents[1]), (2, &json!({"n": 1})));
    assert!(!redacted.stdout.contains("horse"), "{}", redacted.stdout);
    let missing = setup.run_command(&["redact", "--secret-file", "no-such-file"], "").await;
    assert_eq!((missing.exit_code, missing.stdout.as_str()), (Some(1), ""));
}
