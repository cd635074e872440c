//! Admission in virtual time: executions start, wait or are refused.

use std::num::NonZeroU32;
use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::testing::{DEFAULT_AGENT, LedgerCallKind, ScriptedAttempt, TestTree};
use join_futures::join_all;

/// Futures polled together, in order, on the test's own task.
mod join_futures {
    use std::pin::Pin;
    use std::task::Poll;

    pub(crate) async fn join_all<T>(futures: Vec<impl Future<Output = T>>) -> Vec<T> {
        let mut futures: Vec<Pin<Box<_>>> = futures.into_iter().map(Box::pin).collect();
        let mut outputs: Vec<Option<T>> = futures.iter().map(|_| None).collect();
        std::future::poll_fn(move |context| {
            for (future, output) in futures.iter_mut().zip(&mut outputs) {
                if output.is_none()
                    && let Poll::Ready(value) = future.as_mut().poll(context)
                {
                    *output = Some(value);
                }
            }
            if outputs.iter().all(Option::is_some) {
                Poll::Ready(outputs.iter_mut().filter_map(Option::take).collect())
            } else {
                Poll::Pending
            }
        })
        .await
    }
}

async fn submit_ten_second_work(tree: &TestTree, texts: &[&str]) -> Vec<Result<(), Code>> {
    for text in texts {
        tree.script(text, [ScriptedAttempt::ok(10)]);
    }
    let submissions = texts.iter().map(|text| tree.submit(text)).collect();
    join_all(submissions).await.into_iter().map(|answer| answer.map(drop)).collect()
}

#[tokio::test(start_paused = true)]
async fn executions_begin_in_the_order_of_their_arrival() {
    let tree = TestTree::new().await;
    submit_ten_second_work(&tree, &["a", "b", "c", "d"]).await;
    tree.advance_to(100).await;
    assert_eq!(tree.driver.recorded_work().starts, ["a#1@0", "b#1@10", "c#1@20", "d#1@30"]);
    assert_eq!(tree.driver.recorded_work().max_alive_count, 1);
    tree.end().await;
}

/// What is written last, that nothing is left, holds up nobody; what is left does.
#[tokio::test(start_paused = true)]
async fn the_next_execution_begins_after_the_cleanup() {
    let tree = TestTree::new().await;
    submit_ten_second_work(&tree, &["a", "b", "c"]).await;
    tree.advance_to(5).await;
    tree.faults.delay_next(LedgerCallKind::AppendBatch, [7]);
    tree.advance_to(15).await;
    tree.faults.delay_next(LedgerCallKind::Settle, [4]);
    tree.advance_to(100).await;
    assert_eq!(tree.driver.recorded_work().starts, ["a#1@0", "b#1@10", "c#1@24"]);
    assert_eq!(tree.driver.recorded_work().max_alive_count, 1);
    tree.end().await;
}

