//! Callers get an answer in time while the ledger accepts no record, in virtual time.

use std::time::Duration;

use algonius_actors::api::{Subscription, SubscriptionItem};
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::ExecutionState;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::testing::cognition::cognitive_spec;
use algonius_actors::testing::{
    DEFAULT_AGENT, LedgerCallKind, ScriptedAttempt, TestTree, agent_spec,
};
use tokio::time::Instant;

use crate::cognitive::{final_answer_reply, tool_call_reply};
use crate::team::{hops, preserve_hops, team_spec};

/// Longest time from the end of the work to the answer of a caller who waits.
const MAX_ANSWER_DELAY: Duration = Duration::from_secs(30);

/// Waits as a caller that connects later, and returns the duration of the wait.
async fn measure_wait_for_end(tree: &TestTree, id: ExecutionId) -> (Result<(), Failure>, Duration) {
    let (started_at, record) = (Instant::now(), tree.record(id).await.unwrap());
    let waiting = tree.api().requests.wait_for_end_or_question(&record.agent, id, None);
    let result = tokio::time::timeout(Duration::from_secs(600), waiting).await.unwrap();
    (result.map(drop), started_at.elapsed())
}

fn expect_disk_failure(failure: &Failure) {
    assert_eq!(failure.code, Code::LedgerUnavailable);
    assert!(failure.message.contains("disk"), "{failure:?}");
}

#[tokio::test(start_paused = true)]
async fn a_waiting_caller_learns_of_an_unrecorded_end() {
    let tree = TestTree::new().await;
    tree.script("a", [ScriptedAttempt::ok(40)]);
    tree.faults.fail_next(LedgerCallKind::Settle, u32::MAX);
    let started_at = Instant::now();
    expect_disk_failure(
        &tree.submit_and_wait_once(DEFAULT_AGENT, "message", "a").await.unwrap_err(),
    );
    let (work_time, elapsed) = (Duration::from_secs(40), started_at.elapsed());
    assert!(elapsed > work_time && elapsed < work_time + MAX_ANSWER_DELAY, "{elapsed:?}");
    tree.faults.clear_faults();
    let (id, _) = tree.submit_with_message_id(DEFAULT_AGENT, "message", "a").await.unwrap();
    assert_eq!(tree.wait_for_end(id).await, "completed");
    assert_eq!(tree.driver.recorded_work().starts, ["a#1@0"]);
    tree.end().await;
}

/// A process instance that follows a crash needs the output that the clean-up removes.
#[tokio::test(start_paused = true)]
async fn the_clean_up_waits_for_the_record_of_the_end() {
    for (call, first_attempt) in [
        (LedgerCallKind::Settle, ScriptedAttempt::ok(5)),
        (LedgerCallKind::AppendBatch, ScriptedAttempt::fail(5, Code::TransientFailure)),
    ] {
        let tree = TestTree::new().await;
        tree.script("a", [first_attempt, ScriptedAttempt::ok(5)]);
        let id = tree.submit("a").await.unwrap();
        tree.advance_to(4).await;
        tree.faults.delay_next(call, [3]);
        tree.advance_to(6).await;
        // The end that an attempt reports is recorded before the service removes what a process instance after a
        // crash would continue with, unless the ledger accepts no record for ten seconds
        assert_eq!(work_and_lease_counts(&tree), (0, 1), "{call:?} has not returned");
        assert_eq!(tree.wait_for_end(id).await, "completed");
        tree.end().await;
    }
}

/// Returns the number of running attempts, and of those that are not cleaned up.
fn work_and_lease_counts(tree: &TestTree) -> (usize, usize) {
    let probe = tree.driver.recorded_work();
    (probe.alive_count, probe.lease_count)
}

