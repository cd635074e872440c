//! What a program takes of the machine, with all that it started, is told while it runs and at its
//! end.

use serde_json::Value;

use crate::harness::client::{completed_outcome, task_id, task_outcome};
use crate::harness::wait::poll_until;
use crate::harness::{Setup, json_rpc_request_body, message_params};
use crate::streams::{open_stream, read_until_text_or_end};

/// What it starts holds 16 MiB and burns a processor until it may end.
const BURNING_AGENT: &str = r#"
heartbeat_min = 0.01
[agents.burns]
heartbeat = 0.1
command = "sh"
args = ["-c", '''
(
  s=12345678
  for i in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21; do s=$s$s; done
  until [ -e HERE/go ]; do :; done
) &
wait
echo over
''']
"#;

const MIN_MEMORY_BYTES: u64 = 16 << 20;

fn usage_number(usage: &Value, name: &str) -> u64 {
    usage[name].as_u64().unwrap_or_else(|| panic!("no {name}: {usage}"))
}

/// Whether what the child takes is seen: the program itself takes next to nothing.
fn includes_child(usage: &Value) -> bool {
    let has_busy_child =
        usage_number(usage, "cpuMs") >= 200 && usage_number(usage, "processes") >= 2;
    has_busy_child
        && usage_number(usage, "memoryBytes") > MIN_MEMORY_BYTES
        && usage_number(usage, "peakMemoryBytes") > MIN_MEMORY_BYTES
}

#[tokio::test]
async fn usage_of_a_process_tree_is_reported_until_its_end() {
    let service = Setup::new(BURNING_AGENT).start().await;
    let mut stream = open_stream(
        &service,
        "burns",
        "0.3",
        &json_rpc_request_body("message/stream", &message_params("go")),
    )
    .await;
    let usage = poll_until("a reading of all of it", async || {
        let usage = service.fetch_agent_status("burns").await.pointer("/running/0/usage").cloned();
        usage.filter(includes_child)
    });
    let usage = usage.await;
    assert!(
        usage_number(&usage, "readBytes") > 0 && usage_number(&usage, "writtenBytes") == 0,
        "{usage}"
    );
    service.setup.open_gate("go");

    let stream_text = read_until_text_or_end(&mut stream, "the end").await;
    let results: Vec<Value> = stream_text
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["result"].clone())
        .collect();
    let heartbeats: Vec<_> =
        results.iter().filter(|result| result["metadata"]["usage"] != Value::Null).collect();
    assert!(
        heartbeats.iter().any(|result| includes_child(&result["metadata"]["usage"])),
        "{stream_text}"
    );
    assert!(
        heartbeats.iter().all(|result| result["status"]["message"] == Value::Null),
        "{stream_text}"
    );

    let task = service.wait_for_task_end("burns", &task_id(&results[0])).await;
    assert_eq!(task_outcome(&task), completed_outcome("over\n"));
    let record = service.fetch_execution(&task_id(&task)).await;
    let events: Vec<_> =
        record["events"].as_array().unwrap().iter().map(|event| &event["data"]).collect();
    let heartbeats: Vec<_> = events.iter().filter(|event| event["kind"] == "heartbeat").collect();
    assert!(
        heartbeats.is_sorted_by_key(|heartbeat| usage_number(heartbeat, "peakMemoryBytes")),
        "{heartbeats:?}"
    );
    assert!(heartbeats.iter().any(|heartbeat| includes_child(heartbeat)), "{heartbeats:?}");
    let resource_usage_events: Vec<_> =
        events.iter().filter(|event| event["kind"] == "resource-usage").collect();
    assert_eq!(resource_usage_events.len(), 1, "{record}");
    assert!(
        usage_number(resource_usage_events[0], "cpuMs") >= usage_number(&usage, "cpuMs"),
        "{resource_usage_events:?} after {usage}"
    );
    assert!(
        usage_number(resource_usage_events[0], "peakMemoryBytes") > MIN_MEMORY_BYTES,
        "{resource_usage_events:?}"
    );
}
