//! Those who follow and those who wait hear in time, in virtual time.

use std::time::Duration;

use algonius_actors::follow::Next;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::testing::{Act, WORKER, World, spec};
use tokio::time::Instant;

#[tokio::test(start_paused = true)]
async fn whoever_follows_from_the_ledger_hears_of_the_end_when_it_comes() {
    let world = World::new().await;
    world.script("a", [Act::ok(10)]);
    let id = world.submit("a").await.unwrap();
    let begun = Instant::now();
    let mut follow = world.door().follow(world.record(id).await.unwrap(), 0, None);
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
async fn in_a_long_line_newcomers_know_their_place_and_the_others_soon_know_theirs() {
    let mut worker = spec(WORKER);
    worker.capacity.waiting = 300;
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
    world.door().queued(&record).await.map(|queued| queued.position)
}
