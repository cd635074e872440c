//! The life of one execution, in virtual time.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use algonius_actors::model::agent::{Access, AgentSpec};
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::event::{EventKind, TextChannel};
use algonius_actors::ports::ledger::Ledger;
use algonius_actors::testing::{Act, GatedCall, World};

const TRANSIENT: Code = Code::TransientFailure;

/// Runs a script with nothing around it; returns how it ended, when, and the states on the way.
async fn run(acts: impl IntoIterator<Item = Act>) -> [String; 2] {
    run_tuned(|_| (), acts).await
}

async fn run_tuned(
    tune: impl FnOnce(&mut AgentSpec),
    acts: impl IntoIterator<Item = Act>,
) -> [String; 2] {
    let world = World::tuned(tune).await;
    world.script("work", acts);
    let id = world.submit("work").await.unwrap();
    let end = format!("{} at {}", world.wait(id).await, world.second());
    world.at(10_000).await;
    assert_eq!(world.ledger.settle_calls(id).await, 1, "it is settled once");
    let path = world.path(id).await;
    world.end().await;
    [end, path]
}

/// Cancels at a second; returns how it ended, when, and the states on the way.
async fn cancelled_at(second: u64, acts: impl IntoIterator<Item = Act>) -> [String; 2] {
    let world = World::new().await;
    world.script("work", acts);
    let id = world.submit("work").await.unwrap();
    world.at(second).await;
    world.cancel(id).await.unwrap();
    let end = format!("{} at {}", world.wait(id).await, world.second());
    world.at(10_000).await;
    let path = world.path(id).await;
    world.end().await;
    [end, path]
}

