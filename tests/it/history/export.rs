//! History as lines of JSON.

use std::fs;

use serde_json::{Value, json};

use super::token_like_text;
use crate::harness::client::task_id;
use crate::harness::{ServiceProcess, fake_agent_config};

fn json_lines(text: &str) -> Vec<Value> {
    let parse = |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
    text.lines().map(parse).collect()
}

#[tokio::test]
async fn an_export_has_one_redacted_line_per_execution() {
    let agents =
        [fake_agent_config("echo", "echo", ""), fake_agent_config("exit", "exit 7", "")].concat();
    let service = super::start_with_ann(&agents).await;
    let text_with_secret = format!("\"é\n\\{}", token_like_text());
    let first_id = task_id(&service.send("echo", &text_with_secret).await);
    let second_id = task_id(&service.send("exit", "x").await);
    let ann_id = task_id(&service.client_with_token(super::ANN_TOKEN).send("echo", "hers").await);
    let export = async |args: &[&str]| {
        let output = service.run_command(&[&["tasks", "export"], args].concat(), "").await;
        assert_eq!(output.exit_code, Some(0), "{output:?}");
        // R-92: Redacted text is redacted on every path to the history
        assert!(!output.stdout.contains(&token_like_text()), "{output:?}");
        json_lines(&output.stdout)
    };
    let records = export(&["--text"]).await;
    assert_eq!(
        records.iter().map(task_id).collect::<Vec<_>>(),
        [ann_id.clone(), second_id.clone(), first_id]
    );
    let event_count = |line: &Value| line["events"].as_array().unwrap().len() as u64;
    for record in &records {
        let detail = service.fetch_execution(&task_id(record)).await;
        assert_eq!(record["events"], detail["events"]);
        assert_eq!((&record["owner"], &record["state"]), (&detail["owner"], &detail["state"]));
        assert!(event_count(record) > 3);
    }
    let texts = records[2]["texts"].as_array().unwrap();
    let stdout = texts.iter().find(|text| text["channel"] == "stdout").unwrap();
    let text = stdout["text"].as_str().unwrap();
    assert!(text.starts_with("\"é\n\\"), "{text:?}");
    assert_eq!(stdout["bytes"].as_u64(), Some(text.len() as u64));
    let failed_only_export = export(&["--outcome", "failed"]).await;
    assert_eq!(failed_only_export.iter().map(task_id).collect::<Vec<_>>(), [second_id]);
    assert_eq!(failed_only_export[0]["texts"], Value::Null);
    assert_eq!(export(&["--limit", "1"]).await.len(), 1);
    assert_eq!(export(&["--agent", "nobody"]).await, Vec::<Value>::new());
    let file = service.setup.test_folder().join("ann");
    fs::write(&file, super::ANN_TOKEN).unwrap();
    let ann_export = export(&["--token-file", file.to_str().unwrap()]).await;
    assert_eq!(ann_export.iter().map(task_id).collect::<Vec<_>>(), [ann_id]);
    let invalid_filter_output =
        service.run_command(&["tasks", "export", "--outcome", "x"], "").await;
    assert_eq!(
        (invalid_filter_output.exit_code, invalid_filter_output.stdout.as_str()),
        (Some(4), "")
    );
}

/// Many bytes on standard output, which is the answer.
const LONG_ANSWER_AGENT: &str = r#"
[agents.long]
command = "sh"
args = ["-c", 'cat > /dev/null; yes "all work and no play" | head -c 24000000']
max_output_bytes = 30000000
"#;

/// The most memory of a service since it was asked last, in KiB.
fn peak_memory_kib(service: &ServiceProcess) -> u64 {
    let status = fs::read_to_string(format!("/proc/{}/status", service.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[tokio::test]
async fn an_export_of_a_large_history_takes_little_memory() {
    let mut service = ServiceProcess::start(LONG_ANSWER_AGENT).await;
    for _ in 0..4 {
        let request = json!({"agent": "long", "text": "x", "wait": 60}).to_string();
        let record = service.post("/api/v1/executions", &request).await.json();
        assert_eq!((&record["state"], &record["cut"]), (&json!("completed"), &json!(["output"])));
        assert!(record["output"].as_str().unwrap().len() <= 1 << 20);
    }
    service.kill9().await; // What it took to write them is not what is measured.
    service.start_again().await;
    let initial_kib = peak_memory_kib(&service);
    let output = service.run_command(&["tasks", "export", "--text"], "").await;
    let (final_kib, records) = (peak_memory_kib(&service), json_lines(&output.stdout));
    let lengths: Vec<_> = records
        .iter()
        .flat_map(|line| line["texts"].as_array().unwrap())
        .filter(|text| text["channel"] == "stdout")
        .map(|text| text["text"].as_str().unwrap().len())
        .collect();
    assert_eq!(lengths, [24_000_000; 4]);
    println!(
        "an export of 96 MB took {} KiB more than the {initial_kib} KiB before",
        final_kib - initial_kib
    );
    // R-91: An export uses little memory, however large the history is
    assert!(final_kib - initial_kib < 24 * 1024, "{initial_kib} KiB became {final_kib} KiB");
}
