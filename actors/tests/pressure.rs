//! A machine that has too little of something: new work stays out, what waits waits on, what runs
//! goes on.

use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::host::pressure::{HostReading, PressureBasis, Shortage};
use algonius_actors::model::observation::status::Health;
use algonius_actors::testing::{Act, WORKER, World, full_disk, spec};

async fn watched() -> World {
    World::watched([spec(WORKER)]).await
}

#[tokio::test(start_paused = true)]
async fn pressure_refuses_new_work_and_holds_queued_work() {
    let world = watched().await;
    world.script("a", [Act::ok(20)]);
    let running = world.submit("a").await.unwrap();
    let waiting = world.submit("b").await.unwrap();
    world.host_metrics.set(full_disk());
    world.at(5).await;
    let refused = world.submit("c").await;
    let end = format!("{} at {}", world.wait(running).await, world.second());
    world.at(50).await;
    let begun = world.driver.stage().begun;
    world.host_metrics.set(HostReading::default());
    let waited = format!("{} at {}", world.wait(waiting).await, world.second());
    let again = world.submit("c").await.map(drop);
    assert_eq!((refused, again), (Err(Code::Pressure), Ok(())));
    assert_eq!((end.as_str(), begun), ("completed at 20", vec!["a#1@0".to_owned()]));
    assert_eq!(waited, "completed at 51");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_queue_timeout_fires_under_pressure() {
    let mut worker = spec(WORKER);
    worker.limits.capacity.patience = Duration::from_secs(60);
    let world = World::watched([worker]).await;
    world.script("a", [Act::ok(10)]);
    world.submit("a").await.unwrap();
    let waiting = world.submit("b").await.unwrap();
    world.host_metrics.set(full_disk());
    let end = format!("{} at {}", world.wait(waiting).await, world.second());
    assert_eq!(end, "failed: queue-timeout at 60");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn resumed_work_waits_under_pressure() {
    let mut world = watched().await;
    world.script("a", [Act::ok(100)]);
    world.submit("a").await.unwrap();
    let waiting = world.submit("b").await.unwrap();
    world.host_metrics.set(full_disk());
    world.at(5).await;
    world.restart().await;
    world.at(30).await;
    let begun = world.driver.stage().begun;
    world.host_metrics.set(HostReading::default());
    let end = format!("{} at {}", world.wait(waiting).await, world.second());
    assert_eq!((begun.as_slice(), end.as_str()), (&["a#1@0".to_owned()][..], "completed at 30"));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_under_pressure_is_not_new_work() {
    let world = watched().await;
    world.script("a", [Act::fail(10, Code::TransientFailure), Act::ok(10)]);
    let id = world.submit("a").await.unwrap();
    world.host_metrics.set(full_disk());
    assert_eq!((world.wait(id).await.as_str(), world.second()), ("completed", 21));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn pressure_and_its_readings_are_shown() {
    let world = watched().await;
    world.host_metrics.set(HostReading { cores: 2, ..HostReading::default() });
    world.at(4).await;
    let before = world.status().await;
    world.host_metrics.set(full_disk());
    world.at(9).await;
    let after = world.status().await;
    assert_eq!(before.monitor.map(|monitor| monitor.health), Some(Health::Alive));
    assert_eq!(before.pressure.map(|pressure| pressure.short), Some(vec![]));
    let shown = after.pressure.unwrap();
    let story = (shown.short, shown.basis, shown.reading);
    assert_eq!(story, (vec![Shortage::Disk], PressureBasis::Fallback, full_disk()));
    assert_eq!((shown.at - shown.since).num_milliseconds(), 3500);
    world.end().await;
}

/// The fault of the watch is nobody's reason to refuse; its successor looks again.
#[tokio::test(start_paused = true)]
async fn a_panicked_monitor_is_restarted() {
    let world = watched().await;
    world.host_metrics.set(full_disk());
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
async fn full_disks_are_ignored_without_a_pressure_watch() {
    let world = World::new().await;
    world.host_metrics.set(full_disk());
    world.at(5).await;
    let status = world.status().await;
    assert_eq!((world.run("a").await.as_str(), status.pressure), ("completed at 5", None));
    world.end().await;
}
