//! The actor that limits the history, beside a running tree.

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::maintenance::retention::{
    RetentionActor, RetentionArgs, RetentionMsg, RetentionSpec,
};
use algonius_actors::model::execution::record::ExecutionFilter;
use algonius_actors::model::host::storage_stats::{RetentionLimits, RetentionPass};
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::ledger::Ledger;
use algonius_actors::testing::{ScriptedAttempt, TestTree};
use ractor::rpc::CallResult;
use ractor::{ActorRef, ActorRuntime};

const MINUTE: Duration = Duration::from_secs(60);

async fn start_retention(
    tree: &TestTree,
    limits: Option<RetentionLimits>,
) -> ActorRef<RetentionMsg> {
    let retention = RetentionSpec { limits, interval: MINUTE };
    let retry_window = 10 * MINUTE;
    let clock = Arc::clone(&tree.clock) as Arc<dyn Clock>;
    let args =
        RetentionArgs { history: Arc::new(tree.ledger.clone()), clock, retention, retry_window };
    ActorRuntime::spawn(None, RetentionActor, args).await.unwrap().0
}

async fn last_pass(actor: &ActorRef<RetentionMsg>) -> Option<RetentionPass> {
    match actor.call(RetentionMsg::Inspect, Some(MINUTE)).await {
        Ok(CallResult::Success((_, last))) => last,
        _ => panic!("no answer"),
    }
}

async fn remaining_execution_count(tree: &TestTree) -> usize {
    tree.ledger.executions(ExecutionFilter::default()).await.unwrap().len()
}

#[tokio::test(start_paused = true)]
async fn retention_removes_old_executions_and_keeps_running_ones() {
    let run_deadline = Duration::from_secs(200_000);
    let tree = TestTree::with_tuned_agent(|worker| worker.limits.timeouts.run = run_deadline).await;
    tree.script("long", [ScriptedAttempt::ok(100_000)]);
    for text in ["a", "b"] {
        let id = tree.submit(text).await.unwrap();
        tree.wait_for_end(id).await;
    }
    let running_id = tree.submit("long").await.unwrap();
    let max_age = Some(60 * MINUTE);
    let limits =
        RetentionLimits { max_age, max_executions: None, max_bytes: None, min_age: MINUTE };
    let actor = start_retention(&tree, Some(limits)).await;
    tree.advance_to(3000).await;
    let before = remaining_execution_count(&tree).await;
    tree.advance_to(4000).await;
    let pass = last_pass(&actor).await.unwrap();
    let after = remaining_execution_count(&tree).await;
    let is_retained = tree.ledger.execution(running_id).await.unwrap().is_some();
    actor.stop_and_wait(None, None).await.unwrap();
    // Retention bounds ended executions and keeps running ones
    assert_eq!((before, after, is_retained, pass.by_age), (3, 1, true, true));
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn retention_removes_the_oldest_executions_first() {
    let tree = TestTree::new().await;
    let mut ids = Vec::new();
    for number in 0..10 {
        let id = tree.submit(&format!("{number}")).await.unwrap();
        tree.wait_for_end(id).await;
        ids.push(id);
    }
    tree.advance_to(10_000).await;
    let limits = RetentionLimits {
        max_age: None,
        max_executions: Some(4),
        max_bytes: None,
        min_age: MINUTE,
    };
    let actor = start_retention(&tree, Some(limits)).await;
    tree.advance_to(10_100).await;
    let mut remaining: Vec<_> = tree.ledger.executions(ExecutionFilter::default()).await.unwrap();
    remaining.reverse();
    actor.stop_and_wait(None, None).await.unwrap();
    assert_eq!(remaining.iter().map(|record| record.id).collect::<Vec<_>>(), ids[6..]);
    tree.end().await;
}
