//! Kills of the service during the run of a cognitive agent. The test checks the steps, the notes, and a file that an
//! MCP server writes.

use std::fs;
use std::time::Duration;

use serde_json::{Value, json};

use super::seeded_rng::rng_and_rounds_or_default;
use crate::harness::Setup;
use crate::harness::client::{completed_outcome, task_id, task_outcome};
use crate::harness::mock_model::{
    MockModel, final_answer_turn, prompt_with_turns, turn_with_calls,
};

/// Agent whose calls to `remember` and `store__append` must not be repeated.
const AGENT: &str = r#"
[models.local]
base_url = "MODEL"
requests_per_minute = 100000
[tools.now]
source = "handler"
handler = { kind = "clock" }
[tools.remember]
source = "handler"
handler = { kind = "notes", operation = "add" }
idempotent = false
[tools.recall]
source = "handler"
handler = { kind = "notes", operation = "search" }
[mcp.servers.store]
command = "FAKE"
args = ["mcp"]
sandbox = { writable = ["HERE"] }
[agents.thinker]
kind = "cognitive"
layer = "perceptual"
model_id = "local/mock-1"
tools = ["now", "remember", "recall", "store__append"]
"#;
/// Latest moment of a kill, in milliseconds after the request: a run takes about 600 ms.
const MAX_KILL_DELAY_MS: u64 = 700;