/// Without a ledger, the remains of an attempt do not stay for ever.
#[tokio::test(start_paused = true)]
async fn the_clean_up_does_not_wait_for_ever() {
    let tree = TestTree::new().await;
    tree.script("a", [ScriptedAttempt::ok(5)]);
    let id = tree.submit("a").await.unwrap();
    tree.advance_to(1).await;
    tree.faults.fail_next(LedgerCallKind::Settle, u32::MAX);
    tree.advance_to(14).await;
    assert_eq!(work_and_lease_counts(&tree), (0, 1));
    tree.advance_to(16).await;
    assert_eq!(work_and_lease_counts(&tree), (0, 0));
    tree.faults.clear_faults();
    assert_eq!(tree.wait_for_end(id).await, "completed");
    tree.end().await;
}

/// A store that fails for a short time makes no caller fail.
#[tokio::test(start_paused = true)]
async fn a_waiting_caller_receives_a_late_recorded_end() {
    let tree = TestTree::new().await;
    tree.faults.fail_next(LedgerCallKind::Settle, 5);
    let id = tree.submit("a").await.unwrap();
    let (answer, elapsed) = measure_wait_for_end(&tree, id).await;
    assert_eq!((answer, elapsed.as_secs()), (Ok(()), 5));
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_waiting_caller_is_answered_during_a_drain() {
    let mut tree = TestTree::new().await;
    tree.script("a", [ScriptedAttempt::ok(5)]);
    let id = tree.submit("a").await.unwrap();
    tree.advance_to(1).await;
    tree.faults.fail_next(LedgerCallKind::Settle, u32::MAX);
    let stopping = tokio::spawn(tree.stop_future(300));
    let (answer, elapsed) = measure_wait_for_end(&tree, id).await;
    expect_disk_failure(&answer.unwrap_err());
    assert!(elapsed < MAX_ANSWER_DELAY, "{elapsed:?}");
    tree.faults.clear_faults();
    stopping.await.unwrap();
    assert_eq!(tree.describe_end(id).await, "completed");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_waiting_caller_learns_of_an_unrecorded_question() {
    let tree = TestTree::new().await;
    tree.script("a", [ScriptedAttempt::requesting_input(5)]);
    let caller = tokio::spawn(tree.submit_and_wait_once(DEFAULT_AGENT, "message", "a"));
    tree.advance_to(1).await;
    let started_at = Instant::now();
    for call in [LedgerCallKind::AppendBatch, LedgerCallKind::ChangeOutput] {
        tree.faults.fail_next(call, u32::MAX);
    }
    let answer = tokio::time::timeout(Duration::from_secs(600), caller).await;
    expect_disk_failure(&answer.expect("an answer").unwrap().unwrap_err());
    // A caller who waits for a question, and a follower, learn within 30 seconds that the
    // disk cannot be written
    assert!(started_at.elapsed() < MAX_ANSWER_DELAY, "{:?}", started_at.elapsed());
    tree.faults.clear_faults();
    tree.advance_to(60).await;
    let (id, is_duplicate) =
        tree.submit_with_message_id(DEFAULT_AGENT, "message", "a").await.unwrap();
    assert_eq!(
        (is_duplicate, tree.record(id).await.unwrap().state),
        (true, ExecutionState::Waiting)
    );
    tree.end().await;
}

/// Returns a team whose only step is a team of two members. Each member takes ten seconds.
async fn tree_with_nested_teams() -> TestTree {
    let members = ["one", "two"];
    let specs = [team_spec("inner", &members), team_spec("outer", &["inner"])];
    let tree = TestTree::with_agents(members.map(agent_spec).into_iter().chain(specs)).await;
    for (input, answer) in [("a", "ab"), ("ab", "abc")] {
        tree.script(input, [ScriptedAttempt::ok(10).with_answer(answer)]);
    }
    tree
}

#[tokio::test(start_paused = true)]
async fn the_caller_of_a_team_learns_of_an_unrecorded_step() {
    for call in [LedgerCallKind::Settle, LedgerCallKind::AppendBatch, LedgerCallKind::Accept] {
        let tree = tree_with_nested_teams().await;
        let caller = tokio::spawn(tree.submit_and_wait_once("outer", "message", "a"));
        tree.advance_to(5).await;
        tree.faults.fail_next(call, u32::MAX);
        let answer = tokio::time::timeout(Duration::from_secs(600), caller).await;
        expect_disk_failure(&answer.expect("an answer").unwrap().unwrap_err());
        // A caller of a team or of a cognitive agent learns within 30 seconds that a step cannot be recorded
        assert!(tree.elapsed_seconds() < 40, "{call:?}: {}", tree.elapsed_seconds());
        tree.faults.clear_faults();
        let (run, is_duplicate) =
            tree.submit_with_message_id("outer", "message", "a").await.unwrap();
        assert!(is_duplicate);
        assert_eq!(tree.wait_for_end(run).await, "completed", "{call:?}");
        assert_eq!(tree.driver.recorded_work().starts.len(), 2, "{call:?}");
        tree.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn the_caller_of_a_cognitive_run_learns_of_an_unrecorded_step() {
    let tree = TestTree::with_agents([cognitive_spec("thinker", 5)]).await;
    let replies = [tool_call_reply("push"), final_answer_reply("done")];
    tree.driver.cognition.script_replies("go", replies);
    let caller = tokio::spawn(tree.submit_and_wait_once("thinker", "message", "go"));
    tree.advance_to(5).await;
    tree.faults.fail_next(LedgerCallKind::AppendBatch, u32::MAX);
    let answer = tokio::time::timeout(Duration::from_secs(600), caller).await;
    expect_disk_failure(&answer.expect("an answer").unwrap().unwrap_err());
    // A caller of a team or of a cognitive agent learns within 30 seconds that a step cannot be recorded
    assert!(tree.elapsed_seconds() < 40, "{}", tree.elapsed_seconds());
    tree.faults.clear_faults();
    let (run, _) = tree.submit_with_message_id("thinker", "message", "go").await.unwrap();
    assert_eq!(tree.wait_for_end(run).await, "completed");
    tree.end().await;
}

/// A step that is recorded late makes no caller fail, however long the work takes afterwards.
#[tokio::test(start_paused = true)]
async fn the_caller_of_a_run_survives_a_late_record_of_a_step() {
    for call in [
        LedgerCallKind::Settle,
        LedgerCallKind::AppendBatch,
        LedgerCallKind::Accept,
        LedgerCallKind::Read,
    ] {
        for second in [1, 5] {
            let tree = TestTree::with_agents([
                agent_spec("one"),
                agent_spec("two"),
                team_spec("inner", &["one", "two"]),
                team_spec("outer", &["inner"]),
            ])
            .await;
            tree.script("a", [ScriptedAttempt::ok(10).with_answer("ab")]);
            tree.script("ab", [ScriptedAttempt::ok(60).with_answer("abc")]);
            let caller = tokio::spawn(tree.submit_and_wait_once("outer", "message", "a"));
            tree.advance_to(second).await;
            tree.faults.fail_next(call, 7);
            let answer = caller.await.unwrap();
            assert!(answer.is_ok(), "{call:?} at {second}: {answer:?}");
            assert!(tree.elapsed_seconds() >= 70, "{call:?}: {}", tree.elapsed_seconds());
            tree.end().await;
        }
    }
}

/// The teams have lost the progress of their members by a restart, and the ledger recovers after a long time.
#[tokio::test(start_paused = true)]
async fn callers_wait_again_once_the_ledger_has_recovered() {
    let mut tree = tree_with_nested_teams().await;
    tree.script("ab", [ScriptedAttempt::ok(200).with_answer("abc")]);
    let (run, _) = tree.submit_with_message_id("outer", "message", "a").await.unwrap();
    tree.advance_to(3).await;
    for inner_run in hops(&tree, run).await {
        preserve_hops(&tree, inner_run.id).await;
    }
    tree.restart().await;
    tree.faults.fail_next(LedgerCallKind::Settle, u32::MAX);
    let (failed_answer, elapsed) = measure_wait_for_end(&tree, run).await;
    expect_disk_failure(&failed_answer.unwrap_err());
    assert!(elapsed < Duration::from_secs(10) + MAX_ANSWER_DELAY, "{elapsed:?}");
    tree.faults.clear_faults();
    tree.advance_to(tree.elapsed_seconds() + 5).await;
    let record = tree.record(run).await.unwrap();
    let waiting = tree.api().requests.wait_for_end_or_question(&record.agent, run, None);
    assert!(tokio::time::timeout(Duration::from_secs(3600), waiting).await.unwrap().is_ok());
    assert_eq!(tree.describe_end(run).await, "completed");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_follower_of_a_team_learns_of_an_unrecorded_step() {
    let tree = tree_with_nested_teams().await;
    let run = tree.submit_to("inner", "a").await.unwrap();
    tree.advance_to(5).await;
    tree.faults.fail_next(LedgerCallKind::AppendBatch, u32::MAX);
    let record = tree.record(run).await.unwrap();
    let mut subscription = Subscription::new(tree.api().reader.clone(), record, 0, None);
    let failure = loop {
        match subscription.next().await {
            Ok(Some(_)) => {}
            Ok(None) => panic!("the stream ended"),
            Err(failure) => break failure,
        }
    };
    expect_disk_failure(&failure);
    assert!(tree.elapsed_seconds() < 40, "{}", tree.elapsed_seconds());
    tree.faults.clear_faults();
    assert_eq!(tree.wait_for_end(run).await, "completed");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_follower_learns_of_an_unrecorded_end() {
    let tree = TestTree::new().await;
    tree.faults.fail_next(LedgerCallKind::Settle, u32::MAX);
    let id = tree.submit("a").await.unwrap();
    let record = tree.record(id).await.unwrap();
    let (started_at, mut subscription) =
        (Instant::now(), Subscription::new(tree.api().reader.clone(), record, 0, None));
    let failure = loop {
        match subscription.next().await {
            Ok(Some(SubscriptionItem::EndOrQuestion(_)) | None) => {
                panic!("an end was told that is not recorded")
            }
            Ok(Some(_)) => {}
            Err(failure) => break failure,
        }
    };
    // A caller who waits for a question, and a follower, learn within 30 seconds that the
    // disk cannot be written
    expect_disk_failure(&failure);
    assert!(started_at.elapsed() < MAX_ANSWER_DELAY, "{:?}", started_at.elapsed());
    assert!(matches!(subscription.next().await, Ok(None)), "the stream ends with the error");
    tree.faults.clear_faults();
    assert_eq!(tree.wait_for_end(id).await, "completed");
    tree.end().await;
}

/// The same message sent again returns the execution, which does not run twice.
#[tokio::test(start_paused = true)]
async fn a_request_recorded_too_late_is_refused_and_found_later() {
    let tree = TestTree::new().await;
    tree.faults.delay_next(LedgerCallKind::Accept, [15]);
    let late = tree.submit_with_message_id(DEFAULT_AGENT, "message", "a").await;
    // A request that is not recorded within ten seconds is refused as late, and the same
    // message finds it later
    assert_eq!((late, tree.elapsed_seconds()), (Err(Code::AcceptTimeout), 10));
    tree.advance_to(20).await;
    let (id, is_duplicate) =
        tree.submit_with_message_id(DEFAULT_AGENT, "message", "a").await.unwrap();
    assert_eq!((is_duplicate, tree.wait_for_end(id).await.as_str()), (true, "completed"));
    assert_eq!(tree.driver.recorded_work().starts, ["a#1@15"]);
    tree.end().await;
}

/// The service decided this end, and its processes may still live.
#[tokio::test(start_paused = true)]
async fn the_clean_up_of_a_cancelled_attempt_starts_at_once() {
    let tree = TestTree::new().await;
    tree.script("a", [ScriptedAttempt::ok(100)]);
    let id = tree.submit("a").await.unwrap();
    tree.advance_to(1).await;
    tree.faults.fail_next(LedgerCallKind::Settle, u32::MAX);
    tree.cancel(id).await.unwrap();
    tree.advance_to(2).await;
    assert_eq!(work_and_lease_counts(&tree), (0, 0));
    tree.faults.clear_faults();
    assert_eq!(tree.wait_for_end(id).await, "cancelled: execution-cancelled");
    tree.end().await;
}
