//! Deadlines of what runs, and the warnings before them, in virtual time.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use algonius_actors::model::event::Fact;
use algonius_actors::ports::ledger::Ledger;
use algonius_actors::testing::{Act, World};

/// How an agent ends that may run for 300 seconds and be silent for so many, and the warnings on
/// the way: which, in which second, and how many seconds were left.
async fn play(idle: Option<u64>, act: Act) -> (String, Vec<String>) {
    let world = World::tuned(|spec| spec.deadlines.idle = idle.map(Duration::from_secs)).await;
    world.script("work", [act]);
    let end = world.run("work").await;
    let id = world.agent("worker").await.last.unwrap().id;
    let born = world.record(id).await.unwrap().accepted_at;
    let events = world.ledger.events(id, 0).await.unwrap();
    let warnings = events.iter().filter_map(|event| match &event.fact {
        Fact::Expiring { limit, ends_at, .. } => {
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
async fn who_runs_too_long_is_warned_of_before_it_is_ended() {
    let end = "timeout: execution-timeout at 300";
    assert_eq!(play(None, Act::ok(400)).await, told(end, &["run at 270, 30 left"]));
    assert_eq!(play(None, Act::ok(299)).await, told("completed at 299", &["run at 270, 30 left"]));
    assert_eq!(play(None, Act::ok(269)).await, told("completed at 269", &[]));
}

#[tokio::test(start_paused = true)]
async fn who_is_silent_for_too_long_is_warned_of_and_ended() {
    let end = "timeout: idle-timeout at 60";
    assert_eq!(play(Some(60), Act::ok(100)).await, told(end, &["idle at 54, 6 left"]));
    assert_eq!(play(Some(60), Act::ok(50)).await, told("completed at 50", &[]));
}

/// The time before it lived is not counted.
#[tokio::test(start_paused = true)]
async fn the_silence_begins_with_the_life_of_the_work() {
    let act = Act::ok(100).starting_for(20);
    let end = "timeout: idle-timeout at 80";
    assert_eq!(play(Some(60), act).await, told(end, &["idle at 74, 6 left"]));
}

#[tokio::test(start_paused = true)]
async fn each_sign_of_life_begins_the_time_anew() {
    let act = Act::ok(30).murmuring([50, 50, 50, 50]);
    assert_eq!(play(Some(60), act).await, told("completed at 230", &[]));
    let act = Act::ok(100).murmuring([10, 57, 1, 40]);
    let warnings = ["idle at 64, 6 left", "idle at 162, 6 left"];
    assert_eq!(play(Some(60), act).await, told("timeout: idle-timeout at 168", &warnings));
}

#[tokio::test(start_paused = true)]
async fn who_shows_that_it_lives_may_still_not_run_for_longer_than_it_may() {
    let act = Act::ok(0).murmuring([20; 20]);
    let end = "timeout: execution-timeout at 300";
    assert_eq!(play(Some(60), act).await, told(end, &["run at 270, 30 left"]));
}

/// The timers of the first attempt ring while the second one runs.
#[tokio::test(start_paused = true)]
async fn what_an_earlier_attempt_was_warned_of_is_nothing_to_the_next() {
    let world = World::tuned(|spec| spec.deadlines.idle = Some(Duration::from_secs(60))).await;
    let fails = Act::fail(40, algonius_actors::model::code::Code::TransientFailure);
    world.script("work", [fails, Act::ok(45)]);
    assert_eq!(world.run("work").await, "completed at 86");
    let id = world.agent("worker").await.last.unwrap().id;
    let events = world.ledger.events(id, 0).await.unwrap();
    assert!(!events.iter().any(|event| matches!(event.fact, Fact::Expiring { .. })));
    world.end().await;
}
