//! Deadlines of executions, and the warnings before them, in virtual time.

use std::time::Duration;

use algonius_actors::model::execution::event::EventKind;
use algonius_actors::ports::ledger::Ledger;
use algonius_actors::testing::{ScriptedAttempt, TestTree};

/// How an agent ends that may run for 300 seconds and be silent for so many, and the warnings on
/// the way: which, in which second, and how many seconds were left.
async fn run_with_idle_timeout(
    idle: Option<u64>,
    attempt: ScriptedAttempt,
) -> (String, Vec<String>) {
    let tree = TestTree::with_tuned_agent(|spec| {
        spec.limits.timeouts.idle = idle.map(Duration::from_secs);
    })
    .await;
    tree.script("work", [attempt]);
    let end = tree.submit_and_describe_end("work").await;
    let id = tree.agent_status("worker").await.work.last_execution.unwrap().id;
    let accepted_at = tree.record(id).await.unwrap().accepted_at;
    let events = tree.ledger.events(id, 0).await.unwrap();
    let warnings = events.iter().filter_map(|event| match &event.data {
        EventKind::DeadlineApproaching { limit, ends_at, .. } => {
            let (at, left) =
                ((event.at - accepted_at).num_seconds(), (*ends_at - event.at).num_seconds());
            Some(format!("{} at {at}, {left} left", limit.as_str()))
        }
        _ => None,
    });
    let result = (end, warnings.collect());
    tree.end().await;
    result
}

fn expected_result(end: &str, warnings: &[&str]) -> (String, Vec<String>) {
    (end.to_owned(), warnings.iter().map(|warning| (*warning).to_owned()).collect())
}

#[tokio::test(start_paused = true)]
async fn a_run_is_warned_before_its_deadline_and_ended_at_it() {
    let end = "timeout: execution-timeout at 300";
    assert_eq!(
        run_with_idle_timeout(None, ScriptedAttempt::ok(400)).await,
        expected_result(end, &["run at 270, 30 left"])
    );
    assert_eq!(
        run_with_idle_timeout(None, ScriptedAttempt::ok(299)).await,
        expected_result("completed at 299", &["run at 270, 30 left"])
    );
    assert_eq!(
        run_with_idle_timeout(None, ScriptedAttempt::ok(269)).await,
        expected_result("completed at 269", &[])
    );
}

#[tokio::test(start_paused = true)]
async fn a_silent_run_is_warned_before_its_idle_timeout() {
    let end = "timeout: idle-timeout at 60";
    assert_eq!(
        run_with_idle_timeout(Some(60), ScriptedAttempt::ok(100)).await,
        expected_result(end, &["idle at 54, 6 left"])
    );
    assert_eq!(
        run_with_idle_timeout(Some(60), ScriptedAttempt::ok(50)).await,
        expected_result("completed at 50", &[])
    );
}

/// The time before it lived is not counted.
#[tokio::test(start_paused = true)]
async fn the_idle_time_starts_with_the_process() {
    let attempt = ScriptedAttempt::ok(100).with_start_delay(20);
    let end = "timeout: idle-timeout at 80";
    assert_eq!(
        run_with_idle_timeout(Some(60), attempt).await,
        expected_result(end, &["idle at 74, 6 left"])
    );
}

#[tokio::test(start_paused = true)]
async fn each_output_restarts_the_idle_time() {
    let attempt = ScriptedAttempt::ok(30).with_stderr_pauses([50, 50, 50, 50]);
    assert_eq!(
        run_with_idle_timeout(Some(60), attempt).await,
        expected_result("completed at 230", &[])
    );
    let attempt = ScriptedAttempt::ok(100).with_stderr_pauses([10, 57, 1, 40]);
    let warnings = ["idle at 64, 6 left", "idle at 162, 6 left"];
    assert_eq!(
        run_with_idle_timeout(Some(60), attempt).await,
        expected_result("timeout: idle-timeout at 168", &warnings)
    );
}

#[tokio::test(start_paused = true)]
async fn output_does_not_extend_the_run_deadline() {
    let attempt = ScriptedAttempt::ok(0).with_stderr_pauses([20; 20]);
    let end = "timeout: execution-timeout at 300";
    assert_eq!(
        run_with_idle_timeout(Some(60), attempt).await,
        expected_result(end, &["run at 270, 30 left"])
    );
}

/// The timers of the first attempt ring while the second one runs.
#[tokio::test(start_paused = true)]
async fn a_warning_of_an_earlier_attempt_does_not_reach_the_next() {
    let tree = TestTree::with_tuned_agent(|spec| {
        spec.limits.timeouts.idle = Some(Duration::from_secs(60));
    })
    .await;
    let failing_attempt =
        ScriptedAttempt::fail(40, algonius_actors::model::code::Code::TransientFailure);
    tree.script("work", [failing_attempt, ScriptedAttempt::ok(45)]);
    assert_eq!(tree.submit_and_describe_end("work").await, "completed at 86");
    let id = tree.agent_status("worker").await.work.last_execution.unwrap().id;
    let events = tree.ledger.events(id, 0).await.unwrap();
    assert!(
        !events.iter().any(|event| matches!(event.data, EventKind::DeadlineApproaching { .. }))
    );
    tree.end().await;
}
