//! Actors that fail are started again, and nobody's work is lost by it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::status::Health;
use algonius_actors::testing::{Act, Call, WORKER, World, spec};

async fn two_agents() -> World {
    World::of(["one", "two"].map(spec)).await
}

#[tokio::test(start_paused = true)]
async fn an_agent_that_panics_is_started_again_and_shows_it() {
    let world = two_agents().await;
    world.at(5).await;
    world.crash_agent("one").await;
    world.at(9).await;
    let (one, two) = (world.agent("one").await, world.agent("two").await);
    let story = [one, two].map(|agent| (agent.health, agent.restarts, agent.last_fault.is_some()));
    assert_eq!(story, [(Health::Alive, 1, true), (Health::Alive, 0, false)]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_a_crashed_agent_ran_is_interrupted_and_what_waited_runs() {
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
async fn a_crash_of_one_agent_does_not_touch_the_work_of_another() {
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
async fn an_agent_that_fails_four_times_in_a_minute_is_quarantined() {
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
    assert_eq!((one.health, one.restarts, two.health), (Health::Quarantined, 3, Health::Alive));
    let refused = world.submit_to("one", "c").await;
    let taken = world.submit_to("two", "c").await.map(drop);
    assert_eq!((refused, taken), (Err(Code::AgentQuarantined), Ok(())));
    let ends = [world.wait(running).await, world.wait(queued).await];
    assert_eq!(ends, ["failed: interrupted", "failed: agent-quarantined"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn crashes_that_are_far_apart_are_borne() {
    let world = World::new().await;
    for second in [10, 40, 71, 102, 133] {
        world.at(second).await;
        world.crash_agent(WORKER).await;
    }
    world.at(140).await;
    let agent = world.agent(WORKER).await;
    assert_eq!((agent.health, agent.restarts), (Health::Alive, 5));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_execution_that_panics_fails_as_interrupted_and_frees_its_slot() {
    let world = World::new().await;
    world.script("bomb", [Act::bomb()]);
    let (bomb, next) = tokio::join!(world.run("bomb"), world.run("next"));
    let agent = world.agent(WORKER).await;
    assert_eq!([bomb, next], ["failed: interrupted at 0", "completed at 0"]);
    assert_eq!((agent.health, agent.restarts), (Health::Alive, 0));
    world.end().await;
}

/// Also while the store is away: the slot is free only when the end is written.
#[tokio::test(start_paused = true)]
async fn the_end_of_an_execution_that_panicked_is_written_when_the_store_is_back() {
    let world = World::new().await;
    world.script("bomb", [Act::bomb()]);
    world.faults.fail(Call::Settle, 3);
    let (bomb, next) = tokio::join!(world.run("bomb"), world.run("next"));
    assert_eq!([bomb, next], ["failed: interrupted at 3", "completed at 3"]);
    world.end().await;
}

/// What panics here is no actor but a task of one, which nobody would hear of.
#[tokio::test(start_paused = true)]
async fn a_task_that_panics_takes_its_actor_along_and_its_work_is_settled() {
    let world = World::new().await;
    world.script("bomb", [Act::bomb()]);
    world.faults.fail(Call::Settle, 1);
    let bomb = world.submit("bomb").await.unwrap();
    // Paused time, between its first try and its next.
    tokio::time::sleep(Duration::from_millis(500)).await;
    world.clock.arm(1);
    assert_eq!(world.wait(bomb).await, "failed: interrupted");
    assert_eq!(world.run("next").await, format!("completed at {}", world.second()));
    assert_eq!(world.agent(WORKER).await.restarts, 1);
    world.end().await;
}

/// The panic happens before the execution's actor was born: reading 1 is the agent's.
#[tokio::test(start_paused = true)]
async fn an_execution_whose_actor_is_not_born_is_interrupted_and_frees_its_slot() {
    let world = World::new().await;
    world.clock.arm(2);
    let stillborn = world.run("a").await;
    let next = world.run("b").await;
    assert_eq!([stillborn, next], ["failed: interrupted at 0", "completed at 0"]);
    world.end().await;
}

/// One whose work is held, and whose beginning the store does not take for some seconds.
async fn unwritten() -> (World, ExecutionId) {
    let world = World::tuned(|spec| spec.heartbeat = Some(Duration::from_millis(2500))).await;
    world.script("a", [Act::ok(10)]);
    world.faults.fail(Call::Record, 5);
    let id = world.submit("a").await.unwrap();
    world.driver.hold(id);
    (world, id)
}

/// What the crashed actor had not written is not written beside what its follower writes.
#[tokio::test(start_paused = true)]
async fn an_execution_goes_on_from_what_its_crashed_actor_could_write() {
    let (world, id) = unwritten().await;
    // Paused time: what beats at second 2.5 reads the clock.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    world.clock.arm(1);
    assert_eq!(world.wait(id).await, "completed");
    assert_eq!(world.driver.stage().begun, ["a#1@0", "again a#1@3"]);
    assert_eq!(world.path(id).await, "idle starting running completed cleanup idle");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_execution_goes_on_from_what_could_be_written_when_its_agent_crashes() {
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
async fn an_end_that_a_slow_store_takes_late_stands_though_the_actor_has_crashed() {
    let world = World::new().await;
    world.faults.slow(Call::Settle, [5]);
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
        (world.agent(WORKER).await.restarts, world.run("next").await.as_str()),
        (1, "completed at 5")
    );
    world.end().await;
}

/// The claim is committed only after the agent has crashed, for an actor that is no more.
#[tokio::test(start_paused = true)]
async fn a_claim_that_outlives_its_agent_is_settled() {
    let world = World::new().await;
    world.faults.slow(Call::Claim, [10]);
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
    world.faults.slow(Call::Accept, [6]);
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

/// The first look into the ledger fails: that is one more failure, and the next one succeeds.
#[tokio::test(start_paused = true)]
async fn an_agent_that_cannot_read_the_ledger_is_started_again() {
    let world = World::new().await;
    world.faults.fail(Call::List, 1);
    world.crash_agent(WORKER).await;
    world.at(5).await;
    let agent = world.agent(WORKER).await;
    assert_eq!((agent.health, agent.restarts), (Health::Alive, 2));
    assert_eq!(world.run("a").await, "completed at 5");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_store_that_is_away_for_long_quarantines_an_agent_that_failed() {
    let world = two_agents().await;
    let running = world.submit_to("one", "a").await.unwrap();
    world.faults.fail(Call::List, u32::MAX);
    world.crash_agent("one").await;
    world.at(50).await;
    assert_eq!(world.agent("one").await.health, Health::Quarantined);
    world.faults.heal();
    assert_eq!(world.wait(running).await, "completed");
    world.end().await;
}
