//! The states of one execution, in virtual time.

use algonius_actors::model::agent::{Access, AgentSpec};
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::event::{EventKind, TextChannel};
use algonius_actors::ports::ledger::Ledger;
use algonius_actors::testing::{LedgerCallKind, ScriptedAttempt, TestTree};

const TRANSIENT_FAILURE: Code = Code::TransientFailure;

/// Runs a script with nothing around it; returns how it ended, when, and the states on the way.
async fn run_attempts(attempts: impl IntoIterator<Item = ScriptedAttempt>) -> [String; 2] {
    run_with_tuned_agent(|_| (), attempts).await
}

async fn run_with_tuned_agent(
    tune: impl FnOnce(&mut AgentSpec),
    attempts: impl IntoIterator<Item = ScriptedAttempt>,
) -> [String; 2] {
    let tree = TestTree::with_tuned_agent(tune).await;
    tree.script("work", attempts);
    let id = tree.submit("work").await.unwrap();
    let end = format!("{} at {}", tree.wait_for_end(id).await, tree.elapsed_seconds());
    tree.advance_to(10_000).await;
    assert_eq!(tree.ledger.settle_call_count(id).await, 1, "it is settled once");
    let states = tree.states(id).await;
    tree.end().await;
    [end, states]
}

/// Cancels at a second; returns how it ended, when, and the states on the way.
async fn run_cancelled_at(
    second: u64,
    attempts: impl IntoIterator<Item = ScriptedAttempt>,
) -> [String; 2] {
    let tree = TestTree::new().await;
    tree.script("work", attempts);
    let id = tree.submit("work").await.unwrap();
    tree.advance_to(second).await;
    tree.cancel(id).await.unwrap();
    let end = format!("{} at {}", tree.wait_for_end(id).await, tree.elapsed_seconds());
    tree.advance_to(10_000).await;
    let states = tree.states(id).await;
    tree.end().await;
    [end, states]
}

