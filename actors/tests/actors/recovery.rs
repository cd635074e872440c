//! The executions of a killed service are ended or resumed by the next process instance.

use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::{AttemptId, ExecutionState, Fence, Outcome, StateChange};
use algonius_actors::model::id::ExecutionId;
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::ledger::{ClaimCommand, ClaimResult, Ledger, Settlement, WriteBatch};
use algonius_actors::testing::{
    DEFAULT_AGENT, LedgerCallKind, ScriptedAttempt, TestTree, agent_spec,
};

/// One runs and two wait; then, at second 5, the service is killed.
async fn killed_tree_with_two_queued() -> (TestTree, Vec<ExecutionId>) {
    let mut tree = TestTree::new().await;
    let mut ids = Vec::new();
    for text in ["a", "b", "c"] {
        tree.script(text, [ScriptedAttempt::ok(10)]);
        ids.push(tree.submit(text).await.unwrap());
    }
    tree.advance_to(5).await;
    tree.kill().await;
    (tree, ids)
}

async fn outcomes_with_times(tree: &TestTree, ids: &[ExecutionId]) -> Vec<String> {
    let mut ends = Vec::new();
    for id in ids {
        ends.push(format!("{} at {}", tree.wait_for_end(*id).await, tree.elapsed_seconds()));
    }
    ends
}

