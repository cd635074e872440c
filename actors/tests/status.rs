//! What the tree shows of itself.

use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::{Outcome, State};
use algonius_actors::model::observation::status::Health;
use algonius_actors::testing::{Act, GatedCall, WORKER, World, spec};
use chrono::{DateTime, Utc};

/// The second of the world at a wall time.
fn second(at: DateTime<Utc>) -> i64 {
    at.timestamp() - 1_800_000_000
}

#[tokio::test(start_paused = true)]
async fn the_queue_is_shown_in_order_with_its_deadlines() {
    let world = World::tuned(|spec| spec.limits.capacity.patience = Duration::from_secs(60)).await;
    world.script("a", [Act::ok(50)]);
    world.submit("a").await.unwrap();
    world.at(10).await;
    let first = world.submit("b").await.unwrap();
    world.at(20).await;
    let next = world.submit("c").await.unwrap();
    let queued = world.agent(WORKER).await.work.queued;
    let shown: Vec<_> = queued
        .iter()
        .map(|one| (one.id, one.position, second(one.since), second(one.deadline)))
        .collect();
    assert_eq!(shown, [(first, 1, 10, 70), (next, 2, 20, 80)]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn each_phase_is_shown_with_its_start_and_deadline() {
    let world = World::new().await;
    world.script("a", [Act::fail(20, Code::TransientFailure).starting_for(10), Act::ok(20)]);
    world.submit("a").await.unwrap();
    let mut shown = Vec::new();
    for at in [5, 15] {
        world.at(at).await;
        let one = world.agent(WORKER).await.work.running.remove(0);
        let attempt = one.attempt_id.map(|stamp| stamp.attempt);
        shown.push((one.state, one.since.map(second), one.deadline.map(second), attempt));
    }
    world.at(30).await;
    // Past the second at which the act ends; virtual time, nothing waits.
    tokio::time::sleep(Duration::from_millis(500)).await;
    let one = world.agent(WORKER).await.work.running.remove(0);
    let attempt = one.attempt_id.map(|stamp| stamp.attempt);
    shown.push((one.state, one.since.map(second), one.deadline.map(second), attempt));
    assert_eq!(
        shown,
        [
            (Some(State::Starting), Some(0), Some(30), Some(1)),
            (Some(State::Running), Some(10), Some(310), Some(1)),
            (Some(State::Failed), Some(30), Some(31), Some(1)),
        ]
    );
    world.end().await;
}

/// The run deadline was second 300; a clean-up has none.
#[tokio::test(start_paused = true)]
async fn an_obsolete_deadline_is_not_shown() {
    let world = World::new().await;
    world.script("a", [Act::fail(2, Code::TransientFailure).clearing_for(20)]);
    world.submit("a").await.unwrap();
    world.at(5).await;
    let one = world.agent(WORKER).await.work.running.remove(0);
    assert_eq!((one.state, one.deadline), (Some(State::Failed), None));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_last_outcome_is_shown() {
    let world = World::new().await;
    world.script("a", [Act::fail(7, Code::Exit)]);
    let id = world.submit("a").await.unwrap();
    world.wait(id).await;
    world.at(20).await;
    let last = world.agent(WORKER).await.work.last_execution.unwrap();
    assert_eq!((last.id, last.outcome, second(last.at)), (id, Outcome::Failed, 7));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn agents_are_listed_by_id_with_their_capacity() {
    let mut third = spec("three");
    third.enabled = false;
    third.limits.capacity.running = None;
    let world = World::of([spec("two"), third, spec("one")]).await;
    let status = world.status().await;
    let shown: Vec<_> = status
        .agents
        .iter()
        .map(|agent| {
            (agent.id.as_str(), agent.enabled, agent.work.capacity, agent.work.queue_depth)
        })
        .collect();
    assert_eq!(
        shown,
        [("one", true, Some(1), 10), ("three", false, None, 10), ("two", true, Some(1), 10)]
    );
    assert_eq!([status.root.health, status.gateway.health], [Health::Alive; 2]);
    world.end().await;
}

/// The root waits for the ledger while it starts an agent again: it says nothing, and the answer
/// about the rest comes all the same.
#[tokio::test(start_paused = true)]
async fn an_actor_that_does_not_answer_is_shown_as_unresponsive() {
    let world = World::new().await;
    world.faults.slow(GatedCall::List, [20]);
    world.crash_agent(WORKER).await;
    world.at(5).await;
    let status = world.status().await;
    let story = (status.root.health, status.gateway.health, world.second());
    assert_eq!(story, (Health::Silent, Health::Alive, 5));
    world.end().await;
}
