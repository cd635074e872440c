//! Inputs that redaction changes are sealed: they run, and are retried, exactly as they were sent.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::Outcome;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::schedule::{ScheduleOrigin, ScheduleSpec, SealedTexts};
use algonius_actors::ports::history::History as _;
use algonius_actors::ports::ledger::Ledger as _;
use algonius_actors::ports::schedule_store::ScheduleStore as _;
use algonius_actors::testing::{Act, WORKER, World, every};

const MAIL: &str = "write to jane.doe@host.test, password=Hunter22x";

/// One runs and one waits whose input redaction changes; then the service is killed.
async fn killed(world: &mut World) -> ExecutionId {
    world.script("a", [Act::ok(10)]);
    world.script(MAIL, [Act::ok(10)]);
    world.submit("a").await.unwrap();
    let id = world.submit(MAIL).await.unwrap();
    world.at(5).await;
    world.kill().await;
    assert!(!world.record(id).await.unwrap().replayable);
    id
}

async fn sealed(world: &World, id: ExecutionId) -> Option<Vec<u8>> {
    world.ledger.sealed_input(id).await.unwrap()
}

#[tokio::test(start_paused = true)]
async fn a_queued_input_with_a_secret_runs_after_a_kill() {
    let mut world = World::new().await;
    let id = killed(&mut world).await;
    let bytes = sealed(&world, id).await.unwrap();
    assert!(!String::from_utf8_lossy(&bytes).contains("jane"));
    world.start().await;
    assert_eq!(world.wait(id).await, "completed");
    assert_eq!(world.driver.stage().begun, ["a#1@0".to_owned(), format!("{MAIL}#1@5")]);
    assert_eq!(sealed(&world, id).await, None, "erased with the end");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_input_without_its_key_is_not_run() {
    let mut world = World::new().await;
    let id = killed(&mut world).await;
    world.sealer.lose_key();
    world.start().await;
    assert_eq!(world.wait(id).await, "failed: interrupted-not-run");
    let failure = world.record(id).await.unwrap().failure.unwrap();
    assert!(failure.message.contains("inputs.key_file"), "{}", failure.message);
    // The right key brings the input back.
    let (api, caller) = (world.api().clone(), world.caller());
    let refused = api.requests.retry(&caller, id).await.unwrap_err();
    assert_eq!(refused.code, Code::NotReplayable);
    world.sealer.restore_key();
    let again = api.requests.retry(&caller, id).await.unwrap().execution;
    assert_eq!(world.wait(again).await, "completed");
    assert_eq!(world.driver.stage().begun.last().unwrap().split('#').next(), Some(MAIL));
    world.end().await;
}

/// The work continues after the kill, then fails, and the retry uses the original input.
#[tokio::test(start_paused = true)]
async fn reattached_work_is_retried_with_its_raw_input() {
    let mut world = World::new().await;
    world.script(MAIL, [Act::ok(10)]);
    let id = world.submit(MAIL).await.unwrap();
    world.at(5).await;
    world.kill().await;
    world.script(MAIL, [Act::fail(1, Code::TransientFailure), Act::ok(3)]);
    world.driver.hold(id);
    world.start().await;
    assert_eq!(world.wait(id).await, "completed");
    let begun = world.driver.stage().begun;
    assert_eq!(begun, [format!("{MAIL}#1@0"), format!("again {MAIL}#1@5"), format!("{MAIL}#2@7")]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_actor_loses_no_queued_input() {
    let world = World::new().await;
    world.script("a", [Act::ok(10)]);
    world.script(MAIL, [Act::ok(1)]);
    world.submit("a").await.unwrap();
    let id = world.submit(MAIL).await.unwrap();
    world.crash_agent(WORKER).await;
    assert_eq!(world.wait(id).await, "completed");
    assert_eq!(world.driver.stage().begun, ["a#1@0".to_owned(), format!("{MAIL}#1@0")]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_execution_can_be_retried_within_the_window() {
    let mut world = World::new().await;
    world.script(MAIL, [Act::fail(1, Code::Exit), Act::ok(1), Act::ok(1)]);
    let id = world.submit(MAIL).await.unwrap();
    assert_eq!(world.wait(id).await, "failed: agent-exit");
    world.restart().await;
    world.script(MAIL, [Act::ok(1)]);
    let (api, caller) = (world.api().clone(), world.caller());
    assert!(api.reader.can_retry(&world.record(id).await.unwrap()).await.unwrap());
    let again = api.requests.retry(&caller, id).await.unwrap().execution;
    assert_eq!(world.wait(again).await, "completed");
    // What completed is not kept for another retry.
    assert_eq!(sealed(&world, again).await, None);
    let refused = api.requests.retry(&caller, again).await.unwrap_err();
    assert_eq!(refused.code, Code::NotReplayable);
    // After the window neither is what failed.
    let ended = world.record(id).await.unwrap().ended_at.unwrap();
    assert_eq!(world.ledger.erase_inputs(ended).await.unwrap(), 0);
    assert_eq!(world.ledger.erase_inputs(ended + Duration::from_millis(1)).await.unwrap(), 1);
    assert_eq!(api.requests.retry(&caller, id).await.unwrap_err().code, Code::NotReplayable);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn cancelling_an_execution_erases_its_sealed_input() {
    let world = World::new().await;
    world.script(MAIL, [Act::ok(10)]);
    let id = world.submit(MAIL).await.unwrap();
    assert!(sealed(&world, id).await.is_some());
    world.cancel(id).await.unwrap();
    world.wait(id).await;
    assert_eq!(world.record(id).await.unwrap().outcome, Some(Outcome::Cancelled));
    assert_eq!(sealed(&world, id).await, None);
    world.end().await;
}

fn hourly() -> ScheduleSpec {
    ScheduleSpec { input: MAIL.to_owned(), ..every("report", "0 * * * *") }
}

/// A schedule of a caller whose input redaction changes; it is stored redacted and shown redacted.
async fn scheduled(world: &World) {
    world.admit().await;
    world.script(MAIL, [Act::ok(1), Act::ok(1), Act::ok(1), Act::ok(1)]);
    let shown = world.schedule(hourly()).await.unwrap();
    assert!(shown.redacted && !shown.schedule.spec.input.contains("Hunter"), "{shown:?}");
    let stored = world.schedule_store.schedules().await.unwrap().remove(0);
    assert!(stored.is_locked() && !stored.spec.input.contains("Hunter"), "{stored:?}");
}

#[tokio::test(start_paused = true)]
async fn a_schedule_runs_with_its_raw_input_over_a_restart() {
    let mut world = World::new().await;
    scheduled(&world).await;
    world.at(3601).await;
    world.restart().await;
    world.at(7300).await;
    let begun = world.driver.stage().begun;
    assert!(begun.len() == 2 && begun.iter().all(|it| it.starts_with(MAIL)), "{begun:?}");
    world.end().await;
}

/// A schedule that is sent back with its shown texts stays unchanged; new texts replace the old ones.
#[tokio::test(start_paused = true)]
async fn a_schedule_updated_with_its_shown_text_keeps_its_input() {
    let world = World::new().await;
    scheduled(&world).await;
    let (api, caller) = (world.api().clone(), world.caller());
    let mut shown = api.schedules.schedule(&caller, &hourly().id).await.unwrap().schedule.spec;
    shown.name = "another name".to_owned();
    api.schedules.put_schedule(&caller, shown, false).await.unwrap();
    world.at(3700).await;
    assert!(world.driver.stage().begun[0].starts_with(MAIL));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_schedule_without_its_key_refuses_its_occurrences() {
    let mut world = World::new().await;
    scheduled(&world).await;
    world.kill().await;
    world.sealer.lose_key();
    world.start().await;
    let status = world.status().await.scheduler.unwrap();
    assert_eq!((status.schedules, status.locked), (1, 1));
    world.at(3700).await;
    let times = world.schedule_store.all().await;
    let reason = times[0].reason.clone().unwrap();
    assert!(times.len() == 1 && reason.starts_with("input-sealed: "), "{times:?}");
    assert!(world.driver.stage().begun.is_empty());
    // Paused and resumed, the schedule keeps its sealed texts; with a new input it runs.
    let (api, caller) = (world.api().clone(), world.caller());
    let before = world.schedule_store.schedules().await.unwrap().remove(0).sealed;
    api.schedules.pause_schedule(&caller, &hourly().id, true).await.unwrap();
    let paused = api.schedules.pause_schedule(&caller, &hourly().id, false).await.unwrap();
    assert!(paused.redacted && paused.schedule.is_locked());
    assert_eq!(world.schedule_store.schedules().await.unwrap().remove(0).sealed, before);
    api.schedules.put_schedule(&caller, hourly(), false).await.unwrap();
    world.at(7300).await;
    assert_eq!(world.driver.stage().begun.len(), 1);
    assert_eq!(world.status().await.scheduler.unwrap().locked, 0);
    world.end().await;
}

/// The configuration has the raw input of its schedules, so no key is needed for them.
#[tokio::test(start_paused = true)]
async fn a_configured_schedule_needs_no_key() {
    let mut world = World::new().await;
    world.script(MAIL, [Act::ok(1), Act::ok(1)]);
    world.configure([hourly()]).await;
    world.kill().await;
    world.sealer.lose_key();
    world.start().await;
    let stored = world.schedule_store.schedules().await.unwrap().remove(0);
    assert!(stored.is_locked() && stored.origin == ScheduleOrigin::Configuration, "{stored:?}");
    world.at(3700).await;
    assert!(world.driver.stage().begun[0].starts_with(MAIL), "{:?}", world.times("report").await);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn plain_text_schedules_of_earlier_releases_are_sealed() {
    let mut world = World::new().await;
    scheduled(&world).await;
    world.kill().await;
    let mut old = world.schedule_store.schedules().await.unwrap().remove(0);
    (old.spec, old.sealed) = (hourly(), SealedTexts::Unchecked);
    world.schedule_store.put(vec![old]).await.unwrap();
    world.start().await;
    let stored = world.schedule_store.schedules().await.unwrap().remove(0);
    assert!(stored.is_locked() && !stored.spec.input.contains("Hunter"), "{stored:?}");
    world.at(3700).await;
    assert!(world.driver.stage().begun[0].starts_with(MAIL));
    world.end().await;
}
