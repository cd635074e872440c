//! Those who follow and those who wait hear in time, in virtual time.

use std::time::Duration;

use algonius_actors::follow::Next;
use algonius_actors::testing::{Act, WORKER, World, spec};
use tokio::time::Instant;

/// Until it rests.
async fn rest_of(world: &World, text: &str) -> Duration {
    let id = world.submit(text).await.unwrap();
    let begun = Instant::now();
    let record = world.record(id).await.unwrap();
    let mut follow = world.door().follow(record, 0, None);
    loop {
        if let Some(Next::Rest(record)) = follow.next().await.unwrap() {
            assert_eq!(world.end_of(record.id).await, "completed");
            return begun.elapsed();
        }
    }
}

#[tokio::test(start_paused = true)]
async fn whoever_follows_from_the_ledger_hears_of_the_end_when_it_comes() {
    let world = World::new().await;
    world.script("a", [Act::ok(10)]);
    assert_eq!(rest_of(&world, "a").await, Duration::from_secs(10));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn in_a_long_line_newcomers_know_their_place_and_the_others_soon_know_theirs() {
    let mut worker = spec(WORKER);
    worker.capacity.waiting = 300;
    let world = World::of([worker]).await;
    let texts: Vec<_> = (0..200).map(|number| format!("text {number}")).collect();
    let mut last = None;
    for (place, text) in texts.iter().enumerate() {
        world.script(text, [Act::ok(10)]);
        let id = world.submit(text).await.unwrap();
        assert_eq!(position(&world, id).await, (place > 0).then_some(place), "{text}");
        last = Some(id);
    }
    let last = last.unwrap();
    world.at(11).await;
    assert_eq!(position(&world, last).await, Some(198));
    world.end().await;
}

async fn position(world: &World, id: algonius_actors::model::id::ExecutionId) -> Option<usize> {
    let record = world.record(id).await.unwrap();
    world.door().queued(&record).await.map(|queued| queued.position)
}
