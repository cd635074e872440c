//! What a killed service left is settled or taken up by the next one.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::{AttemptId, Fence, Outcome, State, StateChange};
use algonius_actors::model::id::ExecutionId;
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::ledger::{Claim, ClaimOrder, Ledger, Settlement, WriteBatch};
use algonius_actors::testing::{Act, GatedCall, WORKER, World, spec};

/// One runs and two wait; then, at second 5, the service is killed.
async fn killed_with_one_running_and_two_queued() -> (World, Vec<ExecutionId>) {
    let mut world = World::new().await;
    let mut ids = Vec::new();
    for text in ["a", "b", "c"] {
        world.script(text, [Act::ok(10)]);
        ids.push(world.submit(text).await.unwrap());
    }
    world.at(5).await;
    world.kill().await;
    (world, ids)
}

async fn ends(world: &World, ids: &[ExecutionId]) -> Vec<String> {
    let mut ends = Vec::new();
    for id in ids {
        ends.push(format!("{} at {}", world.wait(*id).await, world.second()));
    }
    ends
}

#[tokio::test(start_paused = true)]
async fn after_a_kill_running_work_fails_and_queued_work_runs() {
    let (mut world, ids) = killed_with_one_running_and_two_queued().await;
    world.start().await;
    assert_eq!(
        ends(&world, &ids).await,
        ["failed: interrupted at 5", "completed at 15", "completed at 25"]
    );
    assert_eq!(world.driver.stage().begun, ["a#1@0", "b#1@5", "c#1@15"]);
    assert_eq!(world.path(ids[0]).await, "idle starting running failed cleanup");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn reattached_work_keeps_its_slot_and_its_deadline() {
    let (mut world, ids) = killed_with_one_running_and_two_queued().await;
    world.script("a", [Act::ok(7).saying("done")]);
    world.driver.hold(ids[0]);
    world.start().await;
    assert_eq!(ends(&world, &ids).await, ["completed at 12", "completed at 22", "completed at 32"]);
    assert_eq!(world.driver.stage().begun, ["a#1@0", "again a#1@5", "b#1@12", "c#1@22"]);
    assert_eq!(world.path(ids[0]).await, "idle starting running completed cleanup idle");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn work_that_ended_while_the_service_was_down_is_not_overdue() {
    let (mut world, ids) = killed_with_one_running_and_two_queued().await;
    world.script("a", [Act::ok(1)]);
    world.driver.hold(ids[0]);
    world.at(100_000).await; // Longer than any deadline.
    world.start().await;
    // Work that ended while the service was down keeps its outcome, also if its deadline has
    // passed since
    assert_eq!(ends(&world, &ids[..1]).await, ["completed at 100001"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn reattached_work_with_a_redacted_input_is_not_retried() {
    let (mut world, ids) = killed_with_one_running_and_two_queued().await;
    world.script("a", [Act::fail(1, Code::TransientFailure)]);
    world.ledger.mask(ids[0]).await;
    world.driver.hold(ids[0]);
    world.start().await;
    assert_eq!(ends(&world, &ids[..1]).await, ["failed: agent-transient at 6"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn requeued_work_precedes_later_requests() {
    let (mut world, _) = killed_with_one_running_and_two_queued().await;
    world.start().await;
    world.submit("d").await.unwrap();
    world.at(100).await;
    assert_eq!(world.driver.stage().begun, ["a#1@0", "b#1@5", "c#1@15", "d#1@25"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_redacted_input_is_not_run_again() {
    let (mut world, ids) = killed_with_one_running_and_two_queued().await;
    world.ledger.mask(ids[1]).await;
    world.start().await;
    assert_eq!(
        ends(&world, &ids).await,
        ["failed: interrupted at 5", "failed: interrupted-not-run at 5", "completed at 15"]
    );
    assert_eq!(world.driver.stage().begun, ["a#1@0", "c#1@5"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn executions_of_a_removed_agent_are_settled() {
    let (mut world, ids) = killed_with_one_running_and_two_queued().await;
    world.restart_with(|specs| *specs = vec![spec("another")]).await;
    assert_eq!(ends(&world, &ids).await, ["failed: interrupted at 5"; 3]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_queue_timeout_counts_over_restarts() {
    let mut world =
        World::tuned(|spec| spec.limits.capacity.patience = Duration::from_secs(60)).await;
    for text in ["a", "b"] {
        world.script(text, [Act::ok(200)]);
    }
    world.submit("a").await.unwrap();
    let first = world.submit("b").await.unwrap();
    world.at(20).await;
    let second = world.submit("c").await.unwrap();
    world.at(30).await;
    world.restart().await; // `b` runs now.
    world.at(50).await;
    world.restart().await; // `b` is interrupted and `c` runs: it has waited 30 s.
    let story = ends(&world, &[first, second]).await;
    assert_eq!(story, ["failed: interrupted at 50", "completed at 50"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_queue_timeout_counts_the_time_the_service_was_down() {
    let mut world =
        World::tuned(|spec| spec.limits.capacity.patience = Duration::from_secs(60)).await;
    world.script("a", [Act::ok(200)]);
    world.submit("a").await.unwrap();
    let early = world.submit("b").await.unwrap();
    world.at(30).await;
    let late = world.submit("c").await.unwrap();
    world.kill().await;
    world.at(70).await;
    world.start().await;
    assert_eq!(
        ends(&world, &[early, late]).await,
        ["failed: queue-timeout at 70", "completed at 70"]
    );
    world.end().await;
}

/// Taken up again behind a long run, it has 40 of its 60 seconds left.
#[tokio::test(start_paused = true)]
async fn a_requeued_request_keeps_its_remaining_queue_timeout() {
    let mut world =
        World::tuned(|spec| spec.limits.capacity.patience = Duration::from_secs(60)).await;
    for text in ["a", "b"] {
        world.script(text, [Act::ok(200)]);
    }
    world.submit("a").await.unwrap();
    world.submit("b").await.unwrap();
    let id = world.submit("c").await.unwrap();
    world.at(20).await;
    world.restart().await;
    assert_eq!(ends(&world, &[id]).await, ["failed: queue-timeout at 60"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn work_between_two_attempts_is_interrupted_by_a_restart() {
    let mut world = World::new().await;
    world.script("a", [Act::fail(0, Code::TransientFailure)]);
    let id = world.submit("a").await.unwrap();
    world.at(5).await; // The pause of 4 s.
    world.restart().await;
    assert_eq!(ends(&world, &[id]).await, ["failed: interrupted at 5"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_message_sent_again_after_a_restart_joins() {
    let mut world = World::new().await;
    world.script("a", [Act::ok(10)]);
    world.submit("a").await.unwrap();
    let (id, _) = world.submit_as(WORKER, "message", "b").await.unwrap();
    world.restart().await;
    let joined = world.submit_as(WORKER, "message", "b").await;
    assert_eq!((joined, world.wait(id).await.as_str()), (Ok((id, true)), "completed"));
    world.end().await;
}

/// The claim is under way when the service is killed: it was not committed, so nothing began.
#[tokio::test(start_paused = true)]
async fn work_that_was_being_claimed_runs_after_a_restart() {
    let mut world = World::new().await;
    world.faults.slow(GatedCall::Claim, [10]);
    let id = world.submit("a").await.unwrap();
    world.at(5).await;
    world.restart().await;
    assert_eq!(ends(&world, &[id]).await, ["completed at 5"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_restart_resumes_more_than_the_queue_holds() {
    let mut world = World::tuned(|spec| spec.limits.capacity.waiting = 2).await;
    for text in ["a", "b", "c"] {
        world.script(text, [Act::ok(10)]);
        world.submit(text).await.unwrap();
    }
    world.restart_with(|specs| specs[0].limits.capacity.waiting = 0).await;
    let refused = world.submit("d").await;
    world.at(100).await;
    let begun = world.driver.stage().begun;
    assert_eq!(begun, ["a#1@0", "b#1@0", "c#1@10"]);
    assert_eq!(refused, Err(Code::QueueFull));
    world.end().await;
}

/// Another holder of the same ledger has the slot from second 5 to second 15.
#[tokio::test(start_paused = true)]
async fn an_occupied_slot_is_claimed_again_until_it_is_free() {
    let world = World::new().await;
    world.script("a", [Act::ok(10)]);
    let mut ids = Vec::new();
    for text in ["a", "b", "c"] {
        ids.push(world.submit(text).await.unwrap());
    }
    world.at(5).await;
    let moved = |from, to| {
        StateChange::new((from, to), AttemptId::FIRST, world.clock.now(), "elsewhere".to_owned())
    };
    let (id, agent) = (ids[2], spec(WORKER).id);
    let (fence, limit, workspace) = (Fence::default(), None, None);
    let begun = moved(State::Idle, State::Starting);
    let order = ClaimOrder { id, agent, limit, workspace, in_turn: false, fence, moved: begun };
    assert_eq!(world.ledger.claim(order).await.unwrap(), Claim::Granted(Fence(1)));
    world.at(15).await;
    let settlement = Settlement {
        id,
        fence: Fence(1),
        stamp: AttemptId::FIRST,
        outcome: Outcome::Cancelled,
        failure: None,
        exit_code: None,
        lines: WriteBatch::of_moves([moved(State::Starting, State::Cancelled)]),
        keeps_input: false,
        at: world.clock.now(),
    };
    assert!(world.ledger.settle(settlement).await.unwrap());
    assert_eq!(ends(&world, &ids).await, ["completed at 15", "completed at 15", "cancelled at 15"]);
    world.end().await;
}
