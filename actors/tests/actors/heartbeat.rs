//! The resource use of running executions is reported at intervals, in virtual time.

use std::time::Duration;

use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::ports::ledger::Ledger;
use algonius_actors::testing::{DEFAULT_AGENT, ScriptedAttempt, TestTree};

fn enable_heartbeat(spec: &mut AgentSpec) {
    spec.program_worker_mut().unwrap().heartbeat_interval = Some(Duration::from_secs(30));
}

/// The virtual second of each heartbeat, with the seconds that the attempt had taken.
async fn heartbeats(tree: &TestTree, id: ExecutionId) -> Vec<(i64, u64)> {
    let events = tree.ledger.events(id, 0).await.unwrap();
    let heartbeat_times = events.iter().filter_map(|event| match &event.data {
        EventKind::Heartbeat(usage) => {
            Some((event.at.timestamp() - 1_800_000_000, usage.cpu_ms / 1000))
        }
        _ => None,
    });
    heartbeat_times.collect()
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_reports_usage_of_running_work_only() {
    let tree = TestTree::with_tuned_agent(enable_heartbeat).await;
    tree.script("long", [ScriptedAttempt::ok(95).with_start_delay(2)]);
    let long = tree.submit("long").await.unwrap();
    let waiting = tree.submit("waits").await.unwrap();
    tree.advance_to(50).await;
    let running = tree.agent_status(DEFAULT_AGENT).await.work.running;
    assert_eq!(running[0].usage.map(|usage| usage.cpu_ms), Some(32_000));
    assert_eq!(tree.wait_for_end(long).await, "completed");
    assert_eq!(tree.wait_for_end(waiting).await, "completed");
    assert_eq!(heartbeats(&tree, long).await, [(32, 32), (62, 62), (92, 92)]);
    assert_eq!(heartbeats(&tree, waiting).await, []);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn each_attempt_restarts_its_heartbeat() {
    let tree = TestTree::with_tuned_agent(enable_heartbeat).await;
    let failing_attempt = ScriptedAttempt::fail(40, Code::TransientFailure);
    tree.script("flaky", [failing_attempt, ScriptedAttempt::ok(1000).with_stop_delay(10)]);
    let id = tree.submit("flaky").await.unwrap();
    tree.advance_to(100).await;
    tree.cancel(id).await.unwrap();
    assert_eq!(tree.wait_for_end(id).await, "cancelled: execution-cancelled");
    assert_eq!(heartbeats(&tree, id).await, [(30, 30), (71, 30)]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_heartbeat_does_not_extend_the_idle_timeout() {
    let tree = TestTree::with_tuned_agent(|spec| {
        enable_heartbeat(spec);
        spec.limits.timeouts.idle = Some(Duration::from_secs(70));
    });
    let tree = tree.await;
    tree.script("silent", [ScriptedAttempt::ok(1000)]);
    assert_eq!(tree.submit_and_describe_end("silent").await, "timeout: idle-timeout at 70");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn resumed_work_sends_heartbeats_again() {
    let mut tree = TestTree::with_tuned_agent(enable_heartbeat).await;
    tree.script("long", [ScriptedAttempt::ok(100)]);
    let id = tree.submit("long").await.unwrap();
    tree.advance_to(40).await;
    tree.driver.preserve_over_restart(id);
    tree.restart().await;
    tree.advance_to(75).await;
    assert_eq!(heartbeats(&tree, id).await, [(30, 30), (70, 30)]);
    tree.end().await;
}
