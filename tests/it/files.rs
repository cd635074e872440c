//! Files that an agent makes and names: delivered from its own folders, and from nowhere else.

use std::fs;

use serde_json::{Value, json};

use crate::harness::client::{failed_outcome, task_id, task_outcome, task_state};
use crate::harness::{ServiceProcess, Setup};

/// Runs a script in `HERE/home` that tells in events what it made.
const MAKER_AGENT: &str = "
[agents.maker]
command = 'HERE/maker'
output = 'events'
working_dir = 'HERE/home'
access = 'read-write'
";

async fn start_maker(script: &str) -> ServiceProcess {
    Setup::new(MAKER_AGENT)
        .with_executable("maker", &format!("#!/bin/sh\n{script}\n"))
        .start()
        .await
}

/// What is noted in an execution's events about what was not delivered.
fn warnings(record: &Value) -> Vec<&str> {
    let events = record["events"].as_array().unwrap().iter().map(|event| &event["data"]);
    let warning_events = events.filter(|event| event["kind"] == "warning");
    warning_events.filter_map(|event| event["message"].as_str()).collect()
}

#[tokio::test]
async fn a_file_named_by_an_agent_is_in_the_task() {
    let script = r#"mkdir out; printf 'report %s' "$(cat)" > out/report.txt
        echo '{"type":"artifact","file":{"path":"out/report.txt","media_type":"text/plain"}}'"#;
    let service = start_maker(script).await;
    let task = service.send("maker", "on pears").await;
    let bytes = "cmVwb3J0IG9uIHBlYXJz"; // report on pears
    let file = json!({"bytes": bytes, "name": "report.txt", "mimeType": "text/plain"});
    let expected_part = json!({"kind": "file", "file": file});
    assert_eq!(
        (task_state(&task).as_str(), &task["artifacts"][0]["parts"][0]),
        ("completed", &expected_part)
    );
    let record = service.fetch_execution(&task_id(&task)).await;
    assert_eq!(warnings(&record), [""; 0]);
}

#[tokio::test]
async fn a_link_to_an_outside_file_is_not_delivered() {
    let script = r#"ln -s ../diary link.txt
        echo '{"type":"artifact","name":"stolen","file":{"path":"link.txt"}}'
        echo '{"type":"artifact","name":"stolen","file":{"path":"../diary"}}'
        echo '{"type":"text","text":"done"}'"#;
    let service = start_maker(script).await;
    let (secret_text, encoded_secret) =
        ("what nobody is to read", "d2hhdCBub2JvZHkgaXMgdG8gcmVhZA==");
    fs::write(service.setup.test_folder().join("diary"), secret_text).unwrap();
    let task = service.send("maker", "go").await;
    assert_eq!(task_outcome(&task), failed_outcome("output-unreadable"), "{task}");
    assert!(!task["artifacts"].to_string().contains("stolen"), "{task}");
    let record = service.fetch_execution(&task_id(&task)).await;
    let reason = "was not delivered: it is outside the folders of the agent and of the execution";
    let expected = [format!("the file `link.txt` {reason}"), format!("the file `diary` {reason}")];
    assert_eq!(warnings(&record), expected);
    let output = format!("{task} {record}");
    let test_folder = service.setup.test_folder().display().to_string();
    for hidden_text in [secret_text, encoded_secret, test_folder.as_str()] {
        assert!(!output.contains(hidden_text), "{hidden_text} is in {output}");
    }
    let ledger = service.setup.read_ledger_files();
    for hidden_text in [secret_text, encoded_secret] {
        assert!(
            !ledger.windows(hidden_text.len()).any(|window| window == hidden_text.as_bytes()),
            "{hidden_text}"
        );
    }
}
