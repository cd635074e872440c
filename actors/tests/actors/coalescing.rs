//! Equal requests: the program runs once, and each request has its own execution.

use std::num::NonZeroU32;
use std::time::Duration;

use algonius_actors::model::agent::queue::QueueReason;
use algonius_actors::model::code::Code;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::testing::{DEFAULT_AGENT, ScriptedAttempt, TestTree};

/// A tree whose agent takes equal requests of a minute for one, and runs two at once.
async fn tree_with_coalescing() -> TestTree {
    TestTree::with_tuned_agent(|spec| {
        spec.dedup_window = Some(Duration::from_secs(60));
        spec.limits.capacity.max_running = NonZeroU32::new(2);
        spec.limits.capacity.max_waiting = 3;
    })
    .await
}

/// How some executions ended, each with its answer.
async fn outcomes_with_answers(tree: &TestTree, ids: &[ExecutionId]) -> Vec<String> {
    let mut ends = Vec::new();
    for id in ids {
        ends.push(format!("{} {}", tree.wait_for_end(*id).await, tree.answer(*id).await));
    }
    ends
}

const COMPLETED_STATES: &str = "idle starting running completed cleanup idle";

#[tokio::test(start_paused = true)]
async fn equal_requests_in_progress_run_once() {
    let tree = tree_with_coalescing().await;
    tree.script("tea", [ScriptedAttempt::ok(10).with_answer("green")]);
    let first = tree.submit("tea").await.unwrap();
    let second = tree.submit("tea").await.unwrap();
    let other = tree.submit("coffee").await.unwrap();
    assert_ne!(first, second);
    let queued = tree.agent_status(DEFAULT_AGENT).await.work.queued;
    let positions: Vec<_> = queued.iter().map(|one| (one.id, one.position, one.reason)).collect();
    assert_eq!(positions, [(second, 1, QueueReason::DuplicateInProgress)]);
    assert_eq!(
        outcomes_with_answers(&tree, &[first, second]).await,
        ["completed green", "completed green"]
    );
    assert_eq!(outcomes_with_answers(&tree, &[other]).await, ["completed "]);
    assert_eq!(tree.driver.recorded_work().starts, ["tea#1@0", "coffee#1@0"]);
    assert_eq!(
        (tree.states(second).await.as_str(), tree.elapsed_seconds()),
        (COMPLETED_STATES, 10)
    );
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_coalescing_window_starts_with_the_first_request() {
    let tree = tree_with_coalescing().await;
    tree.script("tea", [ScriptedAttempt::ok(5).with_answer("green")]);
    let mut ids = vec![tree.submit("tea").await.unwrap()];
    for second in [40, 59, 70] {
        tree.advance_to(second).await;
        ids.push(tree.submit("tea").await.unwrap());
    }
    assert_eq!(outcomes_with_answers(&tree, &ids).await, ["completed green"; 4]);
    assert_eq!(tree.driver.recorded_work().starts, ["tea#1@0", "tea#1@70"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn failed_and_cancelled_results_are_not_shared() {
    let tree = tree_with_coalescing().await;
    tree.script("tea", [ScriptedAttempt::fail(5, Code::Exit)]);
    let [first, second] = [tree.submit("tea").await.unwrap(), tree.submit("tea").await.unwrap()];
    let failed = ["failed: agent-exit ", "failed: agent-exit "];
    assert_eq!(outcomes_with_answers(&tree, &[first, second]).await, failed);
    assert_eq!(tree.driver.recorded_work().starts, ["tea#1@0", "tea#1@5"]);

    tree.script("coffee", [ScriptedAttempt::ok(10).with_answer("black")]);
    let first = tree.submit("coffee").await.unwrap();
    let second = tree.submit("coffee").await.unwrap();
    tree.cancel(first).await.unwrap();
    let ended = outcomes_with_answers(&tree, &[first, second]).await;
    assert_eq!(ended, ["cancelled: execution-cancelled black", "completed black"]);
    assert_eq!(tree.driver.recorded_work().starts[2..], ["coffee#1@10", "coffee#1@10"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_coalesced_request_is_cancelled_alone() {
    let tree = tree_with_coalescing().await;
    tree.script("tea", [ScriptedAttempt::ok(10).with_answer("green")]);
    let first = tree.submit("tea").await.unwrap();
    let second = tree.submit("tea").await.unwrap();
    tree.cancel(second).await.unwrap();
    assert_eq!(
        outcomes_with_answers(&tree, &[first, second]).await,
        ["completed green", "cancelled: execution-cancelled "]
    );
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn coalesced_requests_hold_no_slot_and_are_bounded() {
    let tree = tree_with_coalescing().await;
    tree.script("tea", [ScriptedAttempt::ok(10).with_answer("green")]);
    tree.script("coffee", [ScriptedAttempt::ok(1)]);
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(tree.submit("tea").await.unwrap());
    }
    // Three wait, the slot that is left is free for others.
    let other = tree.submit("coffee").await.unwrap();
    tree.advance_to(2).await;
    assert_eq!(tree.describe_end(other).await, "completed");
    // A fifth finds the queue full of them, and does its own work in the free slot.
    let fifth = tree.submit("tea").await.unwrap();
    ids.push(fifth);
    assert_eq!(outcomes_with_answers(&tree, &ids).await, ["completed green"; 5]);
    assert_eq!(tree.driver.recorded_work().starts, ["tea#1@0", "coffee#1@0", "tea#1@2"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_coalesced_request_runs_itself_when_its_source_is_lost() {
    let mut tree = tree_with_coalescing().await;
    tree.script("tea", [ScriptedAttempt::ok(10).with_answer("green")]);
    let first = tree.submit("tea").await.unwrap();
    let second = tree.submit("tea").await.unwrap();
    tree.advance_to(3).await;
    tree.restart().await;
    let ended = outcomes_with_answers(&tree, &[first, second]).await;
    assert_eq!(ended, ["failed: interrupted green", "completed green"]);
    assert_eq!(tree.driver.recorded_work().starts, ["tea#1@0", "tea#1@3"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn equal_requests_run_separately_by_default() {
    let tree =
        TestTree::with_tuned_agent(|spec| spec.limits.capacity.max_running = NonZeroU32::new(2))
            .await;
    tree.script("tea", [ScriptedAttempt::ok(10).with_answer("green")]);
    let [first, second] = [tree.submit("tea").await.unwrap(), tree.submit("tea").await.unwrap()];
    assert_eq!(outcomes_with_answers(&tree, &[first, second]).await, ["completed green"; 2]);
    assert_eq!(tree.driver.recorded_work().starts, ["tea#1@0", "tea#1@0"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_available_result_is_shared_though_the_queue_is_full() {
    let tree = TestTree::with_tuned_agent(|spec| {
        spec.dedup_window = Some(Duration::from_secs(60));
        spec.limits.capacity.max_waiting = 0;
    })
    .await;
    tree.script("tea", [ScriptedAttempt::ok(5).with_answer("green")]);
    let first = tree.submit("tea").await.unwrap();
    assert_eq!(tree.submit("tea").await, Err(Code::QueueFull));
    tree.advance_to(6).await;
    let second = tree.submit("tea").await.unwrap();
    assert_eq!(outcomes_with_answers(&tree, &[first, second]).await, ["completed green"; 2]);
    assert_eq!(tree.driver.recorded_work().starts, ["tea#1@0"]);
    tree.end().await;
}
