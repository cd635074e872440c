//! The one that keeps the history within bounds, beside a living tree.

#![expect(clippy::unwrap_used, reason = "a helper that cannot help fails the test")]
#![expect(clippy::panic, reason = "a helper that cannot help fails the test")]

use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::record::Filter;
use algonius_actors::model::stock::{Keep, Pass};
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::ledger::Ledger;
use algonius_actors::retention::{Retention, RetentionActor, RetentionArgs, RetentionMsg};
use algonius_actors::testing::{Act, World};
use ractor::rpc::CallResult;
use ractor::{ActorRef, ActorRuntime};

const MINUTE: Duration = Duration::from_secs(60);

async fn begun(world: &World, keep: Keep) -> ActorRef<RetentionMsg> {
    let retention = Retention { keep, interval: MINUTE };
    let clock = Arc::clone(&world.clock) as Arc<dyn Clock>;
    let args = RetentionArgs { history: Arc::new(world.ledger.clone()), clock, retention };
    ActorRuntime::spawn(None, RetentionActor, args).await.unwrap().0
}

async fn last_pass(actor: &ActorRef<RetentionMsg>) -> Option<Pass> {
    match actor.call(RetentionMsg::Inspect, Some(MINUTE)).await {
        Ok(CallResult::Success((_, last))) => last,
        _ => panic!("no answer"),
    }
}

async fn left(world: &World) -> usize {
    world.ledger.executions(Filter::default()).await.unwrap().len()
}

#[tokio::test(start_paused = true)]
async fn what_has_ended_goes_in_time_and_what_goes_on_stays() {
    let long = Duration::from_secs(200_000);
    let world = World::tuned(|worker| worker.deadlines.run = long).await;
    world.script("long", [Act::ok(100_000)]);
    for text in ["a", "b"] {
        let id = world.submit(text).await.unwrap();
        world.wait(id).await;
    }
    let long = world.submit("long").await.unwrap();
    let max_age = Some(60 * MINUTE);
    let keep = Keep { max_age, max_executions: None, max_bytes: None, min_age: MINUTE };
    let actor = begun(&world, keep).await;
    world.at(3000).await;
    let before = left(&world).await;
    world.at(4000).await;
    let pass = last_pass(&actor).await.unwrap();
    let after = left(&world).await;
    let stays = world.ledger.execution(long).await.unwrap().is_some();
    actor.stop_and_wait(None, None).await.unwrap();
    assert_eq!((before, after, stays, pass.by_age), (3, 1, true, true));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn of_too_many_the_first_go() {
    let world = World::new().await;
    let mut ids = Vec::new();
    for number in 0..10 {
        let id = world.submit(&format!("{number}")).await.unwrap();
        world.wait(id).await;
        ids.push(id);
    }
    world.at(10_000).await;
    let keep = Keep { max_age: None, max_executions: Some(4), max_bytes: None, min_age: MINUTE };
    let actor = begun(&world, keep).await;
    world.at(10_100).await;
    let mut kept: Vec<_> = world.ledger.executions(Filter::default()).await.unwrap();
    kept.reverse();
    actor.stop_and_wait(None, None).await.unwrap();
    assert_eq!(kept.iter().map(|record| record.id).collect::<Vec<_>>(), ids[6..]);
    world.end().await;
}
