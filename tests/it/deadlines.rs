//! An agent that falls silent is warned of and ended; one that shows that it lives is not.

use serde_json::{Value, json};

use crate::harness::client::{completed_outcome, failed_outcome, task_id, task_outcome};
use crate::harness::processes::pids_with_env;
use crate::harness::{ServiceProcess, Setup, json_rpc_request_body, message_params};
use crate::streams::{open_stream, read_until_text_or_end};

/// Tells something, then is silent: for ever, or for a moment again and again.
const SILENT_AGENT: &str = r#"
idle_timeout_min = 0.1
[agents.speaks]
idle_timeout = 1.5
command = "sh"
args = ["-c", '''
read word
echo "hm" >&2
if [ "$word" = hang ]; then sleep 600; fi
for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do sleep 0.1; echo . >&2; done
echo "$word"
''']
"#;

fn deadline_warnings(record: &Value) -> Vec<&Value> {
    let events = record["events"].as_array().unwrap().iter().map(|event| &event["data"]);
    events.filter(|event| event["kind"] == "deadline-approaching").collect()
}

#[tokio::test]
async fn a_silent_agent_is_reported_to_followers_and_ended() {
    let service = Setup::new(SILENT_AGENT).start().await;
    let body = json_rpc_request_body("message/stream", &message_params("hang"));
    let mut stream = open_stream(&service, "speaks", "0.3", &body).await;
    let stream_text = read_until_text_or_end(&mut stream, "the end").await;
    let event_texts = stream_text.lines().filter_map(|line| line.strip_prefix("data: "));
    let results: Vec<_> = event_texts
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["result"].clone())
        .collect();
    let warning = results
        .iter()
        .find(|result| result.pointer("/status/message/metadata/limit") == Some(&json!("idle")));
    let status = &warning.unwrap_or_else(|| panic!("no warning: {stream_text}"))["status"];
    assert_eq!(status["state"], "working");
    let expected = "it is silent, and will be ended once it has been for 1.5 s";
    assert_eq!(status["message"]["parts"][0]["text"], expected);

    let task = service.fetch_task("speaks", &task_id(&results[0])).await;
    assert_eq!(task_outcome(&task), failed_outcome("idle-timeout"));
    let reason = task["status"]["message"]["parts"][0]["text"].as_str().unwrap();
    assert!(reason.starts_with("it wrote nothing within 1.5 s"), "{reason}");
    let record = service.fetch_execution(&task_id(&task)).await;
    let warnings = deadline_warnings(&record);
    assert_eq!((warnings.len(), &warnings[0]["limit"]), (1, &json!("idle")));
    assert_eq!((&record["state"], &record["attempt"]), (&json!("timeout"), &json!(1)));
    assert_eq!(
        pids_with_env(&format!("ALGONIUS_EXECUTION_ID={}", task_id(&task))),
        Vec::<i32>::new()
    );
}

#[tokio::test]
async fn output_of_an_agent_extends_its_idle_timeout() {
    let service = ServiceProcess::start(SILENT_AGENT).await;
    let task = service.send("speaks", "patience").await;
    assert_eq!(task_outcome(&task), completed_outcome("patience\n"));
    let record = service.fetch_execution(&task_id(&task)).await;
    assert_eq!(deadline_warnings(&record), Vec::<&Value>::new());
    assert!(record["durationUs"].as_i64().is_some_and(|duration| duration > 1_500_000), "{record}");
}
