//! Stops of the service during runs of cognitive agents.

use algonius_actors::testing::LedgerCallKind;
use algonius_actors::testing::cognition::reply_with_calls;

use super::{THINKER, final_answer_reply, step_lines, tool_call_reply, tree_with_thinker};

#[tokio::test(start_paused = true)]
async fn a_stop_waits_for_no_reply_and_no_repeatable_call() {
    for (second, step_count) in [(5, 0), (15, 1)] {
        let mut tree = tree_with_thinker().await;
        tree.driver
            .cognition
            .script_replies("go", [tool_call_reply("look"), final_answer_reply("done")]);
        let run = tree.submit_to(THINKER, "go").await.unwrap();
        tree.advance_to(second).await;
        tree.stop(60).await;
        assert_eq!(
            (tree.elapsed_seconds(), step_lines(&tree, run).await.len()),
            (second, step_count)
        );
        tree.start().await;
        assert_eq!(tree.wait_for_end(run).await, "completed");
        assert_eq!(step_lines(&tree, run).await.len(), 4);
        assert_eq!(tree.driver.cognition.unfinished_call_count(), 0, "a call is left");
        tree.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_stop_between_steps_suspends_the_run() {
    let mut tree = tree_with_thinker().await;
    tree.driver
        .cognition
        .script_replies("go", [tool_call_reply("push"), final_answer_reply("done")]);
    let run = tree.submit_to(THINKER, "go").await.unwrap();
    tree.advance_to(15).await;
    // The call that runs ends within the time of the stop.
    tree.stop(60).await;
    assert_eq!(step_lines(&tree, run).await.len(), 2);
    tree.start().await;
    assert_eq!(tree.wait_for_end(run).await, "completed");
    assert_eq!(tree.driver.cognition.started_calls(), ["push {}"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_between_two_calls_leaves_no_unknown_outcome() {
    let mut tree = tree_with_thinker().await;
    let two_calls_reply = reply_with_calls(&[("push", r#"{"at":"a"}"#), ("push", r#"{"at":"b"}"#)]);
    tree.driver.cognition.script_replies("go", [two_calls_reply, final_answer_reply("done")]);
    let run = tree.submit_to(THINKER, "go").await.unwrap();
    tree.advance_to(15).await;
    tree.stop(60).await;
    tree.start().await;
    assert_eq!(tree.wait_for_end(run).await, "completed");
    assert_eq!(tree.driver.cognition.started_calls(), [r#"push {"at":"a"}"#, r#"push {"at":"b"}"#]);
    let steps = step_lines(&tree, run).await;
    assert!(!steps.iter().any(|step| step.contains("unknown")), "{steps:?}");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_without_time_for_a_call_cancels_the_run() {
    let mut tree = tree_with_thinker().await;
    tree.driver
        .cognition
        .script_replies("go", [tool_call_reply("push"), final_answer_reply("done")]);
    let run = tree.submit_to(THINKER, "go").await.unwrap();
    tree.advance_to(12).await;
    tree.stop(2).await;
    assert_eq!(tree.describe_end(run).await, "cancelled: execution-cancelled");
    tree.start().await;
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_stop_while_the_ledger_fails_loses_no_step() {
    let mut tree = tree_with_thinker().await;
    tree.driver
        .cognition
        .script_replies("go", [tool_call_reply("push"), final_answer_reply("done")]);
    let run = tree.submit_to(THINKER, "go").await.unwrap();
    tree.advance_to(5).await;
    tree.faults.fail_next(LedgerCallKind::AppendBatch, 20);
    tree.advance_to(15).await;
    tree.stop(60).await;
    tree.start().await;
    assert_eq!(tree.wait_for_end(run).await, "completed");
    assert_eq!(tree.driver.cognition.started_calls(), ["push {}"]);
    let steps = step_lines(&tree, run).await;
    assert!(!steps.iter().any(|step| step.contains("unknown")), "{steps:?}");
    let usage = tree.record(run).await.unwrap().spent;
    assert_eq!((usage.turns, usage.input_tokens), (2, 200), "each reply is charged once");
    tree.end().await;
}
