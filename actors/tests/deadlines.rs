//! Deadlines of what runs, and the warnings before them, in virtual time.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use algonius_actors::model::execution::event::EventKind;
use algonius_actors::ports::ledger::Ledger;
use algonius_actors::testing::{Act, World};

/// How an agent ends that may run for 300 seconds and be silent for so many, and the warnings on
/// the way: which, in which second, and how many seconds were left.
async fn play(idle: Option<u64>, act: Act) -> (String, Vec<String>) {
    let world =
        World::tuned(|spec| spec.limits.deadlines.idle = idle.map(Duration::from_secs)).await;
    world.script("work", [act]);
    let end = world.run("work").await;
    let id = world.agent("worker").await.work.last_execution.unwrap().id;
    let born = world.record(id).await.unwrap().accepted_at;
    let events = world.ledger.events(id, 0).await.unwrap();
    let warnings = events.iter().filter_map(|event| match &event.data {
        EventKind::DeadlineApproaching { limit, ends_at, .. } => {
            let (at, left) = ((event.at - born).num_seconds(), (*ends_at - event.at).num_seconds());
            Some(format!("{} at {at}, {left} left", limit.as_str()))
        }
        _ => None,
    });
    let told = (end, warnings.collect());
    world.end().await;
    told
}

fn told(end: &str, warnings: &[&str]) -> (String, Vec<String>) {
    (end.to_owned(), warnings.iter().map(|warning| (*warning).to_owned()).collect())
}

#[tokio::test(start_paused = true)]
async fn a_run_is_warned_before_its_deadline_and_ended_at_it() {
    let end = "timeout: execution-timeout at 300";
    assert_eq!(play(None, Act::ok(400)).await, told(end, &["run at 270, 30 left"]));
    assert_eq!(play(None, Act::ok(299)).await, told("completed at 299", &["run at 270, 30 left"]));
    assert_eq!(play(None, Act::ok(269)).await, told("completed at 269", &[]));
}

#[tokio::test(start_paused = true)]
async fn a_silent_run_is_warned_before_its_idle_timeout() {
    let end = "timeout: idle-timeout at 60";
    assert_eq!(play(Some(60), Act::ok(100)).await, told(end, &["idle at 54, 6 left"]));
    assert_eq!(play(Some(60), Act::ok(50)).await, told("completed at 50", &[]));
}

/// The time before it lived is not counted.
#[tokio::test(start_paused = true)]
async fn the_idle_time_starts_with_the_process() {
    let act = Act::ok(100).starting_for(20);
    let end = "timeout: idle-timeout at 80";
    assert_eq!(play(Some(60), act).await, told(end, &["idle at 74, 6 left"]));
}

#[tokio::test(start_paused = true)]
async fn each_output_restarts_the_idle_time() {
    let act = Act::ok(30).murmuring([50, 50, 50, 50]);
    assert_eq!(play(Some(60), act).await, told("completed at 230", &[]));
    let act = Act::ok(100).murmuring([10, 57, 1, 40]);
    let warnings = ["idle at 64, 6 left", "idle at 162, 6 left"];
    assert_eq!(play(Some(60), act).await, told("timeout: idle-timeout at 168", &warnings));
}

#[tokio::test(start_paused = true)]
async fn output_does_not_extend_the_run_deadline() {
    let act = Act::ok(0).murmuring([20; 20]);
    let end = "timeout: execution-timeout at 300";
    assert_eq!(play(Some(60), act).await, told(end, &["run at 270, 30 left"]));
}

/// The timers of the first attempt ring while the second one runs.
#[tokio::test(start_paused = true)]
async fn a_warning_of_an_earlier_attempt_does_not_reach_the_next() {
    let world =
        World::tuned(|spec| spec.limits.deadlines.idle = Some(Duration::from_secs(60))).await;
    let fails = Act::fail(40, algonius_actors::model::code::Code::TransientFailure);
    world.script("work", [fails, Act::ok(45)]);
    assert_eq!(world.run("work").await, "completed at 86");
    let id = world.agent("worker").await.work.last_execution.unwrap().id;
    let events = world.ledger.events(id, 0).await.unwrap();
    assert!(
        !events.iter().any(|event| matches!(event.data, EventKind::DeadlineApproaching { .. }))
    );
    world.end().await;
}
