//! Input of a person is understood: parts of ids, and names that are nearly right.
//! Failures suggest the next step.

use serde_json::{Value, json};

use crate::harness::client::task_id;
use crate::harness::{ServiceProcess, Setup, fake_agent_config};

fn agents_config() -> String {
    let fails = "[agents.fails]\ncommand = 'sh'\n\
        args = ['-c', 'for n in 1 2 3 4 5 6 7; do echo \"line $n\" >&2; done; exit 3']\n";
    [fake_agent_config("echo", "echo", ""), fails.to_owned()].concat()
}

#[tokio::test]
async fn a_failed_command_shows_exit_code_and_last_lines() {
    let service = ServiceProcess::start(&agents_config()).await;
    for args in [
        &["send", "fails", "hello"][..],
        &["send", "--no-stream", "fails", "hello"],
        &["agents", "test", "fails"],
    ] {
        let output = service.run_command(args, "").await;
        let stderr = &output.stderr;
        assert_eq!(output.exit_code, Some(5), "{output:?}");
        for line in ["agent-exit", "\n  exit code: 3", "\n  standard error: line 7", "line 3"] {
            assert!(stderr.contains(line), "{args:?} lacks {line}: {stderr}");
        }
        assert!(!stderr.contains("line 2"), "{args:?} shows more than the end: {stderr}");
        let id = stderr.split("more: algonius tasks show ").nth(1).unwrap().trim();
        let task_output = service.run_command(&["tasks", "show", id], "").await;
        assert!(
            task_output.exit_code == Some(0) && task_output.stdout.contains("line 1"),
            "{task_output:?}"
        );
    }
}

/// The end of an id, from this character on.
fn id_suffix(id: &str, from: usize) -> &str {
    id.get(from..).unwrap()
}

fn id_prefix(id: &str, to: usize) -> &str {
    id.get(..to).unwrap()
}

#[tokio::test]
async fn a_task_is_found_by_the_start_or_end_of_its_id() {
    let service = ServiceProcess::start(&agents_config()).await;
    let (first_id, second_id) =
        (task_id(&service.send("echo", "one").await), task_id(&service.send("echo", "two").await));
    let (id_without_hyphens, uppercase_id) = (first_id.replace('-', ""), first_id.to_uppercase());
    for partial_id in [
        &first_id,
        id_suffix(&first_id, 28),
        id_suffix(&first_id, 24),
        id_prefix(&first_id, 35),
        id_suffix(&id_without_hyphens, 22),
        id_suffix(&uppercase_id, 28),
    ] {
        let output = service.run_command(&["tasks", "show", partial_id], "").await;
        assert!(
            output.stdout.starts_with(&format!("task     {first_id}\n")),
            "{partial_id}: {output:?}"
        );
    }
    let watch_output =
        service.run_command(&["tasks", "watch", id_suffix(&second_id, 28)], "").await;
    assert_eq!((watch_output.exit_code, watch_output.stdout.as_str()), (Some(0), "two"));
    // Ids of the same moment have the same start.
    let ambiguous_output =
        service.run_command(&["tasks", "show", id_prefix(&first_id, 6)], "").await;
    assert_eq!(ambiguous_output.exit_code, Some(4), "{ambiguous_output:?}");
    for line in [&first_id, &second_id, "one", "two"] {
        assert!(ambiguous_output.stderr.contains(line), "{line}: {ambiguous_output:?}");
    }
    for unknown_id in ["abc", "ffffffff", "nonsense", "../status", "%"] {
        let output = service.run_command(&["tasks", "show", unknown_id], "").await;
        assert!(
            output.exit_code == Some(3) && output.stderr.contains("execution-unknown"),
            "{output:?}"
        );
    }
    let delete_output =
        service.run_command(&["tasks", "delete", id_suffix(&first_id, 28)], "").await;
    assert_ne!(delete_output.exit_code, Some(0), "a part of an id removed a task");
    let refused_response = service.get("/api/v1/executions?id=xyz1").await;
    assert_eq!(
        (refused_response.status, refused_response.error_code().as_str()),
        (400, "invalid-params")
    );
}

#[tokio::test]
async fn a_partial_id_finds_no_task_of_others() {
    let tokens = "[tokens.ann]\ntoken_env = 'ANN'\n[tokens.bob]\ntoken_env = 'BOB'\n";
    let token = |name: &str| format!("{name}-{}", "x".repeat(40));
    let setup = Setup::new(&[agents_config(), tokens.to_owned()].concat());
    let service = setup.env("ANN", &token("ann")).env("BOB", &token("bob")).start().await;
    let task = task_id(&service.client_with_token(&token("ann")).send("echo", "hers").await);
    let path = format!("/api/v1/executions?summary=true&id={}", id_suffix(&task, 24));
    let ann_list = service.client_with_token(&token("ann")).get(&path).await.json();
    assert_eq!(ann_list["executions"][0]["summary"], json!({"caller": "ann", "request": "hers"}));
    let bob_list = service.client_with_token(&token("bob")).get(&path).await.json();
    assert_eq!(bob_list["executions"], json!([]));
}

