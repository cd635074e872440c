//! What a program takes of the machine, with all that it started, is told while it runs and at its
//! end.

use serde_json::Value;

use crate::harness::client::{completed, id, outcome};
use crate::harness::wait::until;
use crate::harness::{Setup, json_rpc_call, message};
use crate::streams::{open_stream, read_to};

/// What it starts holds 16 MiB and burns a processor until it may end.
const AGENT: &str = r#"
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

const MEMORY: u64 = 16 << 20;

fn number(usage: &Value, name: &str) -> u64 {
    usage[name].as_u64().unwrap_or_else(|| panic!("no {name}: {usage}"))
}

/// Whether what the child takes is seen: the program itself takes next to nothing.
fn is_whole(usage: &Value) -> bool {
    let burns = number(usage, "cpuMs") >= 200 && number(usage, "processes") >= 2;
    burns && number(usage, "memoryBytes") > MEMORY && number(usage, "peakMemoryBytes") > MEMORY
}

#[tokio::test]
async fn usage_of_a_process_tree_is_reported_until_its_end() {
    let service = Setup::new(AGENT).start().await;
    let mut stream =
        open_stream(&service, "burns", "0.3", &json_rpc_call("message/stream", &message("go")))
            .await;
    let shown = until("a reading of all of it", async || {
        let usage = service.agent("burns").await.pointer("/running/0/usage").cloned();
        usage.filter(is_whole)
    });
    let shown = shown.await;
    assert!(number(&shown, "readBytes") > 0 && number(&shown, "writtenBytes") == 0, "{shown}");
    service.setup.open("go");

    let told = read_to(&mut stream, "the end").await;
    let results: Vec<Value> = told
        .lines()
        .filter_map(|line| line.strip_prefix("data: "))
        .map(|line| serde_json::from_str::<Value>(line).unwrap()["result"].clone())
        .collect();
    let beats: Vec<_> =
        results.iter().filter(|told| told["metadata"]["usage"] != Value::Null).collect();
    assert!(beats.iter().any(|told| is_whole(&told["metadata"]["usage"])), "{told}");
    assert!(beats.iter().all(|told| told["status"]["message"] == Value::Null), "{told}");

    let task = service.ended("burns", &id(&results[0])).await;
    assert_eq!(outcome(&task), completed("over\n"));
    let record = service.execution(&id(&task)).await;
    let facts: Vec<_> =
        record["events"].as_array().unwrap().iter().map(|event| &event["data"]).collect();
    let beats: Vec<_> = facts.iter().filter(|fact| fact["kind"] == "heartbeat").collect();
    assert!(beats.is_sorted_by_key(|beat| number(beat, "peakMemoryBytes")), "{beats:?}");
    assert!(beats.iter().any(|beat| is_whole(beat)), "{beats:?}");
    let spent: Vec<_> = facts.iter().filter(|fact| fact["kind"] == "resource-usage").collect();
    assert_eq!(spent.len(), 1, "{record}");
    assert!(number(spent[0], "cpuMs") >= number(&shown, "cpuMs"), "{spent:?} after {shown}");
    assert!(number(spent[0], "peakMemoryBytes") > MEMORY, "{spent:?}");
}
