//! Actors that fail are started again, and no execution is lost.

use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::observation::status::Health;
use algonius_actors::testing::{
    DEFAULT_AGENT, LedgerCallKind, ScriptedAttempt, TestTree, agent_spec,
};

async fn tree_with_two_agents() -> TestTree {
    TestTree::with_agents(["one", "two"].map(agent_spec)).await
}

#[tokio::test(start_paused = true)]
async fn a_panicked_agent_is_restarted_and_counted() {
    let tree = tree_with_two_agents().await;
    tree.advance_to(5).await;
    tree.crash_agent("one").await;
    tree.advance_to(9).await;
    let (one, two) = (tree.agent_status("one").await, tree.agent_status("two").await);
    let observed = [one, two].map(|agent| {
        (agent.health, agent.actor_starts.restarts, agent.actor_starts.last_fault.is_some())
    });
    assert_eq!(observed, [(Health::Alive, 1, true), (Health::Alive, 0, false)]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_crash_interrupts_running_work_only() {
    let tree = TestTree::new().await;
    let mut ids = Vec::new();
    for text in ["a", "b", "c"] {
        tree.script(text, [ScriptedAttempt::ok(10)]);
        ids.push(tree.submit(text).await.unwrap());
    }
    tree.advance_to(5).await;
    tree.crash_agent(DEFAULT_AGENT).await;
    let mut ends = Vec::new();
    for id in ids {
        ends.push(format!("{} at {}", tree.wait_for_end(id).await, tree.elapsed_seconds()));
    }
    assert_eq!(ends, ["failed: interrupted at 5", "completed at 15", "completed at 25"]);
    assert_eq!(tree.driver.recorded_work().starts, ["a#1@0", "b#1@5", "c#1@15"]);
    assert_eq!(tree.driver.recorded_work().max_alive_count, 1);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_crash_of_one_agent_does_not_affect_another() {
    let tree = tree_with_two_agents().await;
    tree.script("a", [ScriptedAttempt::ok(10)]);
    let id = tree.submit_to("two", "a").await.unwrap();
    tree.advance_to(5).await;
    tree.crash_agent("one").await;
    assert_eq!((tree.wait_for_end(id).await.as_str(), tree.elapsed_seconds()), ("completed", 10));
    tree.end().await;
}

/// Three crashes are borne, the fourth is one too many; the ends of all executions are definite.
#[tokio::test(start_paused = true)]
async fn an_agent_is_quarantined_after_four_failures_in_a_minute() {
    let tree = tree_with_two_agents().await;
    for text in ["a", "b"] {
        tree.script(text, [ScriptedAttempt::ok(100)]);
    }
    for second in [1, 2, 3] {
        tree.advance_to(second).await;
        tree.crash_agent("one").await;
    }
    let running = tree.submit_to("one", "a").await.unwrap();
    let queued = tree.submit_to("one", "b").await.unwrap();
    tree.advance_to(4).await;
    tree.crash_agent("one").await;
    tree.advance_to(5).await;
    let (one, two) = (tree.agent_status("one").await, tree.agent_status("two").await);
    assert_eq!(
        (one.health, one.actor_starts.restarts, two.health),
        (Health::Quarantined, 3, Health::Alive)
    );
    let refused = tree.submit_to("one", "c").await;
    let accepted = tree.submit_to("two", "c").await.map(drop);
    assert_eq!((refused, accepted), (Err(Code::AgentQuarantined), Ok(())));
    let ends = [tree.wait_for_end(running).await, tree.wait_for_end(queued).await];
    assert_eq!(ends, ["failed: interrupted", "failed: agent-quarantined"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn crashes_far_apart_are_tolerated() {
    let tree = TestTree::new().await;
    for second in [10, 40, 71, 102, 133] {
        tree.advance_to(second).await;
        tree.crash_agent(DEFAULT_AGENT).await;
    }
    tree.advance_to(140).await;
    let agent = tree.agent_status(DEFAULT_AGENT).await;
    assert_eq!((agent.health, agent.actor_starts.restarts), (Health::Alive, 5));
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_panicking_execution_is_interrupted_and_frees_its_slot() {
    let tree = TestTree::new().await;
    tree.script("bomb", [ScriptedAttempt::panicking()]);
    let (bomb, next) =
        tokio::join!(tree.submit_and_describe_end("bomb"), tree.submit_and_describe_end("next"));
    let agent = tree.agent_status(DEFAULT_AGENT).await;
    assert_eq!([bomb, next], ["failed: interrupted at 0", "completed at 0"]);
    assert_eq!((agent.health, agent.actor_starts.restarts), (Health::Alive, 0));
    tree.end().await;
}

/// Also while the store is away: the slot is free only when the end is written.
#[tokio::test(start_paused = true)]
async fn the_end_of_a_panicked_execution_waits_for_the_store() {
    let tree = TestTree::new().await;
    tree.script("bomb", [ScriptedAttempt::panicking()]);
    tree.faults.fail_next(LedgerCallKind::Settle, 3);
    let (bomb, next) =
        tokio::join!(tree.submit_and_describe_end("bomb"), tree.submit_and_describe_end("next"));
    assert_eq!([bomb, next], ["failed: interrupted at 3", "completed at 3"]);
    tree.end().await;
}

/// What panics here is no actor but a task of one, which nobody would hear of.
#[tokio::test(start_paused = true)]
async fn a_panicking_task_ends_its_actor_and_settles_its_work() {
    let tree = TestTree::new().await;
    tree.script("bomb", [ScriptedAttempt::panicking()]);
    tree.faults.fail_next(LedgerCallKind::Settle, 1);
    let bomb = tree.submit("bomb").await.unwrap();
    // Paused time, between its first try and its next.
    tokio::time::sleep(Duration::from_millis(500)).await;
    tree.clock.panic_at_reading(1);
    // A panic in a task of an actor also ends the actor, so that no caller waits forever
    assert_eq!(tree.wait_for_end(bomb).await, "failed: interrupted");
    assert_eq!(
        tree.submit_and_describe_end("next").await,
        format!("completed at {}", tree.elapsed_seconds())
    );
    assert_eq!(tree.agent_status(DEFAULT_AGENT).await.actor_starts.restarts, 1);
    tree.end().await;
}

/// The panic happens before the execution's actor was born: reading 1 is the agent's.
#[tokio::test(start_paused = true)]
async fn an_execution_whose_actor_fails_to_start_is_interrupted() {
    let tree = TestTree::new().await;
    tree.clock.panic_at_reading(2);
    let failed_start = tree.submit_and_describe_end("a").await;
    let next = tree.submit_and_describe_end("b").await;
    assert_eq!([failed_start, next], ["failed: interrupted at 0", "completed at 0"]);
    tree.end().await;
}

/// One whose work is held, and whose beginning the store does not take for some seconds.
async fn tree_with_unwritten_start() -> (TestTree, ExecutionId) {
    let tree = TestTree::with_tuned_agent(|spec| {
        spec.program_worker_mut().unwrap().heartbeat_interval = Some(Duration::from_millis(2500));
    })
    .await;
    tree.script("a", [ScriptedAttempt::ok(10)]);
    tree.faults.fail_next(LedgerCallKind::AppendBatch, 5);
    let id = tree.submit("a").await.unwrap();
    tree.driver.preserve_over_restart(id);
    (tree, id)
}

/// What the crashed actor had not written is not written beside what its follower writes.
#[tokio::test(start_paused = true)]
async fn an_execution_resumes_from_the_records_of_its_crashed_actor() {
    let (tree, id) = tree_with_unwritten_start().await;
    // Paused time: what beats at second 2.5 reads the clock.
    tokio::time::sleep(Duration::from_millis(1500)).await;
    tree.clock.panic_at_reading(1);
    assert_eq!(tree.wait_for_end(id).await, "completed");
    assert_eq!(tree.driver.recorded_work().starts, ["a#1@0", "again a#1@3"]);
    assert_eq!(tree.states(id).await, "idle starting running completed cleanup idle");
    tree.end().await;
}

/// The actor panics while it handles the order, so its successor must receive the order too.
#[tokio::test(start_paused = true)]
async fn a_cancel_order_survives_the_crash_of_its_actor() {
    let tree = TestTree::new().await;
    tree.script("a", [ScriptedAttempt::ok(10)]);
    let id = tree.submit("a").await.unwrap();
    tree.driver.preserve_over_restart(id);
    tree.advance_to(2).await;
    tree.clock.panic_at_reading(1);
    tree.cancel(id).await.unwrap();
    assert_eq!(tree.wait_for_end(id).await, "cancelled: execution-cancelled");
    assert_eq!(tree.driver.recorded_work().starts, ["a#1@0"]);
    assert_eq!(tree.agent_status(DEFAULT_AGENT).await.actor_starts.restarts, 0);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_unwritten_execution_resumes_when_its_agent_crashes() {
    let (tree, id) = tree_with_unwritten_start().await;
    // Paused time, between its first try and its next.
    tokio::time::sleep(Duration::from_millis(500)).await;
    tree.crash_agent(DEFAULT_AGENT).await;
    assert_eq!(tree.wait_for_end(id).await, "completed");
    assert_eq!(tree.driver.recorded_work().starts, ["a#1@0", "again a#1@1"]);
    assert_eq!(tree.states(id).await, "idle starting running completed cleanup idle");
    tree.end().await;
}

/// It had ended; what says so is in the store before its follower looks there.
#[tokio::test(start_paused = true)]
async fn a_late_written_end_stands_though_the_actor_crashed() {
    let tree = TestTree::new().await;
    tree.faults.delay_next(LedgerCallKind::Settle, [5]);
    let id = tree.submit("a").await.unwrap();
    tree.advance_to(2).await;
    tree.crash_agent(DEFAULT_AGENT).await;
    assert_eq!((tree.wait_for_end(id).await.as_str(), tree.elapsed_seconds()), ("completed", 5));
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn four_executions_that_panic_in_a_minute_restart_their_agent() {
    let tree = TestTree::new().await;
    tree.script("bomb", [ScriptedAttempt::panicking()]);
    for _ in 0..4 {
        assert_eq!(tree.submit_and_describe_end("bomb").await, "failed: interrupted at 0");
    }
    tree.advance_to(5).await;
    assert_eq!(
        (
            tree.agent_status(DEFAULT_AGENT).await.actor_starts.restarts,
            tree.submit_and_describe_end("next").await.as_str()
        ),
        (1, "completed at 5")
    );
    tree.end().await;
}

/// The claim is committed only after the agent has crashed, for an actor that is no more.
#[tokio::test(start_paused = true)]
async fn a_claim_that_outlives_its_agent_is_settled() {
    let tree = TestTree::new().await;
    tree.faults.delay_next(LedgerCallKind::Claim, [10]);
    let id = tree.submit("a").await.unwrap();
    tree.advance_to(5).await;
    tree.crash_agent(DEFAULT_AGENT).await;
    let end = format!("{} at {}", tree.wait_for_end(id).await, tree.elapsed_seconds());
    tree.advance_to(60).await;
    assert_eq!(
        [end, tree.submit_and_describe_end("b").await],
        ["failed: interrupted at 10", "completed at 60"]
    );
    tree.end().await;
}

/// The record is committed only after the agent has crashed and its successor has looked.
#[tokio::test(start_paused = true)]
async fn a_record_that_outlives_its_agent_is_settled() {
    let tree = TestTree::new().await;
    tree.faults.delay_next(LedgerCallKind::Accept, [6]);
    let submission = async { tree.submit_with_message_id(DEFAULT_AGENT, "message", "a").await };
    let crash = async {
        tree.advance_to(3).await;
        tree.crash_agent(DEFAULT_AGENT).await;
    };
    let (submitted, ()) = tokio::join!(submission, crash);
    tree.advance_to(30).await;
    let (id, is_duplicate) =
        tree.submit_with_message_id(DEFAULT_AGENT, "message", "a").await.unwrap();
    assert_eq!((submitted, is_duplicate), (Err(Code::Internal), true));
    assert_eq!(tree.wait_for_end(id).await, "failed: interrupted-not-run");
    assert_eq!(tree.submit_and_describe_end("b").await, "completed at 30");
    tree.end().await;
}

/// A start that fails because of the ledger is no failure of the agent: it is tried again a second later.
#[tokio::test(start_paused = true)]
async fn an_agent_that_cannot_read_the_ledger_is_restarted() {
    let tree = TestTree::new().await;
    tree.faults.fail_next(LedgerCallKind::List, 1);
    tree.crash_agent(DEFAULT_AGENT).await;
    tree.advance_to(5).await;
    let agent = tree.agent_status(DEFAULT_AGENT).await;
    assert_eq!((agent.health, agent.actor_starts.restarts), (Health::Alive, 1));
    assert_eq!(tree.submit_and_describe_end("a").await, "completed at 5");
    tree.end().await;
}

/// Four failures within a minute would quarantine the agent, and fail its executions.
#[tokio::test(start_paused = true)]
async fn a_long_ledger_outage_does_not_quarantine_a_failed_agent() {
    let tree = tree_with_two_agents().await;
    let running = tree.submit_to("one", "a").await.unwrap();
    tree.faults.fail_next(LedgerCallKind::List, u32::MAX);
    tree.crash_agent("one").await;
    tree.advance_to(600).await;
    let agent = tree.agent_status("one").await;
    // An agent whose next actor cannot read the ledger waits for the ledger and is not
    // quarantined
    assert_eq!((agent.health, agent.actor_starts.restarts), (Health::Restarting, 1));
    let try_count = tree.faults.call_count(LedgerCallKind::List);
    assert!((10..=30).contains(&try_count), "{try_count} tries in ten minutes");
    assert_eq!(tree.submit_to("one", "b").await, Err(Code::LedgerUnavailable));
    tree.faults.clear_faults();
    tree.advance_to(640).await;
    assert_eq!(tree.wait_for_end(running).await, "completed");
    let agent = tree.agent_status("one").await;
    assert_eq!((agent.health, agent.actor_starts.restarts), (Health::Alive, 1));
    let next = tree.submit_to("one", "c").await.unwrap();
    assert_eq!(tree.wait_for_end(next).await, "completed");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_service_stops_while_an_agent_waits_for_the_ledger() {
    let mut tree = tree_with_two_agents().await;
    tree.faults.fail_next(LedgerCallKind::List, u32::MAX);
    tree.crash_agent("one").await;
    tree.advance_to(50).await;
    tree.stop(5).await;
    assert!(tree.elapsed_seconds() <= 56, "it took until {}", tree.elapsed_seconds());
    tree.end().await;
}

/// A caller who waits for an execution without an actor gets an answer before the ledger works again.
#[tokio::test(start_paused = true)]
async fn a_caller_gets_an_answer_while_the_agent_awaits_the_ledger() {
    let tree = tree_with_two_agents().await;
    tree.script("a", [ScriptedAttempt::ok(100)]);
    let caller = tokio::spawn(tree.submit_and_wait_once("one", "message", "a"));
    tree.advance_to(1).await;
    tree.faults.fail_next(LedgerCallKind::List, u32::MAX);
    tree.faults.fail_next(LedgerCallKind::Settle, u32::MAX);
    tree.crash_agent("one").await;
    assert_eq!(caller.await.unwrap().unwrap_err().code, Code::LedgerUnavailable);
    assert!(tree.elapsed_seconds() <= 31, "at {}", tree.elapsed_seconds());
    tree.end().await;
}
