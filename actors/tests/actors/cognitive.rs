//! Runs of cognitive agents, with ends, kills and cancellations.

mod stops;

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::agent::cognitive::ToolSpec;
use algonius_actors::model::agent::{AgentSpec, WorkerSpec};
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::content::{PartKind, StoredPart};
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::ports::completion::CompletionError;
use algonius_actors::ports::ledger::Ledger;
use algonius_actors::testing::cognition::{
    ScriptedReply, cognitive_spec, reply_with_calls, text_reply,
};
use algonius_actors::testing::{LedgerCallKind, TestTree};

const THINKER: &str = "thinker";

async fn tree_with_thinker() -> TestTree {
    TestTree::with_agents([cognitive_spec(THINKER, 5)]).await
}

/// Returns the agent with another tool `look`.
fn spec_with_changed_tool(change: impl FnOnce(&mut ToolSpec)) -> AgentSpec {
    let spec = cognitive_spec(THINKER, 5);
    let mut cognitive = spec.cognitive().map(|cognitive| (**cognitive).clone()).unwrap();
    change(Arc::make_mut(cognitive.tools.first_mut().unwrap()));
    AgentSpec { worker: WorkerSpec::Cognitive(Arc::new(cognitive)), ..spec }
}

pub(crate) fn tool_call_reply(tool: &str) -> ScriptedReply {
    reply_with_calls(&[(tool, "{}")])
}

pub(crate) fn final_answer_reply(text: &str) -> ScriptedReply {
    let arguments = serde_json::json!({"answer": text}).to_string();
    reply_with_calls(&[("final_answer", &arguments)])
}

/// Returns the steps of a run, each as `turn type tool: text`, after checking that their numbers have no gap.
async fn step_lines(tree: &TestTree, id: ExecutionId) -> Vec<String> {
    let mut steps = Vec::new();
    for event in tree.ledger.events(id, 0).await.unwrap_or_default() {
        let EventKind::RunStep { row, text: StoredPart { text, .. } } = event.data else {
            continue;
        };
        assert_eq!(row.number as usize, steps.len() + 1);
        let text = tree.ledger.text(id, text).await.unwrap_or_default();
        let tool = row.tool.map(|tool| format!(" {tool}")).unwrap_or_default();
        steps.push(format!("{} {}{tool}: {text}", row.turn, row.step_type.as_str()));
    }
    steps
}

async fn failure_message(tree: &TestTree, id: ExecutionId) -> String {
    tree.record(id).await.and_then(|record| record.failure).map(|it| it.message).unwrap_or_default()
}