#[tokio::test(start_paused = true)]
async fn after_a_kill_running_work_fails_and_queued_work_runs() {
    let (mut tree, ids) = killed_tree_with_two_queued().await;
    tree.start().await;
    assert_eq!(
        outcomes_with_times(&tree, &ids).await,
        ["failed: interrupted at 5", "completed at 15", "completed at 25"]
    );
    assert_eq!(tree.driver.recorded_work().starts, ["a#1@0", "b#1@5", "c#1@15"]);
    assert_eq!(tree.states(ids[0]).await, "idle starting running failed cleanup");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn reattached_work_keeps_its_slot_and_its_deadline() {
    let (mut tree, ids) = killed_tree_with_two_queued().await;
    tree.script("a", [ScriptedAttempt::ok(7).with_answer("done")]);
    tree.driver.preserve_over_restart(ids[0]);
    tree.start().await;
    assert_eq!(
        outcomes_with_times(&tree, &ids).await,
        ["completed at 12", "completed at 22", "completed at 32"]
    );
    assert_eq!(tree.driver.recorded_work().starts, ["a#1@0", "again a#1@5", "b#1@12", "c#1@22"]);
    assert_eq!(tree.states(ids[0]).await, "idle starting running completed cleanup idle");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn work_that_ended_while_the_service_was_down_is_not_overdue() {
    let (mut tree, ids) = killed_tree_with_two_queued().await;
    tree.script("a", [ScriptedAttempt::ok(1)]);
    tree.driver.preserve_over_restart(ids[0]);
    tree.advance_to(100_000).await; // Longer than any deadline.
    tree.start().await;
    // Work that ended while the service was down keeps its outcome, also if its deadline has
    // passed since
    assert_eq!(outcomes_with_times(&tree, &ids[..1]).await, ["completed at 100001"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn reattached_work_with_a_redacted_input_is_not_retried() {
    let (mut tree, ids) = killed_tree_with_two_queued().await;
    tree.script("a", [ScriptedAttempt::fail(1, Code::TransientFailure)]);
    tree.ledger.lose_raw_input(ids[0]).await;
    tree.driver.preserve_over_restart(ids[0]);
    tree.start().await;
    assert_eq!(outcomes_with_times(&tree, &ids[..1]).await, ["failed: agent-transient at 6"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn requeued_work_precedes_later_requests() {
    let (mut tree, _) = killed_tree_with_two_queued().await;
    tree.start().await;
    tree.submit("d").await.unwrap();
    tree.advance_to(100).await;
    assert_eq!(tree.driver.recorded_work().starts, ["a#1@0", "b#1@5", "c#1@15", "d#1@25"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_redacted_input_is_not_run_again() {
    let (mut tree, ids) = killed_tree_with_two_queued().await;
    tree.ledger.lose_raw_input(ids[1]).await;
    tree.start().await;
    assert_eq!(
        outcomes_with_times(&tree, &ids).await,
        ["failed: interrupted at 5", "failed: interrupted-not-run at 5", "completed at 15"]
    );
    assert_eq!(tree.driver.recorded_work().starts, ["a#1@0", "c#1@5"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn executions_of_a_removed_agent_are_settled() {
    let (mut tree, ids) = killed_tree_with_two_queued().await;
    tree.restart_with(|specs| *specs = vec![agent_spec("another")]).await;
    assert_eq!(outcomes_with_times(&tree, &ids).await, ["failed: interrupted at 5"; 3]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_queue_timeout_counts_over_restarts() {
    let mut tree = TestTree::with_tuned_agent(|spec| {
        spec.limits.capacity.queue_timeout = Duration::from_secs(60);
    })
    .await;
    for text in ["a", "b"] {
        tree.script(text, [ScriptedAttempt::ok(200)]);
    }
    tree.submit("a").await.unwrap();
    let first = tree.submit("b").await.unwrap();
    tree.advance_to(20).await;
    let second = tree.submit("c").await.unwrap();
    tree.advance_to(30).await;
    tree.restart().await; // `b` runs now.
    tree.advance_to(50).await;
    tree.restart().await; // `b` is interrupted and `c` runs: it has waited 30 s.
    let ends = outcomes_with_times(&tree, &[first, second]).await;
    assert_eq!(ends, ["failed: interrupted at 50", "completed at 50"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_queue_timeout_counts_the_time_the_service_was_down() {
    let mut tree = TestTree::with_tuned_agent(|spec| {
        spec.limits.capacity.queue_timeout = Duration::from_secs(60);
    })
    .await;
    tree.script("a", [ScriptedAttempt::ok(200)]);
    tree.submit("a").await.unwrap();
    let early = tree.submit("b").await.unwrap();
    tree.advance_to(30).await;
    let late = tree.submit("c").await.unwrap();
    tree.kill().await;
    tree.advance_to(70).await;
    tree.start().await;
    assert_eq!(
        outcomes_with_times(&tree, &[early, late]).await,
        ["failed: queue-timeout at 70", "completed at 70"]
    );
    tree.end().await;
}

/// Taken up again behind a long run, it has 40 of its 60 seconds left.
#[tokio::test(start_paused = true)]
async fn a_requeued_request_keeps_its_remaining_queue_timeout() {
    let mut tree = TestTree::with_tuned_agent(|spec| {
        spec.limits.capacity.queue_timeout = Duration::from_secs(60);
    })
    .await;
    for text in ["a", "b"] {
        tree.script(text, [ScriptedAttempt::ok(200)]);
    }
    tree.submit("a").await.unwrap();
    tree.submit("b").await.unwrap();
    let id = tree.submit("c").await.unwrap();
    tree.advance_to(20).await;
    tree.restart().await;
    assert_eq!(outcomes_with_times(&tree, &[id]).await, ["failed: queue-timeout at 60"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn work_between_two_attempts_is_interrupted_by_a_restart() {
    let mut tree = TestTree::new().await;
    tree.script("a", [ScriptedAttempt::fail(0, Code::TransientFailure)]);
    let id = tree.submit("a").await.unwrap();
    tree.advance_to(5).await; // The pause of 4 s.
    tree.restart().await;
    assert_eq!(outcomes_with_times(&tree, &[id]).await, ["failed: interrupted at 5"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_message_sent_again_after_a_restart_joins() {
    let mut tree = TestTree::new().await;
    tree.script("a", [ScriptedAttempt::ok(10)]);
    tree.submit("a").await.unwrap();
    let (id, _) = tree.submit_with_message_id(DEFAULT_AGENT, "message", "b").await.unwrap();
    tree.restart().await;
    let duplicate = tree.submit_with_message_id(DEFAULT_AGENT, "message", "b").await;
    assert_eq!((duplicate, tree.wait_for_end(id).await.as_str()), (Ok((id, true)), "completed"));
    tree.end().await;
}

/// The claim is under way when the service is killed: it was not committed, so nothing began.
#[tokio::test(start_paused = true)]
async fn work_that_was_being_claimed_runs_after_a_restart() {
    let mut tree = TestTree::new().await;
    tree.faults.delay_next(LedgerCallKind::Claim, [10]);
    let id = tree.submit("a").await.unwrap();
    tree.advance_to(5).await;
    tree.restart().await;
    assert_eq!(outcomes_with_times(&tree, &[id]).await, ["completed at 5"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_resumes_more_than_the_queue_holds() {
    let mut tree = TestTree::with_tuned_agent(|spec| spec.limits.capacity.max_waiting = 2).await;
    for text in ["a", "b", "c"] {
        tree.script(text, [ScriptedAttempt::ok(10)]);
        tree.submit(text).await.unwrap();
    }
    tree.restart_with(|specs| specs[0].limits.capacity.max_waiting = 0).await;
    let refused = tree.submit("d").await;
    tree.advance_to(100).await;
    let started = tree.driver.recorded_work().starts;
    assert_eq!(started, ["a#1@0", "b#1@0", "c#1@10"]);
    assert_eq!(refused, Err(Code::QueueFull));
    tree.end().await;
}

/// Another holder of the same ledger has the slot from second 5 to second 15.
#[tokio::test(start_paused = true)]
async fn an_occupied_slot_is_claimed_again_until_it_is_free() {
    let tree = TestTree::new().await;
    tree.script("a", [ScriptedAttempt::ok(10)]);
    let mut ids = Vec::new();
    for text in ["a", "b", "c"] {
        ids.push(tree.submit(text).await.unwrap());
    }
    tree.advance_to(5).await;
    let state_change = |from, to| {
        StateChange::new((from, to), AttemptId::FIRST, tree.clock.now(), "elsewhere".to_owned())
    };
    let (id, agent) = (ids[2], agent_spec(DEFAULT_AGENT).id);
    let (fence, max_running, workspace) = (Fence::default(), None, None);
    let start_change = state_change(ExecutionState::Idle, ExecutionState::Starting);
    let command = ClaimCommand {
        id,
        agent,
        max_running,
        workspace,
        runs_turns_in_order: false,
        fence,
        state_change: start_change,
    };
    assert_eq!(tree.ledger.claim(command).await.unwrap(), ClaimResult::Granted(Fence(1)));
    tree.advance_to(15).await;
    let settlement = Settlement {
        id,
        fence: Fence(1),
        attempt_id: AttemptId::FIRST,
        outcome: Outcome::Cancelled,
        failure: None,
        exit_code: None,
        batch: WriteBatch::from_transitions([state_change(
            ExecutionState::Starting,
            ExecutionState::Cancelled,
        )]),
        keeps_sealed_input: false,
        at: tree.clock.now(),
    };
    assert!(tree.ledger.settle(settlement).await.unwrap());
    assert_eq!(
        outcomes_with_times(&tree, &ids).await,
        ["completed at 15", "completed at 15", "cancelled at 15"]
    );
    tree.end().await;
}