#[tokio::test]
async fn a_task_list_shows_owner_and_input() {
    let service = ServiceProcess::start(&agents_config()).await;
    let long = format!("\n\n  please do {}\nmore", "x".repeat(200));
    service.send("echo", &long).await;
    let list = service.run_command(&["tasks", "list"], "").await.stdout;
    assert!(list.contains("CALLER") && list.contains("operator"), "{list}");
    assert!(list.contains("please do xxx") && list.contains('…'), "{list}");
    let json: Value =
        serde_json::from_str(&service.run_command(&["tasks", "list", "--json"], "").await.stdout)
            .unwrap();
    let summary = &json["executions"][0]["summary"];
    assert_eq!(summary["caller"], "operator");
    assert_eq!(summary["request"].as_str().unwrap().chars().count(), 120);
    let list_without_summary = service.get("/api/v1/executions").await.json();
    assert!(
        list_without_summary["executions"][0].get("summary").is_none(),
        "{list_without_summary}"
    );
}

#[tokio::test]
async fn an_unknown_name_suggests_the_nearest() {
    let service = ServiceProcess::start(&agents_config()).await;
    for (args, suggestion, code) in [
        (&["send", "ehco", "x"][..], "did you mean `echo`?", 3),
        (&["send", "--no-stream", "fail", "x"], "did you mean `fails`?", 3),
        (&["agents", "show", "ecko"], "did you mean `echo`?", 3),
        (&["agents", "test", "ecko"], "did you mean `echo`?", 3),
        (&["agents", "disable", "fials"], "did you mean `fails`?", 3),
        (&["tasks", "list", "--agent", "ecko"], "did you mean `echo`?", 0),
        (&["logs", "--agent", "ecko"], "did you mean `echo`?", 0),
        (&["tasks", "list", "--state", "complete"], "did you mean `completed`?", 4),
        (&["tasks", "list", "--outcome", "failled"], "did you mean `failed`?", 4),
        (&["tasks", "list", "--failure", "agent-exti"], "did you mean `agent-exit`?", 4),
        (&["tasks", "list", "--class", "agnet"], "did you mean `agent`?", 4),
        (&["tasks", "export", "--trigger", "schedul"], "did you mean `schedule`?", 4),
    ] {
        let output = service.run_command(args, "").await;
        assert!(output.stderr.contains(suggestion), "{args:?}: {output:?}");
        assert_eq!(output.exit_code, Some(code), "{args:?}: {output:?}");
    }
    let unrelated_name_output = service.run_command(&["send", "zzzzzzzz", "x"], "").await;
    assert!(!unrelated_name_output.stderr.contains("did you mean"), "{unrelated_name_output:?}");
}

#[tokio::test]
async fn check_with_json_prints_a_list_of_diagnostics() {
    let text = "[server]\nlistn = 'x'\n[agents.one]\ncommand = 'no-such-program'\n[agents.two]\nname = 'x'\n";
    let setup = Setup::from_config_text(text);
    let file = setup.write_config().display().to_string();
    let output = setup.run_command(&["check", "--json", &file], "").await;
    let report: Value = serde_json::from_str(&output.stdout).unwrap();
    let list = report["diagnostics"].as_array().unwrap();
    let diagnostic_fields: Vec<_> = list
        .iter()
        .map(|it| {
            [&it["severity"], &it["code"], &it["line"], &it["column"], &it["key"]].map(Value::clone)
        })
        .collect();
    let expected = [
        json!(["error", "unknown-key", 2, 1, "server.listn"]),
        json!(["warning", "program-missing", 4, 11, "agents.one.command"]),
        json!(["error", "missing-key", 5, 1, "agents.two.command"]),
    ];
    assert_eq!(
        diagnostic_fields.iter().map(|it| json!(it)).collect::<Vec<_>>(),
        expected,
        "{report}"
    );
    assert_eq!(
        (output.exit_code, list[0]["hint"].as_str()),
        (Some(4), Some("did you mean `listen`?"))
    );
    assert!(
        list.iter().all(|it| it["file"] == json!(file) && it["message"].is_string()),
        "{report}"
    );
    let broken_setup = Setup::from_config_text("[agents.one\n");
    let file = broken_setup.write_config().display().to_string();
    let report = broken_setup.run_command(&["check", "--json", &file], "").await.stdout;
    assert_eq!(serde_json::from_str::<Value>(&report).unwrap()["diagnostics"][0]["code"], "syntax");
    let absent_file_report =
        broken_setup.run_command(&["check", "--json", "/nowhere/x.toml"], "").await.stdout;
    assert_eq!(
        serde_json::from_str::<Value>(&absent_file_report).unwrap()["diagnostics"][0]["code"],
        "file-unreadable"
    );
    let setup = Setup::new("[agents.one]\ncommand = 'no-such-program'\n");
    let file = setup.write_config().display().to_string();
    let strict_output = setup.run_command(&["check", "--json", "--strict", &file], "").await;
    let report: Value = serde_json::from_str(&strict_output.stdout).unwrap();
    let first_diagnostic = &report["diagnostics"][0];
    assert_eq!(
        (strict_output.exit_code, &first_diagnostic["severity"], &first_diagnostic["code"]),
        (Some(4), &json!("error"), &json!("program-missing"))
    );
}
