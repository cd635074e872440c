//! Actors that fail are started again, and nobody's work is lost by it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::observation::status::Health;
use algonius_actors::testing::{Act, GatedCall, WORKER, World, spec};

async fn two_agents() -> World {
    World::of(["one", "two"].map(spec)).await
}

#[tokio::test(start_paused = true)]
async fn a_panicked_agent_is_restarted_and_counted() {
    let world = two_agents().await;
    world.at(5).await;
    world.crash_agent("one").await;
    world.at(9).await;
    let (one, two) = (world.agent("one").await, world.agent("two").await);
    let story = [one, two]
        .map(|agent| (agent.health, agent.starts.restarts, agent.starts.last_fault.is_some()));
    assert_eq!(story, [(Health::Alive, 1, true), (Health::Alive, 0, false)]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_crash_interrupts_running_work_only() {
    let world = World::new().await;
    let mut ids = Vec::new();
    for text in ["a", "b", "c"] {
        world.script(text, [Act::ok(10)]);
        ids.push(world.submit(text).await.unwrap());
    }
    world.at(5).await;
    world.crash_agent(WORKER).await;
    let mut ends = Vec::new();
    for id in ids {
        ends.push(format!("{} at {}", world.wait(id).await, world.second()));
    }
    assert_eq!(ends, ["failed: interrupted at 5", "completed at 15", "completed at 25"]);
    assert_eq!(world.driver.stage().begun, ["a#1@0", "b#1@5", "c#1@15"]);
    assert_eq!(world.driver.stage().most_alive, 1);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_of_one_agent_does_not_affect_another() {
    let world = two_agents().await;
    world.script("a", [Act::ok(10)]);
    let id = world.submit_to("two", "a").await.unwrap();
    world.at(5).await;
    world.crash_agent("one").await;
    assert_eq!((world.wait(id).await.as_str(), world.second()), ("completed", 10));
    world.end().await;
}

/// Three crashes are borne, the fourth is one too many; the ends of all executions are definite.
#[tokio::test(start_paused = true)]
async fn an_agent_is_quarantined_after_four_failures_in_a_minute() {
    let world = two_agents().await;
    for text in ["a", "b"] {
        world.script(text, [Act::ok(100)]);
    }
    for second in [1, 2, 3] {
        world.at(second).await;
        world.crash_agent("one").await;
    }
    let running = world.submit_to("one", "a").await.unwrap();
    let queued = world.submit_to("one", "b").await.unwrap();
    world.at(4).await;
    world.crash_agent("one").await;
    world.at(5).await;
    let (one, two) = (world.agent("one").await, world.agent("two").await);
    assert_eq!(
        (one.health, one.starts.restarts, two.health),
        (Health::Quarantined, 3, Health::Alive)
    );
    let refused = world.submit_to("one", "c").await;
    let taken = world.submit_to("two", "c").await.map(drop);
    assert_eq!((refused, taken), (Err(Code::AgentQuarantined), Ok(())));
    let ends = [world.wait(running).await, world.wait(queued).await];
    assert_eq!(ends, ["failed: interrupted", "failed: agent-quarantined"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn crashes_far_apart_are_tolerated() {
    let world = World::new().await;
    for second in [10, 40, 71, 102, 133] {
        world.at(second).await;
        world.crash_agent(WORKER).await;
    }
    world.at(140).await;
    let agent = world.agent(WORKER).await;
    assert_eq!((agent.health, agent.starts.restarts), (Health::Alive, 5));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_panicking_execution_is_interrupted_and_frees_its_slot() {
    let world = World::new().await;
    world.script("bomb", [Act::bomb()]);
    let (bomb, next) = tokio::join!(world.run("bomb"), world.run("next"));
    let agent = world.agent(WORKER).await;
    assert_eq!([bomb, next], ["failed: interrupted at 0", "completed at 0"]);
    assert_eq!((agent.health, agent.starts.restarts), (Health::Alive, 0));
    world.end().await;
}

/// Also while the store is away: the slot is free only when the end is written.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_panicked_execution_waits_for_the_store() {
    let world = World::new().await;
    world.script("bomb", [Act::bomb()]);
    world.faults.fail(GatedCall::Settle, 3);
    let (bomb, next) = tokio::join!(world.run("bomb"), world.run("next"));
    assert_eq!([bomb, next], ["failed: interrupted at 3", "completed at 3"]);
    world.end().await;
}

/// What panics here is no actor but a task of one, which nobody would hear of.
#[tokio::test(start_paused = true)]
async fn a_panicking_task_ends_its_actor_and_settles_its_work() {
    let world = World::new().await;
    world.script("bomb", [Act::bomb()]);
    world.faults.fail(GatedCall::Settle, 1);
    let bomb = world.submit("bomb").await.unwrap();
    // Paused time, between its first try and its next.
    tokio::time::sleep(Duration::from_millis(500)).await;
    world.clock.arm(1);
    // A panic in a task of an actor also ends the actor, so that no caller waits forever
    assert_eq!(world.wait(bomb).await, "failed: interrupted");
    assert_eq!(world.run("next").await, format!("completed at {}", world.second()));
    assert_eq!(world.agent(WORKER).await.starts.restarts, 1);
    world.end().await;
}

/// The panic happens before the execution's actor was born: reading 1 is the agent's.
#[tokio::test(start_paused = true)]
async fn an_execution_whose_actor_fails_to_start_is_interrupted() {
    let world = World::new().await;
    world.clock.arm(2);
    let stillborn = world.run("a").await;
    let next = world.run("b").await;
    assert_eq!([stillborn, next], ["failed: interrupted at 0", "completed at 0"]);
    world.end().await;
}

/// One whose work is held, and whose beginning the store does not take for some seconds.
async fn unwritten() -> (World, ExecutionId) {
    let world = World::tuned(|spec| {
        spec.program_mut().unwrap().heartbeat = Some(Duration::from_millis(2500));
    })
    .await;
    world.script("a", [Act::ok(10)]);
    world.faults.fail(GatedCall::Record, 5);
    let id = world.submit("a").await.unwrap();
    world.driver.hold(id);
    (world, id)
}

/// What the crashed actor had not written is not written beside what its follower writes.
#[tokio::test(start_paused = true)]
async fn an_execution_resumes_from_the_records_of_its_crashed_actor() {
    let (world, id) = unwritten().await;
    // Paused time: what beats at second 2.5 reads the clock.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    world.clock.arm(1);
    assert_eq!(world.wait(id).await, "completed");
    assert_eq!(world.driver.stage().begun, ["a#1@0", "again a#1@3"]);
    assert_eq!(world.path(id).await, "idle starting running completed cleanup idle");
    world.end().await;
}

/// The actor panics while it handles the order, so its successor must receive the order too.
#[tokio::test(start_paused = true)]
async fn a_cancel_order_survives_the_crash_of_its_actor() {
    let world = World::new().await;
    world.script("a", [Act::ok(10)]);
    let id = world.submit("a").await.unwrap();
    world.driver.hold(id);
    world.at(2).await;
    world.clock.arm(1);
    world.cancel(id).await.unwrap();
    assert_eq!(world.wait(id).await, "cancelled: execution-cancelled");
    assert_eq!(world.driver.stage().begun, ["a#1@0"]);
    assert_eq!(world.agent(WORKER).await.starts.restarts, 0);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_unwritten_execution_resumes_when_its_agent_crashes() {
    let (world, id) = unwritten().await;
    // Paused time, between its first try and its next.
    tokio::time::sleep(Duration::from_millis(500)).await;
    world.crash_agent(WORKER).await;
    assert_eq!(world.wait(id).await, "completed");
    assert_eq!(world.driver.stage().begun, ["a#1@0", "again a#1@1"]);
    assert_eq!(world.path(id).await, "idle starting running completed cleanup idle");
    world.end().await;
}

/// It had ended; what says so is in the store before its follower looks there.
#[tokio::test(start_paused = true)]
async fn a_late_written_end_stands_though_the_actor_crashed() {
    let world = World::new().await;
    world.faults.slow(GatedCall::Settle, [5]);
    let id = world.submit("a").await.unwrap();
    world.at(2).await;
    world.crash_agent(WORKER).await;
    assert_eq!((world.wait(id).await.as_str(), world.second()), ("completed", 5));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn four_executions_that_panic_in_a_minute_restart_their_agent() {
    let world = World::new().await;
    world.script("bomb", [Act::bomb()]);
    for _ in 0..4 {
        assert_eq!(world.run("bomb").await, "failed: interrupted at 0");
    }
    world.at(5).await;
    assert_eq!(
        (world.agent(WORKER).await.starts.restarts, world.run("next").await.as_str()),
        (1, "completed at 5")
    );
    world.end().await;
}

/// The claim is committed only after the agent has crashed, for an actor that is no more.
#[tokio::test(start_paused = true)]
async fn a_claim_that_outlives_its_agent_is_settled() {
    let world = World::new().await;
    world.faults.slow(GatedCall::Claim, [10]);
    let id = world.submit("a").await.unwrap();
    world.at(5).await;
    world.crash_agent(WORKER).await;
    let end = format!("{} at {}", world.wait(id).await, world.second());
    world.at(60).await;
    assert_eq!([end, world.run("b").await], ["failed: interrupted at 10", "completed at 60"]);
    world.end().await;
}

/// The record is committed only after the agent has crashed and its successor has looked.
#[tokio::test(start_paused = true)]
async fn a_record_that_outlives_its_agent_is_settled() {
    let world = World::new().await;
    world.faults.slow(GatedCall::Accept, [6]);
    let submitted = async { world.submit_as(WORKER, "message", "a").await };
    let crashed = async {
        world.at(3).await;
        world.crash_agent(WORKER).await;
    };
    let (submitted, ()) = tokio::join!(submitted, crashed);
    world.at(30).await;
    let (id, joined) = world.submit_as(WORKER, "message", "a").await.unwrap();
    assert_eq!((submitted, joined), (Err(Code::Internal), true));
    assert_eq!(world.wait(id).await, "failed: interrupted-not-run");
    assert_eq!(world.run("b").await, "completed at 30");
    world.end().await;
}

/// A start that fails because of the ledger is no failure of the agent: it is tried again a second later.
#[tokio::test(start_paused = true)]
async fn an_agent_that_cannot_read_the_ledger_is_restarted() {
    let world = World::new().await;
    world.faults.fail(GatedCall::List, 1);
    world.crash_agent(WORKER).await;
    world.at(5).await;
    let agent = world.agent(WORKER).await;
    assert_eq!((agent.health, agent.starts.restarts), (Health::Alive, 1));
    assert_eq!(world.run("a").await, "completed at 5");
    world.end().await;
}

/// Four failures within a minute would quarantine the agent, and fail its executions.
#[tokio::test(start_paused = true)]
async fn a_long_ledger_outage_does_not_quarantine_a_failed_agent() {
    let world = two_agents().await;
    let running = world.submit_to("one", "a").await.unwrap();
    world.faults.fail(GatedCall::List, u32::MAX);
    world.crash_agent("one").await;
    world.at(600).await;
    let agent = world.agent("one").await;
    // An agent whose next actor cannot read the ledger waits for the ledger and is not
    // quarantined
    assert_eq!((agent.health, agent.starts.restarts), (Health::Restarting, 1));
    let tries = world.faults.calls(GatedCall::List);
    assert!((10..=30).contains(&tries), "{tries} tries in ten minutes");
    assert_eq!(world.submit_to("one", "b").await, Err(Code::LedgerUnavailable));
    world.faults.heal();
    world.at(640).await;
    assert_eq!(world.wait(running).await, "completed");
    let agent = world.agent("one").await;
    assert_eq!((agent.health, agent.starts.restarts), (Health::Alive, 1));
    let next = world.submit_to("one", "c").await.unwrap();
    assert_eq!(world.wait(next).await, "completed");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_service_stops_while_an_agent_waits_for_the_ledger() {
    let mut world = two_agents().await;
    world.faults.fail(GatedCall::List, u32::MAX);
    world.crash_agent("one").await;
    world.at(50).await;
    world.stop(5).await;
    assert!(world.second() <= 56, "it took until {}", world.second());
    world.end().await;
}

/// A caller who waits for an execution without an actor gets an answer before the ledger works again.
#[tokio::test(start_paused = true)]
async fn a_caller_gets_an_answer_while_the_agent_awaits_the_ledger() {
    let world = two_agents().await;
    world.script("a", [Act::ok(100)]);
    let caller = tokio::spawn(world.asking_once("one", "message", "a"));
    world.at(1).await;
    world.faults.fail(GatedCall::List, u32::MAX);
    world.faults.fail(GatedCall::Settle, u32::MAX);
    world.crash_agent("one").await;
    assert_eq!(caller.await.unwrap().unwrap_err().code, Code::LedgerUnavailable);
    assert!(world.second() <= 31, "at {}", world.second());
    world.end().await;
}
