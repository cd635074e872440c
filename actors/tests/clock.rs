//! A wall clock that somebody sets forward or back changes nothing for what runs and what waits.

use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::testing::{Act, World};

/// Two hours, and more than a year.
const JUMPS: [i64; 4] = [7_200, -7_200, 34_560_000, -34_560_000];

#[tokio::test(start_paused = true)]
async fn deadlines_and_queue_order_survive_clock_jumps() {
    for seconds in JUMPS {
        let world = World::new().await;
        world.script("a", [Act::ok(200)]);
        world.script("b", [Act::ok(9_999)]);
        let (a, b) = (world.submit("a").await.unwrap(), world.submit("b").await.unwrap());
        world.at(5).await;
        world.clock.jump(seconds);
        let c = world.submit("c").await.unwrap();
        let ends = [world.wait(a).await, world.wait(b).await];
        // Deadlines, retries and queue positions follow a clock that does not jump
        assert_eq!(ends, ["completed", "timeout: execution-timeout"], "{seconds}");
        assert_eq!((world.second(), world.wait(c).await), (500, "completed".into()));
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_queue_timeout_holds_when_the_clock_is_set_back() {
    let world = World::tuned(|spec| spec.limits.capacity.patience = Duration::from_secs(20)).await;
    world.script("a", [Act::ok(100)]);
    world.submit("a").await.unwrap();
    let b = world.submit("b").await.unwrap();
    world.clock.jump(-7_200);
    let end = world.wait(b).await;
    assert_eq!((end.as_str(), world.second()), ("failed: queue-timeout", 20));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn retry_pauses_are_kept_when_the_clock_jumps() {
    for seconds in JUMPS {
        let world = World::new().await;
        world.script(
            "a",
            [
                Act::fail(0, Code::TransientFailure),
                Act::fail(0, Code::TransientFailure),
                Act::ok(1),
            ],
        );
        let id = world.submit("a").await.unwrap();
        world.clock.jump(seconds);
        assert_eq!(world.wait(id).await, "completed", "{seconds}");
        // Deadlines, retries and queue positions follow a clock that does not jump
        assert_eq!(world.driver.stage().begun, ["a#1@0", "a#2@1", "a#3@3"]);
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_resumed_run_time_follows_the_process_not_the_clock() {
    for seconds in JUMPS {
        let mut world = World::new().await;
        world.script("a", [Act::ok(9_999)]);
        let id = world.submit("a").await.unwrap();
        world.at(5).await;
        world.driver.hold_aged(id, Duration::from_secs(5));
        world.kill().await;
        world.clock.jump(seconds);
        world.start().await;
        assert_eq!(world.wait(id).await, "timeout: execution-timeout");
        // The run time of resumed work is the lifetime of its process, whatever the wall
        // clock shows
        assert_eq!(world.second(), 300, "its five minutes, whatever the clock said: {seconds}");
        world.end().await;
    }
}
