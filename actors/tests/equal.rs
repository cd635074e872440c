//! Equal requests: the work is done once, and each request has an execution of its own.

use std::num::NonZeroU32;
use std::time::Duration;

use algonius_actors::model::agent::queue::QueueReason;
use algonius_actors::model::code::Code;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::testing::{Act, WORKER, World};

/// A world whose agent takes equal requests of a minute for one, and runs two at once.
async fn world() -> World {
    World::tuned(|spec| {
        spec.dedup_window = Some(Duration::from_secs(60));
        spec.limits.capacity.running = NonZeroU32::new(2);
        spec.limits.capacity.waiting = 3;
    })
    .await
}

/// How some executions ended, each with its answer.
async fn ends(world: &World, ids: &[ExecutionId]) -> Vec<String> {
    let mut ends = Vec::new();
    for id in ids {
        ends.push(format!("{} {}", world.wait(*id).await, world.answer(*id).await));
    }
    ends
}

const PATH: &str = "idle starting running completed cleanup idle";

#[tokio::test(start_paused = true)]
async fn equal_requests_in_progress_run_once() {
    let world = world().await;
    world.script("tea", [Act::ok(10).saying("green")]);
    let first = world.submit("tea").await.unwrap();
    let second = world.submit("tea").await.unwrap();
    let other = world.submit("coffee").await.unwrap();
    assert_ne!(first, second);
    let queued = world.agent(WORKER).await.work.queued;
    let places: Vec<_> = queued.iter().map(|one| (one.id, one.position, one.reason)).collect();
    assert_eq!(places, [(second, 1, QueueReason::DuplicateInProgress)]);
    assert_eq!(ends(&world, &[first, second]).await, ["completed green", "completed green"]);
    assert_eq!(ends(&world, &[other]).await, ["completed "]);
    assert_eq!(world.driver.stage().begun, ["tea#1@0", "coffee#1@0"]);
    assert_eq!((world.path(second).await.as_str(), world.second()), (PATH, 10));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_coalescing_window_starts_with_the_first_request() {
    let world = world().await;
    world.script("tea", [Act::ok(5).saying("green")]);
    let mut ids = vec![world.submit("tea").await.unwrap()];
    for second in [40, 59, 70] {
        world.at(second).await;
        ids.push(world.submit("tea").await.unwrap());
    }
    assert_eq!(ends(&world, &ids).await, ["completed green"; 4]);
    assert_eq!(world.driver.stage().begun, ["tea#1@0", "tea#1@70"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn failed_and_cancelled_results_are_not_shared() {
    let world = world().await;
    world.script("tea", [Act::fail(5, Code::Exit)]);
    let [first, second] = [world.submit("tea").await.unwrap(), world.submit("tea").await.unwrap()];
    let failed = ["failed: agent-exit ", "failed: agent-exit "];
    assert_eq!(ends(&world, &[first, second]).await, failed);
    assert_eq!(world.driver.stage().begun, ["tea#1@0", "tea#1@5"]);

    world.script("coffee", [Act::ok(10).saying("black")]);
    let first = world.submit("coffee").await.unwrap();
    let second = world.submit("coffee").await.unwrap();
    world.cancel(first).await.unwrap();
    let ended = ends(&world, &[first, second]).await;
    assert_eq!(ended, ["cancelled: execution-cancelled black", "completed black"]);
    assert_eq!(world.driver.stage().begun[2..], ["coffee#1@10", "coffee#1@10"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_coalesced_request_is_cancelled_alone() {
    let world = world().await;
    world.script("tea", [Act::ok(10).saying("green")]);
    let first = world.submit("tea").await.unwrap();
    let second = world.submit("tea").await.unwrap();
    world.cancel(second).await.unwrap();
    assert_eq!(
        ends(&world, &[first, second]).await,
        ["completed green", "cancelled: execution-cancelled "]
    );
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn coalesced_requests_hold_no_slot_and_are_bounded() {
    let world = world().await;
    world.script("tea", [Act::ok(10).saying("green")]);
    world.script("coffee", [Act::ok(1)]);
    let mut ids = Vec::new();
    for _ in 0..4 {
        ids.push(world.submit("tea").await.unwrap());
    }
    // Three wait, the slot that is left is free for others.
    let other = world.submit("coffee").await.unwrap();
    world.at(2).await;
    assert_eq!(world.end_of(other).await, "completed");
    // A fifth finds the queue full of them, and does its own work in the free slot.
    let fifth = world.submit("tea").await.unwrap();
    ids.push(fifth);
    assert_eq!(ends(&world, &ids).await, ["completed green"; 5]);
    assert_eq!(world.driver.stage().begun, ["tea#1@0", "coffee#1@0", "tea#1@2"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_coalesced_request_runs_itself_when_its_source_is_lost() {
    let mut world = world().await;
    world.script("tea", [Act::ok(10).saying("green")]);
    let first = world.submit("tea").await.unwrap();
    let second = world.submit("tea").await.unwrap();
    world.at(3).await;
    world.restart().await;
    let ended = ends(&world, &[first, second]).await;
    assert_eq!(ended, ["failed: interrupted green", "completed green"]);
    assert_eq!(world.driver.stage().begun, ["tea#1@0", "tea#1@3"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn equal_requests_run_separately_by_default() {
    let world = World::tuned(|spec| spec.limits.capacity.running = NonZeroU32::new(2)).await;
    world.script("tea", [Act::ok(10).saying("green")]);
    let [first, second] = [world.submit("tea").await.unwrap(), world.submit("tea").await.unwrap()];
    assert_eq!(ends(&world, &[first, second]).await, ["completed green"; 2]);
    assert_eq!(world.driver.stage().begun, ["tea#1@0", "tea#1@0"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_available_result_is_shared_though_the_queue_is_full() {
    let world = World::tuned(|spec| {
        spec.dedup_window = Some(Duration::from_secs(60));
        spec.limits.capacity.waiting = 0;
    })
    .await;
    world.script("tea", [Act::ok(5).saying("green")]);
    let first = world.submit("tea").await.unwrap();
    assert_eq!(world.submit("tea").await, Err(Code::QueueFull));
    world.at(6).await;
    let second = world.submit("tea").await.unwrap();
    assert_eq!(ends(&world, &[first, second]).await, ["completed green"; 2]);
    assert_eq!(world.driver.stage().begun, ["tea#1@0"]);
    world.end().await;
}
