//! The status that the tree reports.

use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::{ExecutionState, Outcome};
use algonius_actors::model::observation::status::Health;
use algonius_actors::testing::{
    DEFAULT_AGENT, LedgerCallKind, ScriptedAttempt, TestTree, agent_spec,
};
use chrono::{DateTime, Utc};

/// The virtual second at a wall time.
fn second_of(at: DateTime<Utc>) -> i64 {
    at.timestamp() - 1_800_000_000
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_shown_in_order_with_its_deadlines() {
    let tree = TestTree::with_tuned_agent(|spec| {
        spec.limits.capacity.queue_timeout = Duration::from_secs(60);
    })
    .await;
    tree.script("a", [ScriptedAttempt::ok(50)]);
    tree.submit("a").await.unwrap();
    tree.advance_to(10).await;
    let first = tree.submit("b").await.unwrap();
    tree.advance_to(20).await;
    let next = tree.submit("c").await.unwrap();
    let queued = tree.agent_status(DEFAULT_AGENT).await.work.queued;
    let entries: Vec<_> = queued
        .iter()
        .map(|one| (one.id, one.position, second_of(one.since), second_of(one.deadline)))
        .collect();
    assert_eq!(entries, [(first, 1, 10, 70), (next, 2, 20, 80)]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn each_phase_is_shown_with_its_start_and_deadline() {
    let tree = TestTree::new().await;
    tree.script(
        "a",
        [
            ScriptedAttempt::fail(20, Code::TransientFailure).with_start_delay(10),
            ScriptedAttempt::ok(20),
        ],
    );
    tree.submit("a").await.unwrap();
    let mut phases = Vec::new();
    for second in [5, 15] {
        tree.advance_to(second).await;
        let execution = tree.agent_status(DEFAULT_AGENT).await.work.running.remove(0);
        let attempt = execution.attempt_id.map(|attempt_id| attempt_id.attempt);
        phases.push((
            execution.state,
            execution.since.map(second_of),
            execution.deadline.map(second_of),
            attempt,
        ));
    }
    tree.advance_to(30).await;
    // Past the second at which the act ends; virtual time, nothing waits.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let execution = tree.agent_status(DEFAULT_AGENT).await.work.running.remove(0);
    let attempt = execution.attempt_id.map(|attempt_id| attempt_id.attempt);
    phases.push((
        execution.state,
        execution.since.map(second_of),
        execution.deadline.map(second_of),
        attempt,
    ));
    assert_eq!(
        phases,
        [
            (Some(ExecutionState::Starting), Some(0), Some(30), Some(1)),
            (Some(ExecutionState::Running), Some(10), Some(310), Some(1)),
            (Some(ExecutionState::Failed), Some(30), Some(31), Some(1)),
        ]
    );
    tree.end().await;
}

/// The run deadline was second 300; a clean-up has none.
#[tokio::test(start_paused = true)]
async fn an_obsolete_deadline_is_not_shown() {
    let tree = TestTree::new().await;
    tree.script("a", [ScriptedAttempt::fail(2, Code::TransientFailure).with_cleanup_time(20)]);
    tree.submit("a").await.unwrap();
    tree.advance_to(5).await;
    let execution = tree.agent_status(DEFAULT_AGENT).await.work.running.remove(0);
    assert_eq!((execution.state, execution.deadline), (Some(ExecutionState::Failed), None));
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_last_outcome_is_shown() {
    let tree = TestTree::new().await;
    tree.script("a", [ScriptedAttempt::fail(7, Code::Exit)]);
    let id = tree.submit("a").await.unwrap();
    tree.wait_for_end(id).await;
    tree.advance_to(20).await;
    let last = tree.agent_status(DEFAULT_AGENT).await.work.last_execution.unwrap();
    assert_eq!((last.id, last.outcome, second_of(last.at)), (id, Outcome::Failed, 7));
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn agents_are_listed_by_id_with_their_capacity() {
    let mut third = agent_spec("three");
    third.enabled = false;
    third.limits.capacity.max_running = None;
    let tree = TestTree::with_agents([agent_spec("two"), third, agent_spec("one")]).await;
    let status = tree.status().await;
    let listed: Vec<_> = status
        .agents
        .iter()
        .map(|agent| {
            (agent.id.as_str(), agent.enabled, agent.work.capacity, agent.work.queue_depth)
        })
        .collect();
    assert_eq!(
        listed,
        [("one", true, Some(1), 10), ("three", false, None, 10), ("two", true, Some(1), 10)]
    );
    assert_eq!([status.root.health, status.gateway.health], [Health::Alive; 2]);
    tree.end().await;
}

/// The root waits for the ledger while it starts an agent again: it says nothing, and the answer
/// about the rest comes all the same.
#[tokio::test(start_paused = true)]
async fn an_actor_that_does_not_answer_is_shown_as_unresponsive() {
    let tree = TestTree::new().await;
    tree.faults.delay_next(LedgerCallKind::List, [20]);
    tree.crash_agent(DEFAULT_AGENT).await;
    tree.advance_to(5).await;
    let status = tree.status().await;
    let observed = (status.root.health, status.gateway.health, tree.elapsed_seconds());
    assert_eq!(observed, (Health::Silent, Health::Alive, 5));
    tree.end().await;
}