/// Returns a turn whose reply takes 100 ms, so that kills hit replies and commits alike.
fn delayed_turn(mut turn: Value) -> Value {
    turn["delay"] = json!(0.1);
    turn
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_repeat_and_lose_no_step() {
    let (mut rng, rounds) = rng_and_rounds_or_default(45);
    let kill_count = rounds / 5;
    let model = MockModel::start(&[]);
    let mut service = Setup::new(&AGENT.replace("MODEL", &model.base_url())).start().await;
    let file = service.setup.test_folder().join("lines");
    let mut total_unknown_call_count = 0;
    for number in 0..kill_count {
        let note = format!("note{number}");
        let append_args = json!({"path": file, "text": note});
        let turns = [
            turn_with_calls(&[("now", json!({})), ("remember", json!({"text": note}))]),
            turn_with_calls(&[("now", json!({}))]),
            turn_with_calls(&[("remember", json!({"text": note})), ("store__append", append_args)]),
            final_answer_turn(&note),
        ]
        .map(delayed_turn);
        let run_id = service.start_task("thinker", &prompt_with_turns("go", &turns)).await;
        // The moment of the kill is the subject of the test.
        tokio::time::sleep(Duration::from_millis(rng.random_below(MAX_KILL_DELAY_MS))).await;
        service.kill9().await;
        service.start_again().await;
        let task = service.wait_for_task_end("thinker", &run_id).await;
        assert_eq!(task_outcome(&task), completed_outcome(&note), "{task}");
        let list = service.get(&format!("/api/v1/executions/{run_id}/steps")).await.json();
        // R-138: A run of a cognitive agent that a crash interrupts continues after its last recorded step, and no call of a tool that is not idempotent is sent twice
        let unknown_call_count = check_steps_and_count_unknown(&list);
        assert!(unknown_call_count <= 1, "one kill interrupts one call: {list}");
        total_unknown_call_count += unknown_call_count;
        check_notes(
            &service.send("thinker", &search_prompt(&note)).await,
            &service,
            unknown_call_count,
        )
        .await;
        let lines = fs::read_to_string(&file).unwrap_or_default();
        let line_count = lines.lines().filter(|line| **line == note).count();
        assert!(
            (1 - unknown_call_count..=1).contains(&line_count),
            "{unknown_call_count} unknown, {line_count} lines: {list}"
        );
        let execution = service.fetch_execution(&run_id).await;
        assert_eq!(execution["usage"]["turns"], 4, "each reply is charged once: {execution}");
    }
    println!("{total_unknown_call_count} calls with an unknown outcome");
    let unfinished = service.get("/api/v1/executions?unfinished=true").await.json();
    assert_eq!(unfinished["executions"].as_array().unwrap().len(), 0, "{unfinished}");
}

/// Checks that the steps are those of a run without a kill, except for a call with an unknown outcome. Returns the
/// number of such calls.
fn check_steps_and_count_unknown(list: &Value) -> usize {
    let steps = list["steps"].as_array().unwrap();
    let expected = [
        (1, "now"),
        (1, "remember"),
        (1, "now"),
        (1, "remember"),
        (2, "now"),
        (2, "now"),
        (3, "remember"),
        (3, "store__append"),
        (3, "remember"),
        (3, "store__append"),
        (4, "final_answer"),
        (4, "final_answer"),
    ];
    let seen: Vec<_> =
        steps.iter().map(|step| (step["turn"].clone(), step["tool"].clone())).collect();
    assert_eq!(json!(seen), json!(expected), "{list}");
    for (step, number) in steps.iter().zip(1..) {
        assert_eq!(step["number"], number, "{list}");
    }
    let is_unknown = |step: &&Value| step["state"] == "unknown";
    let unknown_steps: Vec<_> = steps.iter().filter(is_unknown).collect();
    let may_be_unknown =
        |step: &&Value| step["tool"] == "remember" || step["tool"] == "store__append";
    assert!(unknown_steps.iter().all(may_be_unknown), "{list}");
    let errors = steps.iter().filter(|step| step["stepType"] == "error");
    assert_eq!(errors.count(), unknown_steps.len(), "{list}");
    unknown_steps.len()
}

/// Returns a request that searches notes.
fn search_prompt(note: &str) -> String {
    prompt_with_turns(
        "find",
        &[turn_with_calls(&[("recall", json!({"query": note}))]), final_answer_turn("ok")],
    )
}

/// Checks that each of the two calls stored its note once; one with an unknown outcome may have stored none.
async fn check_notes(
    search_task: &Value,
    service: &crate::harness::ServiceProcess,
    unknown_call_count: usize,
) {
    let list =
        service.get(&format!("/api/v1/executions/{}/steps", task_id(search_task))).await.json();
    let notes: Vec<Value> =
        serde_json::from_str(list["steps"][1]["text"].as_str().unwrap()).unwrap();
    assert!(
        (2 - unknown_call_count..=2).contains(&notes.len()),
        "{unknown_call_count} unknown, {notes:?}"
    );
}

/// Tool whose program writes the id of each call into a file, which is the judge of the test.
const PROGRAM_TOOL: &str = r#"
[models.local]
base_url = "MODEL"
requests_per_minute = 100000
[tools.append]
source = "handler"
description = "Writes a line."
[tools.append.handler]
kind = "command"
command = "sh"
args = ["-c", "echo $ALGONIUS_CALL_ID >> calls; sleep 0.05; echo written"]
working_dir = "HERE/log"
sandbox = { writable = ["HERE/log"] }
[agents.writer]
kind = "cognitive"
layer = "perceptual"
model_id = "local/mock-1"
tools = ["append"]
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn kills_repeat_no_program_of_a_tool() {
    let (mut rng, rounds) = rng_and_rounds_or_default(45);
    let kill_count = rounds / 5;
    let model = MockModel::start(&[]);
    let setup = Setup::new(&PROGRAM_TOOL.replace("MODEL", &model.base_url()));
    let log_folder = setup.test_folder().join("log");
    std::fs::create_dir(&log_folder).unwrap();
    let mut service = setup.start().await;
    for _ in 0..kill_count {
        let append_turn = || turn_with_calls(&[("append", json!({})), ("append", json!({}))]);
        let turns = [append_turn(), append_turn(), final_answer_turn("done")];
        let run_id = service.start_task("writer", &prompt_with_turns("go", &turns)).await;
        // The moment of the kill is the subject of the test.
        tokio::time::sleep(Duration::from_millis(rng.random_below(MAX_KILL_DELAY_MS))).await;
        service.kill9().await;
        service.start_again().await;
        let task = service.wait_for_task_end("writer", &run_id).await;
        assert_eq!(task_outcome(&task), completed_outcome("done"), "{task}");
        let list = service.get(&format!("/api/v1/executions/{run_id}/steps")).await.json();
        let steps = list["steps"].as_array().unwrap();
        let call_log = std::fs::read_to_string(log_folder.join("calls")).unwrap();
        let mut unknown_call_count = 0;
        for step in steps.iter().filter(|step| step["tool"] == "append" && step["call"].is_null()) {
            let id = format!("{run_id}-{}", step["number"]);
            let count = call_log.lines().filter(|line| *line == id).count();
            match step["state"].as_str() {
                Some("done") => assert_eq!(count, 1, "{id}: {list}"),
                Some("unknown") if count <= 1 => unknown_call_count += 1,
                _ => panic!("{id} has {count} lines: {list}"),
            }
        }
        assert!(unknown_call_count <= 1, "one kill interrupts one call: {list}");
    }
}
