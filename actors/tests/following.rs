//! Those who follow and those who wait hear in time, in virtual time.

use std::time::Duration;

use algonius_actors::api::{Follow, Next};
use algonius_actors::model::id::ExecutionId;
use algonius_actors::testing::{Act, WORKER, World, spec};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn a_follower_of_the_ledger_sees_the_end_without_delay() {
    let world = World::new().await;
    world.script("a", [Act::ok(10)]);
    let id = world.submit("a").await.unwrap();
    let begun = Instant::now();
    let mut follow =
        Follow::new(world.api().reader.clone(), world.record(id).await.unwrap(), 0, None);
    let record = loop {
        if let Some(Next::Rest(record)) = follow.next().await.unwrap() {
            break record;
        }
    };
    assert_eq!(begun.elapsed(), Duration::from_secs(10));
    assert_eq!(world.end_of(record.id).await, "completed");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn new_requests_in_a_long_queue_know_their_position() {
    let mut worker = spec(WORKER);
    worker.limits.capacity.waiting = 300;
    let world = World::of([worker]).await;
    let mut all = Vec::new();
    for place in 0..200 {
        let text = format!("text {place}");
        world.script(&text, [Act::ok(10)]);
        all.push(world.submit(&text).await.unwrap());
        assert_eq!(position(&world, all[place]).await, (place > 0).then_some(place), "{text}");
    }
    world.at(11).await;
    assert_eq!(position(&world, all[199]).await, Some(198));
    world.end().await;
}

async fn position(world: &World, id: ExecutionId) -> Option<usize> {
    let record = world.record(id).await?;
    world.api().reader.queued(&record).await.map(|queued| queued.position)
}
