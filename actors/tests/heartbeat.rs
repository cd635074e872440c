//! What running work takes of the machine is told from time to time, in virtual time.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::ports::ledger::Ledger;
use algonius_actors::testing::{Act, WORKER, World};

fn beating(spec: &mut AgentSpec) {
    spec.program_mut().unwrap().heartbeat = Some(Duration::from_secs(30));
}

/// The second of the world of each heartbeat, with the seconds that the attempt had taken.
async fn beats(world: &World, id: ExecutionId) -> Vec<(i64, u64)> {
    let events = world.ledger.events(id, 0).await.unwrap();
    let beats = events.iter().filter_map(|event| match &event.data {
        EventKind::Heartbeat(usage) => {
            Some((event.at.timestamp() - 1_800_000_000, usage.cpu_ms / 1000))
        }
        _ => None,
    });
    beats.collect()
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_reports_usage_of_running_work_only() {
    let world = World::tuned(beating).await;
    world.script("long", [Act::ok(95).starting_for(2)]);
    let long = world.submit("long").await.unwrap();
    let waits = world.submit("waits").await.unwrap();
    world.at(50).await;
    let running = world.agent(WORKER).await.work.running;
    assert_eq!(running[0].usage.map(|usage| usage.cpu_ms), Some(32_000));
    assert_eq!(world.wait(long).await, "completed");
    assert_eq!(world.wait(waits).await, "completed");
    assert_eq!(beats(&world, long).await, [(32, 32), (62, 62), (92, 92)]);
    assert_eq!(beats(&world, waits).await, []);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn each_attempt_restarts_its_heartbeat() {
    let world = World::tuned(beating).await;
    let fails = Act::fail(40, Code::TransientFailure);
    world.script("flaky", [fails, Act::ok(1000).stopping_for(10)]);
    let id = world.submit("flaky").await.unwrap();
    world.at(100).await;
    world.cancel(id).await.unwrap();
    assert_eq!(world.wait(id).await, "cancelled: execution-cancelled");
    assert_eq!(beats(&world, id).await, [(30, 30), (71, 30)]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_does_not_extend_the_idle_timeout() {
    let world = World::tuned(|spec| {
        beating(spec);
        spec.limits.deadlines.idle = Some(Duration::from_secs(70));
    });
    let world = world.await;
    world.script("silent", [Act::ok(1000)]);
    assert_eq!(world.run("silent").await, "timeout: idle-timeout at 70");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn resumed_work_sends_heartbeats_again() {
    let mut world = World::tuned(beating).await;
    world.script("long", [Act::ok(100)]);
    let id = world.submit("long").await.unwrap();
    world.at(40).await;
    world.driver.hold(id);
    world.restart().await;
    world.at(75).await;
    assert_eq!(beats(&world, id).await, [(30, 30), (70, 30)]);
    world.end().await;
}
