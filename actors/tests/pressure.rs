//! A machine that has too little of something: new work stays out, what waits waits on, what runs
//! goes on.

use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::pressure::{Basis, Reading, Shortage};
use algonius_actors::model::status::Health;
use algonius_actors::testing::{Act, WORKER, World, full_disk, spec};

async fn watched() -> World {
    World::watched([spec(WORKER)]).await
}

#[tokio::test(start_paused = true)]
async fn new_work_is_refused_while_what_runs_goes_on_and_what_waits_begins_afterwards() {
    let world = watched().await;
    world.script("a", [Act::ok(20)]);
    let running = world.submit("a").await.unwrap();
    let waiting = world.submit("b").await.unwrap();
    world.meter.set(full_disk());
    world.at(5).await;
    let refused = world.submit("c").await;
    let end = format!("{} at {}", world.wait(running).await, world.second());
    world.at(50).await;
    let begun = world.driver.stage().begun;
    world.meter.set(Reading::default());
    let waited = format!("{} at {}", world.wait(waiting).await, world.second());
    let again = world.submit("c").await.map(drop);
    assert_eq!((refused, again), (Err(Code::Pressure), Ok(())));
    assert_eq!((end.as_str(), begun), ("completed at 20", vec!["a#1@0".to_owned()]));
    assert_eq!(waited, "completed at 51");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn who_waits_for_a_machine_at_ease_loses_patience_in_time() {
    let mut worker = spec(WORKER);
    worker.capacity.patience = Duration::from_secs(60);
    let world = World::watched([worker]).await;
    world.script("a", [Act::ok(10)]);
    world.submit("a").await.unwrap();
    let waiting = world.submit("b").await.unwrap();
    world.meter.set(full_disk());
    let end = format!("{} at {}", world.wait(waiting).await, world.second());
    assert_eq!(end, "failed: queue-timeout at 60");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_taken_up_under_pressure_waits_too() {
    let mut world = watched().await;
    world.script("a", [Act::ok(100)]);
    world.submit("a").await.unwrap();
    let waiting = world.submit("b").await.unwrap();
    world.meter.set(full_disk());
    world.at(5).await;
    world.restart().await;
    world.at(30).await;
    let begun = world.driver.stage().begun;
    world.meter.set(Reading::default());
    let end = format!("{} at {}", world.wait(waiting).await, world.second());
    assert_eq!((begun.as_slice(), end.as_str()), (&["a#1@0".to_owned()][..], "completed at 30"));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_of_what_runs_is_no_new_work() {
    let world = watched().await;
    world.script("a", [Act::fail(10, Code::TransientFailure), Act::ok(10)]);
    let id = world.submit("a").await.unwrap();
    world.meter.set(full_disk());
    assert_eq!((world.wait(id).await.as_str(), world.second()), ("completed", 21));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_judgement_and_what_was_read_are_shown() {
    let world = watched().await;
    world.meter.set(Reading { cores: 2, ..Reading::default() });
    world.at(4).await;
    let before = world.status().await;
    world.meter.set(full_disk());
    world.at(9).await;
    let after = world.status().await;
    assert_eq!(before.monitor.map(|monitor| monitor.health), Some(Health::Alive));
    assert_eq!(before.pressure.map(|pressure| pressure.short), Some(vec![]));
    let shown = after.pressure.unwrap();
    let story = (shown.short, shown.basis, shown.reading);
    assert_eq!(story, (vec![Shortage::Disk], Basis::Fallback, full_disk()));
    assert_eq!((shown.at - shown.since).num_milliseconds(), 3500);
    world.end().await;
}

/// The fault of the watch is nobody's reason to refuse; its successor looks again.
#[tokio::test(start_paused = true)]
async fn a_monitor_that_panics_is_started_again() {
    let world = watched().await;
    world.meter.set(full_disk());
    world.at(5).await;
    let before = world.submit("a").await;
    world.clock.arm(1);
    world.at(6).await;
    let monitor = world.status().await.monitor.unwrap();
    world.at(9).await;
    let after = world.submit("b").await;
    assert_eq!((monitor.health, monitor.restarts), (Health::Alive, 1));
    assert_eq!((before, after), (Err(Code::Pressure), Err(Code::Pressure)));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn nobody_is_refused_where_nobody_looks() {
    let world = World::new().await;
    world.meter.set(full_disk());
    world.at(5).await;
    let status = world.status().await;
    assert_eq!((world.run("a").await.as_str(), status.pressure), ("completed at 5", None));
    world.end().await;
}