/// A caller may send its next message as soon as it has the answer.
#[tokio::test(start_paused = true)]
async fn a_request_after_an_answer_waits_for_the_clean_up() {
    let tree = TestTree::with_tuned_agent(|spec| spec.limits.capacity.max_waiting = 0).await;
    tree.script("a", [ScriptedAttempt::ok(5).with_cleanup_time(5)]);
    let first = tree.submit("a").await.unwrap();
    assert_eq!(tree.submit("early").await, Err(Code::QueueFull));
    assert_eq!(tree.wait_for_end(first).await, "completed");
    let second = tree.submit("b").await.unwrap();
    assert_eq!(tree.submit("late").await, Err(Code::QueueFull));
    assert_eq!(tree.wait_for_end(second).await, "completed");
    assert_eq!(tree.driver.recorded_work().starts, ["a#1@0", "b#1@10"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn executions_begin_in_order_though_records_are_slow() {
    let tree = TestTree::new().await;
    tree.faults.delay_next(LedgerCallKind::Accept, [9, 1, 5, 2]);
    submit_ten_second_work(&tree, &["a", "b", "c", "d"]).await;
    tree.advance_to(100).await;
    assert_eq!(tree.driver.recorded_work().starts, ["a#1@9", "b#1@19", "c#1@29", "d#1@39"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn executions_run_in_parallel_up_to_the_limit() {
    let tree =
        TestTree::with_tuned_agent(|spec| spec.limits.capacity.max_running = NonZeroU32::new(10))
            .await;
    let texts: Vec<_> = (0..20).map(|number| format!("text {number}")).collect();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    submit_ten_second_work(&tree, &texts).await;
    tree.advance_to(9).await;
    let first = tree.driver.recorded_work();
    tree.advance_to(19).await;
    let second = tree.driver.recorded_work();
    assert_eq!(
        [first.alive_count, first.max_alive_count, second.alive_count, second.max_alive_count],
        [10; 4]
    );
    assert_eq!(second.starts.len(), 20);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn all_executions_run_if_there_is_no_limit() {
    let tree = TestTree::with_tuned_agent(|spec| spec.limits.capacity.max_running = None).await;
    let texts: Vec<_> = (0..50).map(|number| format!("text {number}")).collect();
    let texts: Vec<_> = texts.iter().map(String::as_str).collect();
    submit_ten_second_work(&tree, &texts).await;
    tree.advance_to(5).await;
    assert_eq!(tree.driver.recorded_work().alive_count, 50);
    tree.end().await;
}

/// One runs and ten wait; the slots are counted before any record is committed.
#[tokio::test(start_paused = true)]
async fn the_twelfth_request_is_refused() {
    for seconds in [0, 3] {
        let tree = TestTree::new().await;
        tree.faults.delay_all(LedgerCallKind::Accept, seconds);
        let texts = ["a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l", "m"];
        let answers = submit_ten_second_work(&tree, &texts).await;
        let full = Err(Code::QueueFull);
        assert_eq!((&answers[..11], &answers[11..]), (&[Ok(()); 11][..], &[full, full][..]));
        tree.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn a_freed_queue_place_can_be_used() {
    let tree = TestTree::with_tuned_agent(|spec| spec.limits.capacity.max_waiting = 1).await;
    tree.script("a", [ScriptedAttempt::ok(10)]);
    tree.submit("a").await.unwrap();
    let waiting = tree.submit("b").await.unwrap();
    let refused = tree.submit("c").await;
    tree.cancel(waiting).await.unwrap();
    let accepted = tree.submit("d").await.map(drop);
    assert_eq!((refused, accepted), (Err(Code::QueueFull), Ok(())));
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_without_a_queue_accepts_work_for_free_slots_only() {
    let tree = TestTree::with_tuned_agent(|spec| spec.limits.capacity.max_waiting = 0).await;
    tree.script("a", [ScriptedAttempt::ok(10)]);
    tree.submit("a").await.unwrap();
    tree.advance_to(5).await;
    let refused = tree.submit("b").await;
    tree.advance_to(15).await;
    let accepted = tree.submit("b").await.map(drop);
    assert_eq!((refused, accepted), (Err(Code::QueueFull), Ok(())));
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_queue_timeout_fails_the_request_and_frees_its_place() {
    let tree = TestTree::with_tuned_agent(|spec| {
        spec.limits.capacity.queue_timeout = Duration::from_secs(60);
    })
    .await;
    tree.script("a", [ScriptedAttempt::ok(100)]);
    let mut ids = Vec::new();
    for (second, text) in [(0, "a"), (10, "b"), (20, "c"), (50, "d")] {
        tree.advance_to(second).await;
        ids.push(tree.submit(text).await.unwrap());
    }
    let mut ends = Vec::new();
    for id in ids {
        ends.push(format!("{} at {}", tree.wait_for_end(id).await, tree.elapsed_seconds()));
    }
    // Those who wait are told while `a` still runs: their ends are older than its end.
    assert_eq!(ends[0], "completed at 100");
    assert_eq!(ends[1..3], ["failed: queue-timeout at 100", "failed: queue-timeout at 100"]);
    assert_eq!(ends[3], "completed at 100");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn each_queued_request_times_out_to_the_second() {
    let tree = TestTree::with_tuned_agent(|spec| {
        spec.limits.capacity.queue_timeout = Duration::from_secs(60);
    })
    .await;
    tree.script("a", [ScriptedAttempt::ok(290)]);
    tree.submit("a").await.unwrap();
    tree.advance_to(10).await;
    let first = tree.submit("b").await.unwrap();
    tree.advance_to(30).await;
    let second = tree.submit("c").await.unwrap();
    let first = format!("{} at {}", tree.wait_for_end(first).await, tree.elapsed_seconds());
    let second = format!("{} at {}", tree.wait_for_end(second).await, tree.elapsed_seconds());
    assert_eq!([first, second], ["failed: queue-timeout at 70", "failed: queue-timeout at 90"]);
    tree.end().await;
}

/// The first record takes longer than anybody may wait: it is not given up behind its caller's
/// back, and whoever came after it loses patience in time.
#[tokio::test(start_paused = true)]
async fn the_queue_timeout_applies_to_recorded_requests_only() {
    let tree = TestTree::with_tuned_agent(|spec| {
        spec.limits.capacity.queue_timeout = Duration::from_secs(5);
    })
    .await;
    tree.faults.delay_next(LedgerCallKind::Accept, [9, 0]);
    let slow = async { tree.submit_and_describe_end("slow").await };
    let quick = async { tree.submit_and_describe_end("quick").await };
    let (slow, quick) = tokio::join!(slow, quick);
    assert_eq!([slow, quick], ["completed at 9", "failed: queue-timeout at 5"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_same_message_is_the_same_execution() {
    let tree = TestTree::new().await;
    tree.script("text", [ScriptedAttempt::ok(10)]);
    let (id, is_first_duplicate) =
        tree.submit_with_message_id(DEFAULT_AGENT, "message", "text").await.unwrap();
    let result_in_flight = tree.submit_with_message_id(DEFAULT_AGENT, "message", "text").await;
    let end = tree.wait_for_end(id).await;
    let result_after_end = tree.submit_with_message_id(DEFAULT_AGENT, "message", "text").await;
    assert_eq!(
        (is_first_duplicate, result_in_flight, result_after_end),
        (false, Ok((id, true)), Ok((id, true)))
    );
    assert_eq!(
        (end.as_str(), tree.driver.recorded_work().starts),
        ("completed", vec!["text#1@0".into()])
    );
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_duplicate_takes_no_queue_place_and_gets_the_answer() {
    let tree = TestTree::with_tuned_agent(|spec| spec.limits.capacity.max_waiting = 2).await;
    tree.script("a", [ScriptedAttempt::ok(10)]);
    tree.submit("a").await.unwrap();
    let (id, _) = tree.submit_with_message_id(DEFAULT_AGENT, "message", "b").await.unwrap();
    let duplicate = tree.submit_with_message_id(DEFAULT_AGENT, "message", "b").await;
    let next = tree.submit("c").await.map(drop);
    assert_eq!((duplicate, next), (Ok((id, true)), Ok(())));
    assert_eq!((tree.wait_for_end(id).await.as_str(), tree.elapsed_seconds()), ("completed", 10));
    tree.end().await;
}

/// Until its end the agent knows the request itself; later the ledger does.
#[tokio::test(start_paused = true)]
async fn a_duplicate_of_an_unfinished_execution_needs_no_write() {
    let tree = TestTree::new().await;
    tree.script("a", [ScriptedAttempt::ok(10)]);
    let (running, _) = tree.submit_with_message_id(DEFAULT_AGENT, "first", "a").await.unwrap();
    let (queued, _) = tree.submit_with_message_id(DEFAULT_AGENT, "second", "b").await.unwrap();
    assert_eq!(tree.faults.call_count(LedgerCallKind::Accept), 2);
    let duplicates = [
        tree.submit_with_message_id(DEFAULT_AGENT, "first", "a").await,
        tree.submit_with_message_id(DEFAULT_AGENT, "second", "b").await,
        tree.submit_with_message_id(DEFAULT_AGENT, "second", "c").await,
    ];
    let expected = [Ok((running, true)), Ok((queued, true)), Err(Code::MessageReused)];
    assert_eq!((duplicates, tree.faults.call_count(LedgerCallKind::Accept)), (expected, 2));
    tree.wait_for_end(running).await;
    let result_after_end = tree.submit_with_message_id(DEFAULT_AGENT, "first", "a").await;
    assert_eq!(result_after_end, Ok((running, true)));
    assert_eq!(tree.faults.call_count(LedgerCallKind::Accept), 3);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn simultaneous_duplicates_are_one_execution() {
    let tree = TestTree::new().await;
    tree.faults.delay_next(LedgerCallKind::Accept, [2, 1]);
    let duplicates =
        (0..2).map(|_| tree.submit_with_message_id(DEFAULT_AGENT, "message", "text")).collect();
    let answers = join_all(duplicates).await;
    let id = answers[1].unwrap().0;
    assert_eq!(answers, [Ok((id, true)), Ok((id, false))]);
    assert_eq!(tree.wait_for_end(id).await, "completed");
    assert_eq!(tree.driver.recorded_work().starts, ["text#1@2"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_same_message_with_another_body_is_refused() {
    let tree = TestTree::new().await;
    tree.script("a", [ScriptedAttempt::ok(10)]);
    tree.submit_with_message_id(DEFAULT_AGENT, "message", "a").await.unwrap();
    let conflict = tree.submit_with_message_id(DEFAULT_AGENT, "message", "b").await;
    let next = tree.submit("c").await.unwrap();
    assert_eq!(
        (conflict, tree.wait_for_end(next).await.as_str()),
        (Err(Code::MessageReused), "completed")
    );
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_request_that_cannot_be_recorded_frees_its_place() {
    let tree = TestTree::with_tuned_agent(|spec| spec.limits.capacity.max_waiting = 0).await;
    tree.faults.fail_next(LedgerCallKind::Accept, 1);
    let refused = tree.submit_and_describe_end("a").await;
    let next = tree.submit_and_describe_end("b").await;
    assert_eq!([refused, next], ["refused: ledger-unavailable at 0", "completed at 0"]);
    assert_eq!(tree.driver.recorded_work().starts, ["b#1@0"]);
    tree.end().await;
}

/// The first in line holds everybody up until it is known that it could not be recorded.
#[tokio::test(start_paused = true)]
async fn a_failed_record_unblocks_the_next_request() {
    let tree = TestTree::new().await;
    tree.faults.delay_next(LedgerCallKind::Accept, [5, 0]);
    tree.faults.fail_next(LedgerCallKind::Accept, 1);
    let (refused, next) =
        tokio::join!(tree.submit_and_describe_end("a"), tree.submit_and_describe_end("b"));
    assert_eq!([refused, next], ["refused: ledger-unavailable at 5", "completed at 5"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_disabled_agent_refuses_requests() {
    let tree = TestTree::with_tuned_agent(|spec| spec.enabled = false).await;
    assert_eq!(tree.submit_and_describe_end("a").await, "refused: agent-disabled at 0");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn input_is_accepted_up_to_its_limit() {
    let tree = TestTree::with_tuned_agent(|spec| spec.limits.sizes.max_input_bytes = 5).await;
    let results =
        [tree.submit_and_describe_end("12345").await, tree.submit_and_describe_end("123456").await];
    assert_eq!(results, ["completed at 0", "refused: input-too-large at 0"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_unknown_agent_refuses_requests() {
    let tree = TestTree::new().await;
    assert_eq!(tree.submit_to("stranger", "a").await, Err(Code::AgentUnknown));
    tree.end().await;
}

/// The same message may be sent to two agents: it is one execution of each.
#[tokio::test(start_paused = true)]
async fn each_agent_has_a_queue_of_its_own() {
    let tree =
        TestTree::with_agents(["one", "two"].map(algonius_actors::testing::agent_spec)).await;
    tree.script("text", [ScriptedAttempt::ok(10)]);
    let (one, _) = tree.submit_with_message_id("one", "message", "text").await.unwrap();
    let (two, _) = tree.submit_with_message_id("two", "message", "text").await.unwrap();
    assert_eq!(
        (tree.wait_for_end(one).await, tree.wait_for_end(two).await),
        ("completed".into(), "completed".into())
    );
    assert_eq!((tree.elapsed_seconds(), one == two), (10, false));
    tree.end().await;
}
