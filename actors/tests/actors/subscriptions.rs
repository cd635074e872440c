//! Subscribers and waiting callers are notified in time, in virtual time.

use std::time::Duration;

use algonius_actors::api::{Subscription, SubscriptionItem};
use algonius_actors::model::id::ExecutionId;
use algonius_actors::testing::{DEFAULT_AGENT, ScriptedAttempt, TestTree, agent_spec};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn a_follower_of_the_ledger_sees_the_end_without_delay() {
    let tree = TestTree::new().await;
    tree.script("a", [ScriptedAttempt::ok(10)]);
    let id = tree.submit("a").await.unwrap();
    let started_at = Instant::now();
    let mut subscription =
        Subscription::new(tree.api().reader.clone(), tree.record(id).await.unwrap(), 0, None);
    let record = loop {
        if let Some(SubscriptionItem::EndOrQuestion(record)) = subscription.next().await.unwrap() {
            break record;
        }
    };
    assert_eq!(started_at.elapsed(), Duration::from_secs(10));
    assert_eq!(tree.describe_end(record.id).await, "completed");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn new_requests_in_a_long_queue_know_their_position() {
    let mut worker = agent_spec(DEFAULT_AGENT);
    worker.limits.capacity.max_waiting = 300;
    let tree = TestTree::with_agents([worker]).await;
    let mut ids = Vec::new();
    for number in 0..200 {
        let text = format!("text {number}");
        tree.script(&text, [ScriptedAttempt::ok(10)]);
        ids.push(tree.submit(&text).await.unwrap());
        assert_eq!(
            queue_position(&tree, ids[number]).await,
            (number > 0).then_some(number),
            "{text}"
        );
    }
    tree.advance_to(11).await;
    assert_eq!(queue_position(&tree, ids[199]).await, Some(198));
    tree.end().await;
}

async fn queue_position(tree: &TestTree, id: ExecutionId) -> Option<usize> {
    let record = tree.record(id).await?;
    tree.api().reader.queue_position(&record).await.map(|queued| queued.position)
}
