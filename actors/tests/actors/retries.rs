//! The time between two attempts, in virtual time: the agent holds the execution, and it has no actor.

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::{ExecutionState, Outcome};
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::observation::status::{ExecutionStatus, Health};
use algonius_actors::testing::{DEFAULT_AGENT, LedgerCallKind, ScriptedAttempt, TestTree};

/// A tree with an execution that fails at second 0, and pauses until second 1.
async fn tree_with_pausing_execution() -> (TestTree, ExecutionId) {
    let tree = TestTree::new().await;
    tree.script("work", [ScriptedAttempt::fail(0, Code::TransientFailure), ScriptedAttempt::ok(5)]);
    let id = tree.submit("work").await.unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(500)).await; // Virtual time.
    (tree, id)
}

async fn running_statuses(tree: &TestTree) -> Vec<ExecutionStatus> {
    tree.agent_status(DEFAULT_AGENT).await.work.running
}

#[tokio::test(start_paused = true)]
async fn a_pausing_execution_keeps_its_slot() {
    let (tree, id) = tree_with_pausing_execution().await;
    let next = tree.submit("next").await.unwrap();
    let statuses = running_statuses(&tree).await;
    let states: Vec<_> = statuses.iter().map(|status| (status.id, status.state)).collect();
    assert_eq!(states, [(id, Some(ExecutionState::Failed))]);
    assert_eq!((statuses[0].health, statuses[0].pid), (Health::Alive, None));
    assert_eq!(tree.agent_status(DEFAULT_AGENT).await.work.queued[0].id, next);
    assert_eq!((tree.wait_for_end(id).await.as_str(), tree.elapsed_seconds()), ("completed", 6));
    assert_eq!((tree.wait_for_end(next).await.as_str(), tree.elapsed_seconds()), ("completed", 6));
    tree.end().await;
}

/// The records of the last attempt and the outcome are one write, although the agent decides in between.
#[tokio::test(start_paused = true)]
async fn a_failure_without_a_retry_needs_as_many_writes_as_a_success() {
    let mut write_counts = Vec::new();
    for attempt in [ScriptedAttempt::ok(5), ScriptedAttempt::fail(5, Code::Exit)] {
        let tree = TestTree::new().await;
        tree.script("work", [attempt.with_answer("half").with_warning_at_end()]);
        let id = tree.submit("work").await.unwrap();
        tree.wait_for_end(id).await;
        write_counts.push((
            tree.faults.call_count(LedgerCallKind::AppendBatch),
            tree.ledger.settle_call_count(id).await,
        ));
        assert_eq!(tree.answer(id).await, "half");
        tree.end().await;
    }
    assert_eq!(write_counts[0], write_counts[1]);
}

/// The record of the failed attempt takes three seconds; the cancellation arrives before the pause begins.
#[tokio::test(start_paused = true)]
async fn a_cancellation_while_a_failure_is_recorded_counts() {
    let tree = TestTree::new().await;
    tree.script("work", [ScriptedAttempt::fail(0, Code::TransientFailure), ScriptedAttempt::ok(5)]);
    tree.faults.delay_next(LedgerCallKind::AppendBatch, [3]);
    let id = tree.submit("work").await.unwrap();
    tree.advance_to(1).await;
    tree.cancel(id).await.unwrap();
    assert_eq!(
        (tree.wait_for_end(id).await.as_str(), tree.elapsed_seconds()),
        ("cancelled: execution-cancelled", 3)
    );
    tree.advance_to(20).await;
    assert_eq!(tree.ledger.settle_call_count(id).await, 1);
    let last = tree.agent_status(DEFAULT_AGENT).await.work.last_execution.unwrap();
    assert_eq!((last.id, last.outcome), (id, Outcome::Cancelled));
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_of_the_service_cancels_a_pause() {
    let (mut tree, id) = tree_with_pausing_execution().await;
    tree.stop(0).await;
    let record = tree.record(id).await.unwrap();
    assert_eq!(record.failure.map(|failure| failure.code), Some(Code::Cancelled));
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_of_the_service_waits_for_a_pause() {
    let (mut tree, id) = tree_with_pausing_execution().await;
    tree.stop(60).await;
    assert_eq!((tree.describe_end(id).await.as_str(), tree.elapsed_seconds()), ("completed", 6));
    tree.end().await;
}

/// Another process knows only that the attempt failed; whether its pause is over it does not.
#[tokio::test(start_paused = true)]
async fn a_crash_during_a_pause_interrupts_the_execution() {
    let (tree, id) = tree_with_pausing_execution().await;
    tree.crash_agent(DEFAULT_AGENT).await;
    assert_eq!(tree.wait_for_end(id).await, "failed: interrupted");
    tree.advance_to(20).await;
    assert_eq!(tree.driver.recorded_work().starts, ["work#1@0"]);
    tree.end().await;
}
