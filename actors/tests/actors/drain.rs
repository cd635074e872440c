//! The drain of the service loses no execution.

use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::observation::status::Health;
use algonius_actors::testing::{DEFAULT_AGENT, LedgerCallKind, ScriptedAttempt, TestTree};

#[tokio::test(start_paused = true)]
async fn running_work_may_finish_within_the_drain_deadline() {
    let mut tree = TestTree::new().await;
    tree.script("a", [ScriptedAttempt::ok(20)]);
    let id = tree.submit("a").await.unwrap();
    tree.advance_to(5).await;
    tree.stop(30).await;
    assert_eq!((tree.describe_end(id).await.as_str(), tree.elapsed_seconds()), ("completed", 20));
    assert_eq!(tree.states(id).await, "idle starting running completed cleanup idle");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn running_work_is_cancelled_at_the_drain_deadline() {
    let mut tree = TestTree::new().await;
    tree.script("a", [ScriptedAttempt::ok(200).with_stop_delay(3)]);
    let id = tree.submit("a").await.unwrap();
    tree.advance_to(5).await;
    tree.stop(30).await;
    assert_eq!(
        (tree.describe_end(id).await.as_str(), tree.elapsed_seconds()),
        ("cancelled: execution-cancelled", 38)
    );
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_idle_service_stops_at_once() {
    let mut tree = TestTree::new().await;
    tree.stop(30).await;
    assert_eq!(tree.elapsed_seconds(), 0);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn queued_work_survives_a_stop_and_runs_after_the_restart() {
    let mut tree = TestTree::new().await;
    let mut ids = Vec::new();
    for text in ["a", "b", "c"] {
        tree.script(text, [ScriptedAttempt::ok(10)]);
        ids.push(tree.submit(text).await.unwrap());
    }
    tree.advance_to(5).await;
    tree.stop(30).await;
    let mut ends_after_stop = Vec::new();
    for id in &ids {
        ends_after_stop.push(tree.describe_end(*id).await);
    }
    tree.start().await;
    tree.advance_to(100).await;
    assert_eq!(ends_after_stop, ["completed", "unfinished", "unfinished"]);
    assert_eq!(tree.driver.recorded_work().starts, ["a#1@0", "b#1@10", "c#1@20"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_stopping_service_accepts_no_request() {
    let mut tree = TestTree::new().await;
    tree.script("a", [ScriptedAttempt::ok(20)]);
    tree.submit("a").await.unwrap();
    let stopping = tree.stop_future(30);
    let late_requests = async {
        tree.advance_to(5).await;
        [tree.submit("b").await, tree.submit_to("stranger", "b").await]
    };
    let (refused, ()) = tokio::join!(late_requests, stopping);
    assert_eq!((refused, tree.elapsed_seconds()), ([Err(Code::Draining); 2], 20));
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_stopping_service_is_shown_as_draining() {
    let mut tree = TestTree::new().await;
    tree.script("a", [ScriptedAttempt::ok(20)]);
    tree.submit("a").await.unwrap();
    let stopping = tree.stop_future(30);
    let health_request = async {
        tree.advance_to(5).await;
        tree.agent_status(DEFAULT_AGENT).await.health
    };
    assert_eq!(tokio::join!(health_request, stopping).0, Health::Draining);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn waiters_for_queued_work_are_released_at_the_stop() {
    let mut tree = TestTree::new().await;
    tree.script("a", [ScriptedAttempt::ok(20)]);
    let running = tree.submit("a").await.unwrap();
    let queued = tree.submit("b").await.unwrap();
    tree.advance_to(5).await;
    let stopping = tree.stop_future(30);
    let wait = async |id| format!("{} at {}", tree.wait_for_end(id).await, tree.elapsed_seconds());
    let (running, queued, ()) = tokio::join!(wait(running), wait(queued), stopping);
    assert_eq!([running, queued], ["completed at 20", "unfinished at 5"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn queued_work_can_be_cancelled_while_the_service_stops() {
    let mut tree = TestTree::new().await;
    tree.script("a", [ScriptedAttempt::ok(20)]);
    tree.submit("a").await.unwrap();
    let queued = tree.submit("b").await.unwrap();
    let stopping = tree.stop_future(30);
    let cancellation = async {
        tree.advance_to(5).await;
        tree.cancel(queued).await
    };
    let (cancelled, ()) = tokio::join!(cancellation, stopping);
    assert_eq!(
        (cancelled, tree.describe_end(queued).await.as_str()),
        (Ok(()), "cancelled: execution-cancelled")
    );
    tree.end().await;
}

/// The record is under way when the service begins to stop: its caller gets an answer that is
/// true, and the execution runs after the next start.
#[tokio::test(start_paused = true)]
async fn a_request_being_recorded_is_answered_during_the_stop() {
    let mut tree = TestTree::new().await;
    tree.faults.delay_next(LedgerCallKind::Accept, [5]);
    let stopping = tree.stop_future(30);
    let submission = async { tree.submit("a").await };
    let (submitted, ()) = tokio::join!(submission, async {
        tree.advance_to(1).await;
        stopping.await;
    });
    let id = submitted.unwrap();
    let end_after_stop = (tree.describe_end(id).await, tree.elapsed_seconds());
    tree.start().await;
    assert_eq!(
        (end_after_stop, tree.wait_for_end(id).await),
        (("unfinished".into(), 5), "completed".into())
    );
    tree.end().await;
}

/// `b` loses patience at second 12, and the agent panics over it. Nothing that was held back
/// begins, neither `b` nor `c`.
#[tokio::test(start_paused = true)]
async fn a_crashed_agent_starts_no_work_while_the_service_stops() {
    let mut tree = TestTree::with_tuned_agent(|spec| {
        spec.limits.capacity.queue_timeout = Duration::from_secs(12);
    })
    .await;
    tree.script("a", [ScriptedAttempt::ok(20)]);
    let running = tree.submit("a").await.unwrap();
    tree.submit("b").await.unwrap();
    tree.advance_to(3).await;
    let queued = tree.submit("c").await.unwrap();
    let stopping = tree.stop_future(30);
    let crash = async {
        tree.advance_to(11).await;
        tree.clock.panic_at_reading(9); // Eight readings are of the actor that ends it.
    };
    tokio::join!(crash, stopping);
    let ends = [tree.describe_end(running).await, tree.describe_end(queued).await];
    assert_eq!(ends, ["failed: interrupted", "unfinished"]);
    assert_eq!(tree.driver.recorded_work().starts, ["a#1@0"]);
    tree.end().await;
}
