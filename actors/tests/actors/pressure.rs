//! A machine short of a resource: new work is refused, queued work waits, and running work continues.

use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::host::pressure::{HostReading, PressureBasis, Shortage};
use algonius_actors::model::observation::status::Health;
use algonius_actors::testing::{DEFAULT_AGENT, ScriptedAttempt, TestTree, agent_spec, full_disk};

async fn monitored_tree() -> TestTree {
    TestTree::with_monitor([agent_spec(DEFAULT_AGENT)]).await
}

#[tokio::test(start_paused = true)]
async fn pressure_refuses_new_work_and_holds_queued_work() {
    let tree = monitored_tree().await;
    tree.script("a", [ScriptedAttempt::ok(20)]);
    let running = tree.submit("a").await.unwrap();
    let waiting = tree.submit("b").await.unwrap();
    tree.host_metrics.set_reading(full_disk());
    tree.advance_to(5).await;
    let refused = tree.submit("c").await;
    let end = format!("{} at {}", tree.wait_for_end(running).await, tree.elapsed_seconds());
    tree.advance_to(50).await;
    let started = tree.driver.recorded_work().starts;
    tree.host_metrics.set_reading(HostReading::default());
    let waiting_end = format!("{} at {}", tree.wait_for_end(waiting).await, tree.elapsed_seconds());
    let accepted = tree.submit("c").await.map(drop);
    assert_eq!((refused, accepted), (Err(Code::Pressure), Ok(())));
    assert_eq!((end.as_str(), started), ("completed at 20", vec!["a#1@0".to_owned()]));
    assert_eq!(waiting_end, "completed at 51");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_queue_timeout_fires_under_pressure() {
    let mut worker = agent_spec(DEFAULT_AGENT);
    worker.limits.capacity.queue_timeout = Duration::from_secs(60);
    let tree = TestTree::with_monitor([worker]).await;
    tree.script("a", [ScriptedAttempt::ok(10)]);
    tree.submit("a").await.unwrap();
    let waiting = tree.submit("b").await.unwrap();
    tree.host_metrics.set_reading(full_disk());
    let end = format!("{} at {}", tree.wait_for_end(waiting).await, tree.elapsed_seconds());
    assert_eq!(end, "failed: queue-timeout at 60");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn resumed_work_waits_under_pressure() {
    let mut tree = monitored_tree().await;
    tree.script("a", [ScriptedAttempt::ok(100)]);
    tree.submit("a").await.unwrap();
    let waiting = tree.submit("b").await.unwrap();
    tree.host_metrics.set_reading(full_disk());
    tree.advance_to(5).await;
    tree.restart().await;
    tree.advance_to(30).await;
    let started = tree.driver.recorded_work().starts;
    tree.host_metrics.set_reading(HostReading::default());
    let end = format!("{} at {}", tree.wait_for_end(waiting).await, tree.elapsed_seconds());
    assert_eq!((started.as_slice(), end.as_str()), (&["a#1@0".to_owned()][..], "completed at 30"));
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_retry_under_pressure_is_not_new_work() {
    let tree = monitored_tree().await;
    tree.script("a", [ScriptedAttempt::fail(10, Code::TransientFailure), ScriptedAttempt::ok(10)]);
    let id = tree.submit("a").await.unwrap();
    tree.host_metrics.set_reading(full_disk());
    assert_eq!((tree.wait_for_end(id).await.as_str(), tree.elapsed_seconds()), ("completed", 21));
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_under_pressure_is_no_new_work() {
    let tree = monitored_tree().await;
    tree.script("a", [ScriptedAttempt::ok(20)]);
    let (id, _) = tree.submit_with_message_id(DEFAULT_AGENT, "message", "a").await.unwrap();
    tree.host_metrics.set_reading(full_disk());
    tree.advance_to(10).await;
    let duplicate = tree.submit_with_message_id(DEFAULT_AGENT, "message", "a").await;
    let other = tree.submit_with_message_id(DEFAULT_AGENT, "other", "a").await;
    assert_eq!((duplicate, other), (Ok((id, true)), Err(Code::Pressure)));
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn pressure_and_its_readings_are_shown() {
    let tree = monitored_tree().await;
    tree.host_metrics.set_reading(HostReading { cores: 2, ..HostReading::default() });
    tree.advance_to(4).await;
    let before = tree.status().await;
    tree.host_metrics.set_reading(full_disk());
    tree.advance_to(9).await;
    let after = tree.status().await;
    assert_eq!(before.monitor.map(|monitor| monitor.health), Some(Health::Alive));
    assert_eq!(before.pressure.map(|pressure| pressure.short), Some(vec![]));
    let pressure = after.pressure.unwrap();
    let observed = (pressure.short, pressure.basis, pressure.reading);
    assert_eq!(observed, (vec![Shortage::Disk], PressureBasis::Fallback, full_disk()));
    assert_eq!((pressure.at - pressure.since).num_milliseconds(), 3500);
    tree.end().await;
}

/// The fault of the watch is nobody's reason to refuse; its successor looks again.
#[tokio::test(start_paused = true)]
async fn a_panicked_monitor_is_restarted() {
    let tree = monitored_tree().await;
    tree.host_metrics.set_reading(full_disk());
    tree.advance_to(5).await;
    let before = tree.submit("a").await;
    tree.clock.panic_at_reading(1);
    tree.advance_to(6).await;
    let monitor = tree.status().await.monitor.unwrap();
    tree.advance_to(9).await;
    let after = tree.submit("b").await;
    assert_eq!((monitor.health, monitor.restarts), (Health::Alive, 1));
    assert_eq!((before, after), (Err(Code::Pressure), Err(Code::Pressure)));
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn full_disks_are_ignored_without_a_pressure_watch() {
    let tree = TestTree::new().await;
    tree.host_metrics.set_reading(full_disk());
    tree.advance_to(5).await;
    let status = tree.status().await;
    assert_eq!(
        (tree.submit_and_describe_end("a").await.as_str(), status.pressure),
        ("completed at 5", None)
    );
    tree.end().await;
}
