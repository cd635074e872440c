//! A wall clock that is set forward or back changes neither running nor queued executions.

use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::testing::{ScriptedAttempt, TestTree};

/// Two hours, and more than a year.
const CLOCK_JUMPS: [i64; 4] = [7_200, -7_200, 34_560_000, -34_560_000];

#[tokio::test(start_paused = true)]
async fn deadlines_and_queue_order_survive_clock_jumps() {
    for seconds in CLOCK_JUMPS {
        let tree = TestTree::new().await;
        tree.script("a", [ScriptedAttempt::ok(200)]);
        tree.script("b", [ScriptedAttempt::ok(9_999)]);
        let (a, b) = (tree.submit("a").await.unwrap(), tree.submit("b").await.unwrap());
        tree.advance_to(5).await;
        tree.clock.shift_wall_clock(seconds);
        let c = tree.submit("c").await.unwrap();
        let ends = [tree.wait_for_end(a).await, tree.wait_for_end(b).await];
        // Deadlines, retries and queue positions follow a clock that does not jump
        assert_eq!(ends, ["completed", "timeout: execution-timeout"], "{seconds}");
        assert_eq!((tree.elapsed_seconds(), tree.wait_for_end(c).await), (500, "completed".into()));
        tree.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_queue_timeout_holds_when_the_clock_is_set_back() {
    let tree = TestTree::with_tuned_agent(|spec| {
        spec.limits.capacity.queue_timeout = Duration::from_secs(20);
    })
    .await;
    tree.script("a", [ScriptedAttempt::ok(100)]);
    tree.submit("a").await.unwrap();
    let b = tree.submit("b").await.unwrap();
    tree.clock.shift_wall_clock(-7_200);
    let end = tree.wait_for_end(b).await;
    assert_eq!((end.as_str(), tree.elapsed_seconds()), ("failed: queue-timeout", 20));
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn retry_pauses_are_kept_when_the_clock_jumps() {
    for seconds in CLOCK_JUMPS {
        let tree = TestTree::new().await;
        tree.script(
            "a",
            [
                ScriptedAttempt::fail(0, Code::TransientFailure),
                ScriptedAttempt::fail(0, Code::TransientFailure),
                ScriptedAttempt::ok(1),
            ],
        );
        let id = tree.submit("a").await.unwrap();
        tree.clock.shift_wall_clock(seconds);
        assert_eq!(tree.wait_for_end(id).await, "completed", "{seconds}");
        // Deadlines, retries and queue positions follow a clock that does not jump
        assert_eq!(tree.driver.recorded_work().starts, ["a#1@0", "a#2@1", "a#3@3"]);
        tree.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_resumed_run_time_follows_the_process_not_the_clock() {
    for seconds in CLOCK_JUMPS {
        let mut tree = TestTree::new().await;
        tree.script("a", [ScriptedAttempt::ok(9_999)]);
        let id = tree.submit("a").await.unwrap();
        tree.advance_to(5).await;
        tree.driver.preserve_with_run_time(id, Duration::from_secs(5));
        tree.kill().await;
        tree.clock.shift_wall_clock(seconds);
        tree.start().await;
        assert_eq!(tree.wait_for_end(id).await, "timeout: execution-timeout");
        // The run time of resumed work is the lifetime of its process, whatever the wall
        // clock shows
        assert_eq!(
            tree.elapsed_seconds(),
            300,
            "its five minutes, whatever the clock said: {seconds}"
        );
        tree.end().await;
    }
}