#[tokio::test(start_paused = true)]
async fn successful_work_completes() {
    assert_eq!(
        run([Act::ok(9).starting_for(3)]).await,
        ["completed at 12", "idle starting running completed cleanup idle"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_stored_and_its_events_are_numbered() {
    let world = World::new().await;
    world.script("work", [Act::ok(1).saying("forty-two")]);
    let id = world.submit("work").await.unwrap();
    world.wait(id).await;
    world.at(60).await;
    let events = world.ledger.events(id, 0).await.unwrap();
    let numbers: Vec<_> = events.iter().map(|event| event.number).collect();
    assert_eq!((world.answer(id).await.as_str(), numbers), ("forty-two", (1..=8).collect()));
    world.end().await;
}

/// A record that takes long holds up work of which the beginning is a record of its own.
#[tokio::test(start_paused = true)]
async fn the_start_of_short_work_is_written_with_its_end() {
    for (lasts, end) in [(0, "completed at 0"), (1, "completed at 5")] {
        let world = World::new().await;
        world.script("work", [Act::ok(lasts)]);
        world.faults.slow(GatedCall::Record, [5]);
        assert_eq!(world.run("work").await, end);
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn output_beyond_the_limit_is_cut_between_its_ends_and_counted() {
    let world = World::tuned(|spec| spec.limits.sizes.output = 6).await;
    world.script("work", [Act::ok(1).saying("forty-two")]);
    let id = world.submit("work").await.unwrap();
    world.wait(id).await;
    let events = world.ledger.events(id, 0).await.unwrap();
    let dropped = EventKind::OutputTruncated { channel: TextChannel::Stdout, dropped: 3 };
    assert!(events.iter().any(|event| event.data == dropped), "{events:?}");
    assert_eq!(world.answer(id).await, "forty\n[... 3 bytes were dropped ...]\no");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_permanent_failure_is_not_retried() {
    assert_eq!(
        run([Act::fail(2, Code::Exit), Act::ok(0)]).await,
        ["failed: agent-exit at 2", "idle starting running failed cleanup idle"]
    );
}

#[tokio::test(start_paused = true)]
async fn work_that_cannot_start_is_not_retried() {
    assert_eq!(
        run([Act::stillborn(Code::NotStarted), Act::ok(0)]).await,
        ["failed: agent-not-started at 0", "idle starting failed cleanup idle"]
    );
}

#[tokio::test(start_paused = true)]
async fn transient_failures_are_retried_after_1_2_and_4_seconds() {
    let fail = || Act::fail(10, TRANSIENT);
    assert_eq!(
        run([fail(), fail(), fail(), Act::ok(0)]).await,
        [
            "completed at 37", // 3 x 10 + 1 + 2 + 4
            "idle starting running failed starting running failed starting running failed \
             starting running completed cleanup idle"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn exhausted_retries_end_the_execution() {
    assert_eq!(run([Act::fail(0, TRANSIENT)]).await[0], "failed: agent-transient at 7");
}

#[tokio::test(start_paused = true)]
async fn the_next_attempt_waits_until_the_last_one_is_cleaned() {
    let acts = [Act::fail(0, TRANSIENT).clearing_for(20), Act::ok(0)];
    assert_eq!(run(acts).await[0], "completed at 21");
}

#[tokio::test(start_paused = true)]
async fn a_writing_agent_is_not_retried_after_it_got_its_input() {
    let writes = |spec: &mut AgentSpec| spec.access = Access::ReadWrite;
    let had_input = run_tuned(writes, [Act::fail(1, TRANSIENT)]).await;
    let had_none = run_tuned(writes, [Act::stillborn(Code::NoResources), Act::ok(0)]).await;
    assert_eq!([&*had_input[0], &*had_none[0]], ["failed: agent-transient at 1", "completed at 1"]);
}

#[tokio::test(start_paused = true)]
async fn a_timeout_stands_although_the_work_reports_success_later() {
    assert_eq!(
        run([Act::ok(1000).stopping_for(4)]).await,
        ["timeout: execution-timeout at 304", "idle starting running timeout cleanup idle"]
    );
}

#[tokio::test(start_paused = true)]
async fn work_that_does_not_start_in_time_times_out() {
    assert_eq!(
        run([Act::mute()]).await,
        ["timeout: start-timeout at 30", "idle starting timeout cleanup idle"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_timeout_is_not_retried() {
    assert_eq!(run([Act::ok(1000), Act::ok(0)]).await[0], "timeout: execution-timeout at 300");
}

/// The timer of attempt 1 rings at second 300, while attempt 2 runs.
#[tokio::test(start_paused = true)]
async fn a_late_timer_of_an_older_attempt_changes_nothing() {
    assert_eq!(run([Act::fail(290, TRANSIENT), Act::ok(250)]).await[0], "completed at 541");
}

#[tokio::test(start_paused = true)]
async fn each_attempt_has_the_whole_timeout() {
    assert_eq!(
        run([Act::fail(290, TRANSIENT), Act::ok(500)]).await[0],
        "timeout: execution-timeout at 591"
    );
}

#[tokio::test(start_paused = true)]
async fn work_that_ignores_its_stop_is_given_up_after_ten_seconds() {
    assert_eq!(run([Act::deaf()]).await[0], "timeout: execution-timeout at 315");
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_drops_its_reporter_fails_as_internal() {
    assert_eq!(
        run([Act::desert(5)]).await,
        ["failed: internal at 5", "idle starting running failed cleanup idle"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_execution_is_cancelled_while_it_starts() {
    assert_eq!(
        cancelled_at(2, [Act::ok(9).starting_for(5)]).await,
        ["cancelled: execution-cancelled at 2", "idle starting cancelled cleanup idle"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_execution_is_cancelled_while_it_runs() {
    assert_eq!(
        cancelled_at(2, [Act::ok(9).stopping_for(3)]).await,
        ["cancelled: execution-cancelled at 5", "idle starting running cancelled cleanup idle"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_execution_is_cancelled_between_attempts() {
    let fail = || Act::fail(0, TRANSIENT);
    assert_eq!(
        cancelled_at(5, [fail(), fail(), fail(), Act::ok(0)]).await,
        [
            "cancelled: execution-cancelled at 5",
            "idle starting running failed starting running failed starting running failed \
             cancelled cleanup idle"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn an_execution_is_cancelled_during_cleanup() {
    assert_eq!(
        cancelled_at(5, [Act::fail(0, TRANSIENT).clearing_for(20), Act::ok(0)]).await,
        [
            "cancelled: execution-cancelled at 5",
            "idle starting running failed cancelled cleanup idle"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_second_cancellation_changes_nothing() {
    let world = World::new().await;
    world.script("work", [Act::ok(9).stopping_for(3)]);
    let id = world.submit("work").await.unwrap();
    world.at(2).await;
    world.cancel(id).await.unwrap();
    world.at(4).await;
    world.cancel(id).await.unwrap();
    assert_eq!(
        (world.wait(id).await.as_str(), world.second()),
        ("cancelled: execution-cancelled", 5)
    );
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_queued_execution_is_cancelled_and_never_begins() {
    let world = World::new().await;
    world.script("first", [Act::ok(100)]);
    world.submit("first").await.unwrap();
    let id = world.submit("second").await.unwrap();
    world.at(7).await;
    world.cancel(id).await.unwrap();
    let end = format!("{} at {}", world.wait(id).await, world.second());
    world.at(200).await;
    let path = world.path(id).await;
    let story = [end, path, world.driver.stage().begun.join(" ")];
    assert_eq!(
        story,
        ["cancelled: execution-cancelled at 7", "idle cancelled cleanup idle", "first#1@0"]
    );
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_claiming_execution_is_cancelled_and_never_begins() {
    let world = World::new().await;
    world.faults.slow(GatedCall::Claim, [10]);
    let id = world.submit("work").await.unwrap();
    world.at(7).await;
    world.cancel(id).await.unwrap();
    let end = format!("{} at {}", world.wait(id).await, world.second());
    world.at(200).await;
    let story = [end, world.path(id).await, world.driver.stage().begun.join(" ")];
    assert_eq!(
        story,
        ["cancelled: execution-cancelled at 10", "idle starting cancelled cleanup idle", ""]
    );
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_ended_execution_cannot_be_cancelled() {
    let world = World::new().await;
    let id = world.submit("work").await.unwrap();
    world.wait(id).await;
    assert_eq!(world.cancel(id).await, Err(Code::ExecutionEnded));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_claim_ends_the_execution() {
    let world = World::new().await;
    world.faults.fail(GatedCall::Claim, 1);
    let id = world.submit("work").await.unwrap();
    let end = world.wait(id).await;
    world.at(60).await;
    assert_eq!(
        [end, world.path(id).await],
        ["failed: ledger-unavailable", "idle failed cleanup idle"]
    );
    world.end().await;
}

/// The store fails four times; each time it is asked again a second later.
#[tokio::test(start_paused = true)]
async fn an_end_is_written_once_the_store_has_recovered() {
    let world = World::new().await;
    world.faults.fail(GatedCall::Settle, 4);
    assert_eq!(world.run("work").await, "completed at 4");
    world.end().await;
}

/// The pid is that of the living attempt, and none between attempts.
#[tokio::test(start_paused = true)]
async fn the_pid_of_the_running_attempt_is_shown() {
    let world = World::new().await;
    world.script("work", [Act::fail(10, TRANSIENT), Act::ok(10)]);
    world.submit("work").await.unwrap();
    let mut pids = Vec::new();
    for (second, moment) in [(5, "first"), (10, "between"), (15, "second")] {
        world.at(second).await;
        // Past the instant at which the act ends; virtual time, nothing waits.
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        let running = world.agent("worker").await.work.running;
        pids.push((moment, running[0].pid, running[0].attempt_id.map(|stamp| stamp.attempt)));
    }
    assert_eq!(
        pids,
        [("first", Some(1), Some(1)), ("between", None, Some(1)), ("second", Some(2), Some(2))]
    );
    world.end().await;
}