#[tokio::test(start_paused = true)]
async fn each_turn_follows_the_results_of_the_turn_before() {
    let tree = tree_with_thinker().await;
    let two_calls_reply = reply_with_calls(&[("look", r#"{"at":"a"}"#), ("push", "{}")]);
    tree.driver.cognition.script_replies("go", [two_calls_reply, final_answer_reply("done")]);
    tree.driver.cognition.script_tool("look", Ok("a door"));
    tree.driver.cognition.script_tool("push", Err("it is locked"));
    let run = tree.submit_to(THINKER, "go").await.unwrap();
    assert_eq!((tree.wait_for_end(run).await.as_str(), tree.elapsed_seconds()), ("completed", 40));
    assert_eq!(tree.answer(run).await, "done");
    assert_eq!(
        step_lines(&tree, run).await,
        [
            r#"1 tool-call look: {"at":"a"}"#,
            "1 tool-call push: {}",
            "1 observation look: a door",
            "1 error push: it is locked",
            r#"2 tool-call final_answer: {"answer":"done"}"#,
            "2 observation final_answer: done",
        ]
    );
    assert_eq!(tree.driver.cognition.started_calls(), [r#"look {"at":"a"}"#, "push {}"]);
    let usage = tree.record(run).await.unwrap().spent;
    assert_eq!((usage.turns, usage.input_tokens, usage.output_tokens), (2, 200, 20));
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_without_an_answer_ends_at_its_last_turn() {
    let tree = tree_with_thinker().await;
    tree.driver.cognition.script_replies("go", [tool_call_reply("look")]);
    let run = tree.submit_to(THINKER, "go").await.unwrap();
    assert_eq!(tree.wait_for_end(run).await, "failed: steps-exhausted");
    assert_eq!(tree.driver.cognition.requests().len(), 5, "as many as the plan has");
    assert_eq!(failure_message(&tree, run).await, "the model gave no answer within 5 turns");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn three_unusable_replies_in_a_row_end_the_run() {
    let tree = tree_with_thinker().await;
    let unusable_reply = || Err(CompletionError::Unusable("is no chat completion".to_owned()));
    tree.driver.cognition.script_replies(
        "go",
        [text_reply(""), unusable_reply(), tool_call_reply("look"), unusable_reply()],
    );
    let run = tree.submit_to(THINKER, "go").await.unwrap();
    assert_eq!(tree.wait_for_end(run).await, "failed: steps-exhausted", "the usable one counts");
    tree.driver.cognition.script_replies("three", [unusable_reply()]);
    let run = tree.submit_to(THINKER, "three").await.unwrap();
    assert_eq!(tree.wait_for_end(run).await, "failed: model-unusable");
    assert_eq!(step_lines(&tree, run).await.len(), 3);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_failure_of_the_provider_is_that_of_the_run() {
    let tree = tree_with_thinker().await;
    let refused = Failure::new(Code::ModelRefused, "the provider refused it");
    tree.driver
        .cognition
        .script_replies("go", [tool_call_reply("look"), Err(CompletionError::Failed(refused))]);
    let run = tree.submit_to(THINKER, "go").await.unwrap();
    assert_eq!(tree.wait_for_end(run).await, "failed: model-refused");
    assert_eq!(step_lines(&tree, run).await.len(), 2, "the steps stay");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_deferred_run_continues_and_charges_each_reply_once() {
    let tree = tree_with_thinker().await;
    let rate_limited_reply =
        || Err(CompletionError::Failed(Failure::new(Code::AgentRateLimited, "limited")));
    tree.driver.cognition.script_replies(
        "go",
        [
            tool_call_reply("push"),
            rate_limited_reply(),
            tool_call_reply("look"),
            final_answer_reply("done"),
        ],
    );
    let run = tree.submit_to(THINKER, "go").await.unwrap();
    assert_eq!(tree.wait_for_end(run).await, "completed");
    assert_eq!(tree.driver.cognition.started_calls(), ["push {}", "look {}"]);
    assert_eq!(step_lines(&tree, run).await.len(), 6);
    let record = tree.record(run).await.unwrap();
    assert_eq!(
        (record.attempt_id.attempt, record.spent.turns, record.spent.input_tokens),
        (2, 3, 300)
    );
    tree.end().await;
}

/// Runs `go` with a call that may be repeated and one that must not, kills the service at a second, and starts it
/// again. Returns the steps, the effects and the number of requests.
async fn run_killed_at(second: u64) -> (Vec<String>, Vec<String>, usize) {
    let mut tree = tree_with_thinker().await;
    tree.driver.cognition.script_replies(
        "go",
        [tool_call_reply("look"), tool_call_reply("push"), final_answer_reply("done")],
    );
    let run = tree.submit_to(THINKER, "go").await.unwrap();
    tree.advance_to(second).await;
    tree.restart().await;
    assert_eq!(tree.wait_for_end(run).await, "completed", "killed at {second}");
    let result = (
        step_lines(&tree, run).await,
        tree.driver.cognition.started_calls(),
        tree.driver.cognition.requests().len(),
    );
    let usage = tree.record(run).await.unwrap().spent;
    assert_eq!(usage.turns, 3, "each reply is charged once");
    tree.end().await;
    result
}

#[tokio::test(start_paused = true)]
async fn a_killed_run_continues_with_its_next_step() {
    // Each reply and each call takes ten seconds. A kill hits reply 1, call 1, reply 2, call 2 and reply 3 in turn.
    let (uninterrupted_steps, _, _) = run_killed_at(0).await;
    for (second, call_count, request_count) in [(5, 2, 4), (15, 3, 3), (25, 2, 4), (45, 2, 4)] {
        let (steps, seen_calls, seen_request_count) = run_killed_at(second).await;
        assert_eq!(steps, uninterrupted_steps, "killed at {second}");
        assert_eq!(
            (seen_calls.len(), seen_request_count),
            (call_count, request_count),
            "killed at {second}"
        );
    }
    let (steps, calls, request_count) = run_killed_at(35).await;
    assert_eq!(calls, ["look {}", "push {}"], "the call that must not be repeated");
    assert_eq!(request_count, 3);
    let unknown = &steps[3];
    assert!(unknown.starts_with("2 error push: outcome unknown"), "{unknown}");
}

#[tokio::test(start_paused = true)]
async fn a_kill_at_each_second_leaves_one_whole_run() {
    for second in 0..52 {
        let (steps, calls, _) = run_killed_at(second).await;
        assert_eq!(steps.len(), 6, "killed at {second}: {steps:?}");
        let push_count = calls.iter().filter(|effect| effect.starts_with("push")).count();
        // R-138: A run of a cognitive agent that a crash interrupts continues after its last recorded step, and no
        // call of a tool that is not idempotent is sent twice
        assert_eq!(push_count, 1, "killed at {second}");
    }
}

#[tokio::test(start_paused = true)]
async fn no_call_is_sent_while_the_ledger_refuses_its_step() {
    let tree = tree_with_thinker().await;
    tree.driver
        .cognition
        .script_replies("go", [tool_call_reply("push"), final_answer_reply("done")]);
    let run = tree.submit_to(THINKER, "go").await.unwrap();
    tree.advance_to(5).await;
    tree.faults.fail_next(LedgerCallKind::AppendBatch, 30);
    tree.advance_to(30).await;
    // R-139: A step of a cognitive agent's run is in the ledger before the next one begins
    assert_eq!(tree.driver.cognition.started_calls(), [""; 0]);
    assert_eq!(tree.wait_for_end(run).await, "completed");
    assert_eq!(tree.driver.cognition.started_calls(), ["push {}"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_run_ends_its_call() {
    let tree = tree_with_thinker().await;
    tree.driver.cognition.script_replies("go", [tool_call_reply("push")]);
    let run = tree.submit_to(THINKER, "go").await.unwrap();
    tree.advance_to(12).await;
    tree.cancel(run).await.unwrap();
    assert_eq!(
        (tree.wait_for_end(run).await.as_str(), tree.elapsed_seconds()),
        ("cancelled: execution-cancelled", 12)
    );
    assert_eq!(tree.driver.cognition.unfinished_call_count(), 0, "a call is left");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_of_the_agent_s_actor_repeats_no_call() {
    let tree = tree_with_thinker().await;
    tree.driver
        .cognition
        .script_replies("go", [tool_call_reply("push"), final_answer_reply("done")]);
    let run = tree.submit_to(THINKER, "go").await.unwrap();
    tree.advance_to(15).await;
    tree.crash_agent(THINKER).await;
    assert_eq!(tree.wait_for_end(run).await, "completed");
    assert_eq!(tree.driver.cognition.started_calls(), ["push {}"]);
    let steps = step_lines(&tree, run).await;
    assert!(steps[1].starts_with("1 error push: outcome unknown"), "{steps:?}");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_needs_lost_text_does_not_continue() {
    let mut tree = tree_with_thinker().await;
    tree.driver
        .cognition
        .script_replies("go", [tool_call_reply("look"), final_answer_reply("done")]);
    let run = tree.submit_to(THINKER, "go").await.unwrap();
    tree.advance_to(15).await;
    tree.kill().await;
    tree.ledger.lose_raw_input(run).await;
    tree.start().await;
    assert_eq!(tree.wait_for_end(run).await, "failed: not-replayable");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_is_cancelled_while_the_ledger_refuses_its_steps() {
    let tree = tree_with_thinker().await;
    tree.driver
        .cognition
        .script_replies("go", [tool_call_reply("push"), final_answer_reply("done")]);
    let run = tree.submit_to(THINKER, "go").await.unwrap();
    tree.advance_to(5).await;
    tree.faults.fail_next(LedgerCallKind::AppendBatch, 30);
    tree.advance_to(15).await;
    tree.cancel(run).await.unwrap();
    assert_eq!(tree.wait_for_end(run).await, "cancelled: execution-cancelled");
    tree.advance_to(100).await;
    assert_eq!(tree.driver.cognition.started_calls(), [""; 0]);
    assert_eq!(step_lines(&tree, run).await, ["1 tool-call push: {}"]);
    let usage = tree.record(run).await.unwrap().spent;
    assert_eq!((usage.turns, usage.input_tokens), (1, 100), "the reply is charged");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_slow_tool_is_an_error_of_its_call() {
    let spec = spec_with_changed_tool(|tool| tool.timeout = Duration::from_secs(3));
    let tree = TestTree::with_agents([spec]).await;
    tree.driver
        .cognition
        .script_replies("go", [tool_call_reply("look"), final_answer_reply("done")]);
    let run = tree.submit_to(THINKER, "go").await.unwrap();
    assert_eq!(tree.wait_for_end(run).await, "completed");
    let steps = step_lines(&tree, run).await;
    assert!(steps[1].starts_with("1 error look: the tool gave no result within 3 s"), "{steps:?}");
    assert_eq!(tree.driver.cognition.unfinished_call_count(), 0, "a call is left");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_call_to_a_changed_tool_is_not_repeated() {
    let mut tree = tree_with_thinker().await;
    tree.driver
        .cognition
        .script_replies("go", [tool_call_reply("look"), final_answer_reply("done")]);
    let run = tree.submit_to(THINKER, "go").await.unwrap();
    tree.advance_to(15).await;
    tree.restart_with(|specs| {
        *specs = vec![spec_with_changed_tool(|tool| tool.idempotent = false)];
    })
    .await;
    assert_eq!(tree.wait_for_end(run).await, "completed");
    assert_eq!(tree.driver.cognition.started_calls(), ["look {}"]);
    let steps = step_lines(&tree, run).await;
    assert!(steps[1].starts_with("1 error look: outcome unknown"), "{steps:?}");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_run_keeps_the_limit_of_its_start() {
    let mut tree = TestTree::with_agents([cognitive_spec(THINKER, 2)]).await;
    tree.driver.cognition.script_replies("go", [tool_call_reply("look")]);
    let run = tree.submit_to(THINKER, "go").await.unwrap();
    tree.advance_to(5).await;
    tree.restart_with(|specs| *specs = vec![cognitive_spec(THINKER, 50)]).await;
    assert_eq!(tree.wait_for_end(run).await, "failed: steps-exhausted");
    assert_eq!(step_lines(&tree, run).await.len(), 4);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_answer_in_json_is_also_a_data_part() {
    let tree = tree_with_thinker().await;
    let object_answer_reply = reply_with_calls(&[("final_answer", r#"{"answer":{"a":[1]}}"#)]);
    tree.driver.cognition.script_replies("go", [object_answer_reply]);
    let run = tree.submit_to(THINKER, "go").await.unwrap();
    assert_eq!(tree.wait_for_end(run).await, "completed");
    let mut parts = Vec::new();
    for event in tree.ledger.events(run, 0).await.unwrap() {
        let EventKind::Artifact { pieces, .. } = event.data else { continue };
        for piece in pieces {
            parts.push((piece.kind, tree.ledger.text(run, piece.text).await.unwrap()));
        }
    }
    let text = r#"{"a":[1]}"#.to_owned();
    assert_eq!(parts, [(PartKind::Text, text.clone()), (PartKind::Data, text)]);
    tree.end().await;
}