#[tokio::test(start_paused = true)]
async fn successful_work_completes() {
    assert_eq!(
        run_attempts([ScriptedAttempt::ok(9).with_start_delay(3)]).await,
        ["completed at 12", "idle starting running completed cleanup idle"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_answer_is_stored_and_its_events_are_numbered() {
    let tree = TestTree::new().await;
    tree.script("work", [ScriptedAttempt::ok(1).with_answer("forty-two")]);
    let id = tree.submit("work").await.unwrap();
    tree.wait_for_end(id).await;
    tree.advance_to(60).await;
    let events = tree.ledger.events(id, 0).await.unwrap();
    let numbers: Vec<_> = events.iter().map(|event| event.number).collect();
    assert_eq!((tree.answer(id).await.as_str(), numbers), ("forty-two", (1..=8).collect()));
    tree.end().await;
}

/// A record that takes long holds up work of which the beginning is a record of its own.
#[tokio::test(start_paused = true)]
async fn the_start_of_short_work_is_written_with_its_end() {
    for (run_time, end) in [(0, "completed at 0"), (1, "completed at 5")] {
        let tree = TestTree::new().await;
        tree.script("work", [ScriptedAttempt::ok(run_time)]);
        tree.faults.delay_next(LedgerCallKind::AppendBatch, [5]);
        assert_eq!(tree.submit_and_describe_end("work").await, end);
        tree.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn output_beyond_the_limit_is_cut_between_its_ends_and_counted() {
    let tree = TestTree::with_tuned_agent(|spec| spec.limits.sizes.max_output_bytes = 6).await;
    tree.script("work", [ScriptedAttempt::ok(1).with_answer("forty-two")]);
    let id = tree.submit("work").await.unwrap();
    tree.wait_for_end(id).await;
    let events = tree.ledger.events(id, 0).await.unwrap();
    let truncation_event = EventKind::OutputTruncated { channel: TextChannel::Stdout, dropped: 3 };
    assert!(events.iter().any(|event| event.data == truncation_event), "{events:?}");
    assert_eq!(tree.answer(id).await, "forty\n[... 3 bytes were dropped ...]\no");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_permanent_failure_is_not_retried() {
    assert_eq!(
        run_attempts([ScriptedAttempt::fail(2, Code::Exit), ScriptedAttempt::ok(0)]).await,
        ["failed: agent-exit at 2", "idle starting running failed cleanup idle"]
    );
}

#[tokio::test(start_paused = true)]
async fn work_that_cannot_start_is_not_retried() {
    assert_eq!(
        run_attempts([ScriptedAttempt::failing_to_start(Code::NotStarted), ScriptedAttempt::ok(0)])
            .await,
        ["failed: agent-not-started at 0", "idle starting failed cleanup idle"]
    );
}

#[tokio::test(start_paused = true)]
async fn transient_failures_are_retried_after_1_2_and_4_seconds() {
    let failing_attempt = || ScriptedAttempt::fail(10, TRANSIENT_FAILURE);
    assert_eq!(
        run_attempts([
            failing_attempt(),
            failing_attempt(),
            failing_attempt(),
            ScriptedAttempt::ok(0)
        ])
        .await,
        [
            "completed at 37", // 3 x 10 + 1 + 2 + 4
            "idle starting running failed starting running failed starting running failed \
             starting running completed cleanup idle"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn exhausted_retries_end_the_execution() {
    assert_eq!(
        run_attempts([ScriptedAttempt::fail(0, TRANSIENT_FAILURE)]).await[0],
        "failed: agent-transient at 7"
    );
}

#[tokio::test(start_paused = true)]
async fn the_next_attempt_waits_until_the_last_one_is_cleaned() {
    let attempts =
        [ScriptedAttempt::fail(0, TRANSIENT_FAILURE).with_cleanup_time(20), ScriptedAttempt::ok(0)];
    assert_eq!(run_attempts(attempts).await[0], "completed at 21");
}

#[tokio::test(start_paused = true)]
async fn a_writing_agent_is_not_retried_after_it_got_its_input() {
    let make_read_write = |spec: &mut AgentSpec| spec.access = Access::ReadWrite;
    let end_with_input =
        run_with_tuned_agent(make_read_write, [ScriptedAttempt::fail(1, TRANSIENT_FAILURE)]).await;
    let end_without_input = run_with_tuned_agent(
        make_read_write,
        [ScriptedAttempt::failing_to_start(Code::NoResources), ScriptedAttempt::ok(0)],
    )
    .await;
    assert_eq!(
        [&*end_with_input[0], &*end_without_input[0]],
        ["failed: agent-transient at 1", "completed at 1"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_timeout_stands_although_the_work_reports_success_later() {
    assert_eq!(
        run_attempts([ScriptedAttempt::ok(1000).with_stop_delay(4)]).await,
        ["timeout: execution-timeout at 304", "idle starting running timeout cleanup idle"]
    );
}

#[tokio::test(start_paused = true)]
async fn work_that_does_not_start_in_time_times_out() {
    assert_eq!(
        run_attempts([ScriptedAttempt::never_reporting_start()]).await,
        ["timeout: start-timeout at 30", "idle starting timeout cleanup idle"]
    );
}

#[tokio::test(start_paused = true)]
async fn a_timeout_is_not_retried() {
    assert_eq!(
        run_attempts([ScriptedAttempt::ok(1000), ScriptedAttempt::ok(0)]).await[0],
        "timeout: execution-timeout at 300"
    );
}

/// The timer of attempt 1 rings at second 300, while attempt 2 runs.
#[tokio::test(start_paused = true)]
async fn a_late_timer_of_an_older_attempt_changes_nothing() {
    assert_eq!(
        run_attempts([ScriptedAttempt::fail(290, TRANSIENT_FAILURE), ScriptedAttempt::ok(250)])
            .await[0],
        "completed at 541"
    );
}

#[tokio::test(start_paused = true)]
async fn each_attempt_has_the_whole_timeout() {
    assert_eq!(
        run_attempts([ScriptedAttempt::fail(290, TRANSIENT_FAILURE), ScriptedAttempt::ok(500)])
            .await[0],
        "timeout: execution-timeout at 591"
    );
}

#[tokio::test(start_paused = true)]
async fn work_that_ignores_its_stop_is_given_up_after_ten_seconds() {
    assert_eq!(
        run_attempts([ScriptedAttempt::ignoring_stop()]).await[0],
        "timeout: execution-timeout at 315"
    );
}

#[tokio::test(start_paused = true)]
async fn a_driver_that_drops_its_reporter_fails_as_internal() {
    assert_eq!(
        run_attempts([ScriptedAttempt::dropping_reporter(5)]).await,
        ["failed: internal at 5", "idle starting running failed cleanup idle"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_execution_is_cancelled_while_it_starts() {
    assert_eq!(
        run_cancelled_at(2, [ScriptedAttempt::ok(9).with_start_delay(5)]).await,
        ["cancelled: execution-cancelled at 2", "idle starting cancelled cleanup idle"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_execution_is_cancelled_while_it_runs() {
    assert_eq!(
        run_cancelled_at(2, [ScriptedAttempt::ok(9).with_stop_delay(3)]).await,
        ["cancelled: execution-cancelled at 5", "idle starting running cancelled cleanup idle"]
    );
}

#[tokio::test(start_paused = true)]
async fn an_execution_is_cancelled_between_attempts() {
    let failing_attempt = || ScriptedAttempt::fail(0, TRANSIENT_FAILURE);
    assert_eq!(
        run_cancelled_at(
            5,
            [failing_attempt(), failing_attempt(), failing_attempt(), ScriptedAttempt::ok(0)]
        )
        .await,
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
        run_cancelled_at(
            5,
            [
                ScriptedAttempt::fail(0, TRANSIENT_FAILURE).with_cleanup_time(20),
                ScriptedAttempt::ok(0)
            ]
        )
        .await,
        [
            "cancelled: execution-cancelled at 5",
            "idle starting running failed cancelled cleanup idle"
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_second_cancellation_changes_nothing() {
    let tree = TestTree::new().await;
    tree.script("work", [ScriptedAttempt::ok(9).with_stop_delay(3)]);
    let id = tree.submit("work").await.unwrap();
    tree.advance_to(2).await;
    tree.cancel(id).await.unwrap();
    tree.advance_to(4).await;
    tree.cancel(id).await.unwrap();
    assert_eq!(
        (tree.wait_for_end(id).await.as_str(), tree.elapsed_seconds()),
        ("cancelled: execution-cancelled", 5)
    );
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_queued_execution_is_cancelled_and_never_begins() {
    let tree = TestTree::new().await;
    tree.script("first", [ScriptedAttempt::ok(100)]);
    tree.submit("first").await.unwrap();
    let id = tree.submit("second").await.unwrap();
    tree.advance_to(7).await;
    tree.cancel(id).await.unwrap();
    let end = format!("{} at {}", tree.wait_for_end(id).await, tree.elapsed_seconds());
    tree.advance_to(200).await;
    let states = tree.states(id).await;
    let observed = [end, states, tree.driver.recorded_work().starts.join(" ")];
    assert_eq!(
        observed,
        ["cancelled: execution-cancelled at 7", "idle cancelled cleanup idle", "first#1@0"]
    );
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_claiming_execution_is_cancelled_and_never_begins() {
    let tree = TestTree::new().await;
    tree.faults.delay_next(LedgerCallKind::Claim, [10]);
    let id = tree.submit("work").await.unwrap();
    tree.advance_to(7).await;
    tree.cancel(id).await.unwrap();
    let end = format!("{} at {}", tree.wait_for_end(id).await, tree.elapsed_seconds());
    tree.advance_to(200).await;
    let observed = [end, tree.states(id).await, tree.driver.recorded_work().starts.join(" ")];
    assert_eq!(
        observed,
        ["cancelled: execution-cancelled at 10", "idle starting cancelled cleanup idle", ""]
    );
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_ended_execution_cannot_be_cancelled() {
    let tree = TestTree::new().await;
    let id = tree.submit("work").await.unwrap();
    tree.wait_for_end(id).await;
    assert_eq!(tree.cancel(id).await, Err(Code::ExecutionEnded));
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_claim_ends_the_execution() {
    let tree = TestTree::new().await;
    tree.faults.fail_next(LedgerCallKind::Claim, 1);
    let id = tree.submit("work").await.unwrap();
    let end = tree.wait_for_end(id).await;
    tree.advance_to(60).await;
    assert_eq!(
        [end, tree.states(id).await],
        ["failed: ledger-unavailable", "idle failed cleanup idle"]
    );
    tree.end().await;
}

/// The store fails four times; each time it is asked again a second later.
#[tokio::test(start_paused = true)]
async fn an_end_is_written_once_the_store_has_recovered() {
    let tree = TestTree::new().await;
    tree.faults.fail_next(LedgerCallKind::Settle, 4);
    assert_eq!(tree.submit_and_describe_end("work").await, "completed at 4");
    tree.end().await;
}

/// The pid is that of the living attempt, and none between attempts.
#[tokio::test(start_paused = true)]
async fn the_pid_of_the_running_attempt_is_shown() {
    let tree = TestTree::new().await;
    tree.script("work", [ScriptedAttempt::fail(10, TRANSIENT_FAILURE), ScriptedAttempt::ok(10)]);
    tree.submit("work").await.unwrap();
    let mut pids = Vec::new();
    for (second, phase) in [(5, "first"), (10, "between"), (15, "second")] {
        tree.advance_to(second).await;
        // Past the instant at which the act ends; virtual time, nothing waits.
        tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        let running = tree.agent_status("worker").await.work.running;
        pids.push((
            phase,
            running[0].pid,
            running[0].attempt_id.map(|attempt_id| attempt_id.attempt),
        ));
    }
    assert_eq!(
        pids,
        [("first", Some(1), Some(1)), ("between", None, Some(1)), ("second", Some(2), Some(2))]
    );
    tree.end().await;
}
