//! Inputs that redaction changes are sealed: they run, and are repeated, exactly as they were sent.

use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::Outcome;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::schedule::{ScheduleOrigin, ScheduleSpec, TextSealing};
use algonius_actors::ports::history::History as _;
use algonius_actors::ports::ledger::Ledger as _;
use algonius_actors::ports::schedule_store::ScheduleStore as _;
use algonius_actors::testing::{DEFAULT_AGENT, ScriptedAttempt, TestTree, cron_schedule};

const SECRET_INPUT: &str = "write to jane.doe@host.test, password=Hunter22x";

/// One runs and one waits whose input redaction changes; then the service is killed.
async fn kill_with_secret_input(tree: &mut TestTree) -> ExecutionId {
    tree.script("a", [ScriptedAttempt::ok(10)]);
    tree.script(SECRET_INPUT, [ScriptedAttempt::ok(10)]);
    tree.submit("a").await.unwrap();
    let id = tree.submit(SECRET_INPUT).await.unwrap();
    tree.advance_to(5).await;
    tree.kill().await;
    assert!(!tree.record(id).await.unwrap().stores_raw_input);
    id
}

async fn sealed_input(tree: &TestTree, id: ExecutionId) -> Option<Vec<u8>> {
    tree.ledger.sealed_input(id).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_queued_input_with_a_secret_runs_after_a_kill() {
    let mut tree = TestTree::new().await;
    let id = kill_with_secret_input(&mut tree).await;
    let bytes = sealed_input(&tree, id).await.unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains("jane"));
    tree.start().await;
    assert_eq!(tree.wait_for_end(id).await, "completed");
    assert_eq!(
        tree.driver.recorded_work().starts,
        ["a#1@0".to_owned(), format!("{SECRET_INPUT}#1@5")]
    );
    assert_eq!(sealed_input(&tree, id).await, None, "erased with the end");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_input_without_its_key_is_not_run() {
    let mut tree = TestTree::new().await;
    let id = kill_with_secret_input(&mut tree).await;
    tree.sealer.lose_key();
    tree.start().await;
    assert_eq!(tree.wait_for_end(id).await, "failed: interrupted-not-run");
    let failure = tree.record(id).await.unwrap().failure.unwrap();
    assert!(failure.message.contains("inputs.key_file"), "{}", failure.message);
    // The right key brings the input back.
    let (api, caller) = (tree.api().clone(), tree.caller());
    let refused = api.requests.retry(&caller, id).await.unwrap_err();
    assert_eq!(refused.code, Code::NotReplayable);
    tree.sealer.restore_key();
    let retry_id = api.requests.retry(&caller, id).await.unwrap().execution;
    assert_eq!(tree.wait_for_end(retry_id).await, "completed");
    assert_eq!(
        tree.driver.recorded_work().starts.last().unwrap().split('#').next(),
        Some(SECRET_INPUT)
    );
    tree.end().await;
}

/// The work continues after the kill, then fails, and the retry uses the original input.
#[tokio::test(start_paused = true)]
async fn reattached_work_is_retried_with_its_raw_input() {
    let mut tree = TestTree::new().await;
    tree.script(SECRET_INPUT, [ScriptedAttempt::ok(10)]);
    let id = tree.submit(SECRET_INPUT).await.unwrap();
    tree.advance_to(5).await;
    tree.kill().await;
    tree.script(
        SECRET_INPUT,
        [ScriptedAttempt::fail(1, Code::TransientFailure), ScriptedAttempt::ok(3)],
    );
    tree.driver.preserve_over_restart(id);
    tree.start().await;
    assert_eq!(tree.wait_for_end(id).await, "completed");
    let started = tree.driver.recorded_work().starts;
    assert_eq!(
        started,
        [
            format!("{SECRET_INPUT}#1@0"),
            format!("again {SECRET_INPUT}#1@5"),
            format!("{SECRET_INPUT}#2@7")
        ]
    );
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_actor_loses_no_queued_input() {
    let tree = TestTree::new().await;
    tree.script("a", [ScriptedAttempt::ok(10)]);
    tree.script(SECRET_INPUT, [ScriptedAttempt::ok(1)]);
    tree.submit("a").await.unwrap();
    let id = tree.submit(SECRET_INPUT).await.unwrap();
    tree.crash_agent(DEFAULT_AGENT).await;
    assert_eq!(tree.wait_for_end(id).await, "completed");
    assert_eq!(
        tree.driver.recorded_work().starts,
        ["a#1@0".to_owned(), format!("{SECRET_INPUT}#1@0")]
    );
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_execution_can_be_retried_within_the_window() {
    let mut tree = TestTree::new().await;
    tree.script(
        SECRET_INPUT,
        [ScriptedAttempt::fail(1, Code::Exit), ScriptedAttempt::ok(1), ScriptedAttempt::ok(1)],
    );
    let id = tree.submit(SECRET_INPUT).await.unwrap();
    assert_eq!(tree.wait_for_end(id).await, "failed: agent-exit");
    tree.restart().await;
    tree.script(SECRET_INPUT, [ScriptedAttempt::ok(1)]);
    let (api, caller) = (tree.api().clone(), tree.caller());
    assert!(api.reader.can_retry(&tree.record(id).await.unwrap()).await.unwrap());
    let retry_id = api.requests.retry(&caller, id).await.unwrap().execution;
    assert_eq!(tree.wait_for_end(retry_id).await, "completed");
    // What completed is not kept for another retry.
    assert_eq!(sealed_input(&tree, retry_id).await, None);
    let refused = api.requests.retry(&caller, retry_id).await.unwrap_err();
    assert_eq!(refused.code, Code::NotReplayable);
    // After the window neither is what failed.
    let ended_at = tree.record(id).await.unwrap().ended_at.unwrap();
    assert_eq!(tree.ledger.erase_sealed_inputs(ended_at).await.unwrap(), 0);
    assert_eq!(
        tree.ledger.erase_sealed_inputs(ended_at + Duration::from_millis(1)).await.unwrap(),
        1
    );
    assert_eq!(api.requests.retry(&caller, id).await.unwrap_err().code, Code::NotReplayable);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn cancelling_an_execution_erases_its_sealed_input() {
    let tree = TestTree::new().await;
    tree.script(SECRET_INPUT, [ScriptedAttempt::ok(10)]);
    let id = tree.submit(SECRET_INPUT).await.unwrap();
    assert!(sealed_input(&tree, id).await.is_some());
    tree.cancel(id).await.unwrap();
    tree.wait_for_end(id).await;
    assert_eq!(tree.record(id).await.unwrap().outcome, Some(Outcome::Cancelled));
    assert_eq!(sealed_input(&tree, id).await, None);
    tree.end().await;
}

fn hourly_schedule() -> ScheduleSpec {
    ScheduleSpec { input: SECRET_INPUT.to_owned(), ..cron_schedule("report", "0 * * * *") }
}

/// A schedule of a caller whose input redaction changes; it is stored redacted and shown redacted.
async fn create_secret_schedule(tree: &TestTree) {
    tree.add_caller_token().await;
    tree.script(
        SECRET_INPUT,
        [
            ScriptedAttempt::ok(1),
            ScriptedAttempt::ok(1),
            ScriptedAttempt::ok(1),
            ScriptedAttempt::ok(1),
        ],
    );
    let view = tree.create_schedule(hourly_schedule()).await.unwrap();
    assert!(view.is_redacted && !view.schedule.spec.input.contains("Hunter"), "{view:?}");
    let stored = tree.schedule_store.schedules().await.unwrap().remove(0);
    assert!(stored.has_sealed_texts() && !stored.spec.input.contains("Hunter"), "{stored:?}");
}

#[tokio::test(start_paused = true)]
async fn a_schedule_runs_with_its_raw_input_over_a_restart() {
    let mut tree = TestTree::new().await;
    create_secret_schedule(&tree).await;
    tree.advance_to(3601).await;
    tree.restart().await;
    tree.advance_to(7300).await;
    let started = tree.driver.recorded_work().starts;
    assert!(
        started.len() == 2 && started.iter().all(|it| it.starts_with(SECRET_INPUT)),
        "{started:?}"
    );
    tree.end().await;
}

/// A schedule that is sent back with its shown texts stays unchanged; new texts replace the old ones.
#[tokio::test(start_paused = true)]
async fn a_schedule_updated_with_its_shown_text_keeps_its_input() {
    let tree = TestTree::new().await;
    create_secret_schedule(&tree).await;
    let (api, caller) = (tree.api().clone(), tree.caller());
    let mut redacted_spec =
        api.schedules.schedule(&caller, &hourly_schedule().id).await.unwrap().schedule.spec;
    redacted_spec.name = "another name".to_owned();
    api.schedules.put_schedule(&caller, redacted_spec, false).await.unwrap();
    tree.advance_to(3700).await;
    assert!(tree.driver.recorded_work().starts[0].starts_with(SECRET_INPUT));
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_schedule_without_its_key_refuses_its_occurrences() {
    let mut tree = TestTree::new().await;
    create_secret_schedule(&tree).await;
    tree.kill().await;
    tree.sealer.lose_key();
    tree.start().await;
    let status = tree.status().await.scheduler.unwrap();
    let counts = status.counts.unwrap();
    assert_eq!((counts.schedules, counts.locked), (1, 1));
    tree.advance_to(3700).await;
    let occurrences = tree.schedule_store.all_occurrences().await;
    let reason = occurrences[0].reason.clone().unwrap();
    assert!(occurrences.len() == 1 && reason.starts_with("input-sealed: "), "{occurrences:?}");
    assert!(tree.driver.recorded_work().starts.is_empty());
    // Paused and resumed, the schedule keeps its sealed texts; with a new input it runs.
    let (api, caller) = (tree.api().clone(), tree.caller());
    let before = tree.schedule_store.schedules().await.unwrap().remove(0).text_sealing;
    api.schedules.set_schedule_paused(&caller, &hourly_schedule().id, true).await.unwrap();
    let paused =
        api.schedules.set_schedule_paused(&caller, &hourly_schedule().id, false).await.unwrap();
    assert!(paused.is_redacted && paused.schedule.has_sealed_texts());
    assert_eq!(tree.schedule_store.schedules().await.unwrap().remove(0).text_sealing, before);
    api.schedules.put_schedule(&caller, hourly_schedule(), false).await.unwrap();
    tree.advance_to(7300).await;
    assert_eq!(tree.driver.recorded_work().starts.len(), 1);
    assert_eq!(tree.status().await.scheduler.unwrap().counts.unwrap().locked, 0);
    tree.end().await;
}

/// The configuration has the raw input of its schedules, so no key is needed for them.
#[tokio::test(start_paused = true)]
async fn a_configured_schedule_needs_no_key() {
    let mut tree = TestTree::new().await;
    tree.script(SECRET_INPUT, [ScriptedAttempt::ok(1), ScriptedAttempt::ok(1)]);
    tree.configure_schedules([hourly_schedule()]).await;
    tree.kill().await;
    tree.sealer.lose_key();
    tree.start().await;
    let stored = tree.schedule_store.schedules().await.unwrap().remove(0);
    assert!(
        stored.has_sealed_texts() && stored.origin == ScheduleOrigin::Configuration,
        "{stored:?}"
    );
    tree.advance_to(3700).await;
    assert!(
        tree.driver.recorded_work().starts[0].starts_with(SECRET_INPUT),
        "{:?}",
        tree.occurrence_lines("report").await
    );
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn plain_text_schedules_of_earlier_releases_are_sealed() {
    let mut tree = TestTree::new().await;
    create_secret_schedule(&tree).await;
    tree.kill().await;
    let mut unscanned = tree.schedule_store.schedules().await.unwrap().remove(0);
    (unscanned.spec, unscanned.text_sealing) = (hourly_schedule(), TextSealing::Unscanned);
    tree.schedule_store.put_schedules(vec![unscanned]).await.unwrap();
    tree.start().await;
    let stored = tree.schedule_store.schedules().await.unwrap().remove(0);
    assert!(stored.has_sealed_texts() && !stored.spec.input.contains("Hunter"), "{stored:?}");
    tree.advance_to(3700).await;
    assert!(tree.driver.recorded_work().starts[0].starts_with(SECRET_INPUT));
    tree.end().await;
}
