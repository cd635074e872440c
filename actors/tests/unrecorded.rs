//! Callers get an answer in time while the ledger accepts no record, in virtual time.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use algonius_actors::api::{Follow, Next};
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::State;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::testing::{Act, GatedCall, WORKER, World};
use tokio::time::Instant;

/// Longest time from the end of the work to the answer of a caller who waits.
const IN_TIME: Duration = Duration::from_secs(30);

/// Waits as a caller that connects later, and returns the duration of the wait.
async fn awaited(world: &World, id: ExecutionId) -> (Result<(), Failure>, Duration) {
    let (begun, record) = (Instant::now(), world.record(id).await.unwrap());
    let waiting = world.api().requests.settled(&record.agent, id, None);
    let settled = tokio::time::timeout(Duration::from_secs(600), waiting).await.unwrap();
    (settled.map(drop), begun.elapsed())
}

fn expect_disk(failure: &Failure) {
    assert_eq!(failure.code, Code::LedgerUnavailable);
    assert!(failure.message.contains("disk"), "{failure:?}");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_caller_learns_of_an_unrecorded_end() {
    let world = World::new().await;
    world.script("a", [Act::ok(40)]);
    world.faults.fail(GatedCall::Settle, u32::MAX);
    let begun = Instant::now();
    expect_disk(&world.asking_once(WORKER, "message", "a").await.unwrap_err());
    let (work, took) = (Duration::from_secs(40), begun.elapsed());
    assert!(took > work && took < work + IN_TIME, "{took:?}");
    world.faults.heal();
    let (id, _) = world.submit_as(WORKER, "message", "a").await.unwrap();
    assert_eq!(world.wait(id).await, "completed");
    assert_eq!(world.driver.stage().begun, ["a#1@0"]);
    world.end().await;
}

/// A store that fails for a short time makes no caller fail.
#[tokio::test(start_paused = true)]
async fn a_waiting_caller_receives_a_late_recorded_end() {
    let world = World::new().await;
    world.faults.fail(GatedCall::Settle, 5);
    let id = world.submit("a").await.unwrap();
    let (answer, took) = awaited(&world, id).await;
    assert_eq!((answer, took.as_secs()), (Ok(()), 5));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_waiting_caller_is_answered_during_a_drain() {
    let mut world = World::new().await;
    world.script("a", [Act::ok(5)]);
    let id = world.submit("a").await.unwrap();
    world.at(1).await;
    world.faults.fail(GatedCall::Settle, u32::MAX);
    let stopping = tokio::spawn(world.stopping(300));
    let (answer, took) = awaited(&world, id).await;
    expect_disk(&answer.unwrap_err());
    assert!(took < IN_TIME, "{took:?}");
    world.faults.heal();
    stopping.await.unwrap();
    assert_eq!(world.end_of(id).await, "completed");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_waiting_caller_learns_of_an_unrecorded_question() {
    let world = World::new().await;
    world.script("a", [Act::ask(5)]);
    let caller = tokio::spawn(world.asking_once(WORKER, "message", "a"));
    world.at(1).await;
    let begun = Instant::now();
    for call in [GatedCall::Record, GatedCall::Append] {
        world.faults.fail(call, u32::MAX);
    }
    let answer = tokio::time::timeout(Duration::from_secs(600), caller).await;
    expect_disk(&answer.expect("an answer").unwrap().unwrap_err());
    // A caller who waits for a question, and a follower, learn within 30 seconds that the
    // disk cannot be written
    assert!(begun.elapsed() < IN_TIME, "{:?}", begun.elapsed());
    world.faults.heal();
    world.at(60).await;
    let (id, joined) = world.submit_as(WORKER, "message", "a").await.unwrap();
    assert_eq!((joined, world.record(id).await.unwrap().state), (true, State::Waiting));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_follower_learns_of_an_unrecorded_end() {
    let world = World::new().await;
    world.faults.fail(GatedCall::Settle, u32::MAX);
    let id = world.submit("a").await.unwrap();
    let record = world.record(id).await.unwrap();
    let (begun, mut follow) =
        (Instant::now(), Follow::new(world.api().reader.clone(), record, 0, None));
    let failure = loop {
        match follow.next().await {
            Ok(Some(Next::Rest(_)) | None) => panic!("an end was told that is not recorded"),
            Ok(Some(_)) => {}
            Err(failure) => break failure,
        }
    };
    // A caller who waits for a question, and a follower, learn within 30 seconds that the
    // disk cannot be written
    expect_disk(&failure);
    assert!(begun.elapsed() < IN_TIME, "{:?}", begun.elapsed());
    assert!(matches!(follow.next().await, Ok(None)), "the stream ends with the error");
    world.faults.heal();
    assert_eq!(world.wait(id).await, "completed");
    world.end().await;
}

/// The same message sent again returns the execution, which does not run twice.
#[tokio::test(start_paused = true)]
async fn a_request_recorded_too_late_is_refused_and_found_later() {
    let world = World::new().await;
    world.faults.slow(GatedCall::Accept, [15]);
    let late = world.submit_as(WORKER, "message", "a").await;
    // A request that is not recorded within ten seconds is refused as late, and the same
    // message finds it later
    assert_eq!((late, world.second()), (Err(Code::AcceptTimeout), 10));
    world.at(20).await;
    let (id, joined) = world.submit_as(WORKER, "message", "a").await.unwrap();
    assert_eq!((joined, world.wait(id).await.as_str()), (true, "completed"));
    assert_eq!(world.driver.stage().begun, ["a#1@15"]);
    world.end().await;
}
