//! The service stops without losing what it has.

use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::observation::status::Health;
use algonius_actors::testing::{Act, GatedCall, WORKER, World};

#[tokio::test(start_paused = true)]
async fn running_work_may_finish_within_the_drain_deadline() {
    let mut world = World::new().await;
    world.script("a", [Act::ok(20)]);
    let id = world.submit("a").await.unwrap();
    world.at(5).await;
    world.stop(30).await;
    assert_eq!((world.end_of(id).await.as_str(), world.second()), ("completed", 20));
    assert_eq!(world.path(id).await, "idle starting running completed cleanup idle");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn running_work_is_cancelled_at_the_drain_deadline() {
    let mut world = World::new().await;
    world.script("a", [Act::ok(200).stopping_for(3)]);
    let id = world.submit("a").await.unwrap();
    world.at(5).await;
    world.stop(30).await;
    assert_eq!(
        (world.end_of(id).await.as_str(), world.second()),
        ("cancelled: execution-cancelled", 38)
    );
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_service_stops_at_once() {
    let mut world = World::new().await;
    world.stop(30).await;
    assert_eq!(world.second(), 0);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn queued_work_survives_a_stop_and_runs_after_the_restart() {
    let mut world = World::new().await;
    let mut ids = Vec::new();
    for text in ["a", "b", "c"] {
        world.script(text, [Act::ok(10)]);
        ids.push(world.submit(text).await.unwrap());
    }
    world.at(5).await;
    world.stop(30).await;
    let mut stopped = Vec::new();
    for id in &ids {
        stopped.push(world.end_of(*id).await);
    }
    world.start().await;
    world.at(100).await;
    assert_eq!(stopped, ["completed", "unfinished", "unfinished"]);
    assert_eq!(world.driver.stage().begun, ["a#1@0", "b#1@10", "c#1@20"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_stopping_service_accepts_no_request() {
    let mut world = World::new().await;
    world.script("a", [Act::ok(20)]);
    world.submit("a").await.unwrap();
    let stopping = world.stopping(30);
    let asked = async {
        world.at(5).await;
        [world.submit("b").await, world.submit_to("stranger", "b").await]
    };
    let (refused, ()) = tokio::join!(asked, stopping);
    assert_eq!((refused, world.second()), ([Err(Code::Draining); 2], 20));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_stopping_service_is_shown_as_draining() {
    let mut world = World::new().await;
    world.script("a", [Act::ok(20)]);
    world.submit("a").await.unwrap();
    let stopping = world.stopping(30);
    let asked = async {
        world.at(5).await;
        world.agent(WORKER).await.health
    };
    assert_eq!(tokio::join!(asked, stopping).0, Health::Draining);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn waiters_for_queued_work_are_released_at_the_stop() {
    let mut world = World::new().await;
    world.script("a", [Act::ok(20)]);
    let running = world.submit("a").await.unwrap();
    let queued = world.submit("b").await.unwrap();
    world.at(5).await;
    let stopping = world.stopping(30);
    let wait = async |id| format!("{} at {}", world.wait(id).await, world.second());
    let (running, queued, ()) = tokio::join!(wait(running), wait(queued), stopping);
    assert_eq!([running, queued], ["completed at 20", "unfinished at 5"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn queued_work_can_be_cancelled_while_the_service_stops() {
    let mut world = World::new().await;
    world.script("a", [Act::ok(20)]);
    world.submit("a").await.unwrap();
    let queued = world.submit("b").await.unwrap();
    let stopping = world.stopping(30);
    let asked = async {
        world.at(5).await;
        world.cancel(queued).await
    };
    let (cancelled, ()) = tokio::join!(asked, stopping);
    assert_eq!(
        (cancelled, world.end_of(queued).await.as_str()),
        (Ok(()), "cancelled: execution-cancelled")
    );
    world.end().await;
}

/// The record is under way when the service begins to stop: its caller gets an answer that is
/// true, and the execution runs after the next start.
#[tokio::test(start_paused = true)]
async fn a_request_being_recorded_is_answered_during_the_stop() {
    let mut world = World::new().await;
    world.faults.slow(GatedCall::Accept, [5]);
    let stopping = world.stopping(30);
    let submitted = async { world.submit("a").await };
    let (submitted, ()) = tokio::join!(submitted, async {
        world.at(1).await;
        stopping.await;
    });
    let id = submitted.unwrap();
    let stopped = (world.end_of(id).await, world.second());
    world.start().await;
    assert_eq!((stopped, world.wait(id).await), (("unfinished".into(), 5), "completed".into()));
    world.end().await;
}

/// `b` loses patience at second 12, and the agent panics over it. Nothing that was held back
/// begins, neither `b` nor `c`.
#[tokio::test(start_paused = true)]
async fn a_crashed_agent_starts_no_work_while_the_service_stops() {
    let mut world =
        World::tuned(|spec| spec.limits.capacity.patience = Duration::from_secs(12)).await;
    world.script("a", [Act::ok(20)]);
    let running = world.submit("a").await.unwrap();
    world.submit("b").await.unwrap();
    world.at(3).await;
    let queued = world.submit("c").await.unwrap();
    let stopping = world.stopping(30);
    let crashed = async {
        world.at(11).await;
        world.clock.arm(9); // Eight readings are of the actor that ends it.
    };
    tokio::join!(crashed, stopping);
    let ends = [world.end_of(running).await, world.end_of(queued).await];
    assert_eq!(ends, ["failed: interrupted", "unfinished"]);
    assert_eq!(world.driver.stage().begun, ["a#1@0"]);
    world.end().await;
}
