//! Executions whose account has reached its quota: deferred, resumed, cancelled, in virtual time.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use algonius_actors::model::agent::queue::QueueReason;
use algonius_actors::model::agent::quota::QuotaCredential;
use algonius_actors::model::agent::{Access, AgentSpec};
use algonius_actors::model::code::Code;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::testing::{DEFAULT_AGENT, ScriptedAttempt, TestTree, agent_spec};
use tokio::sync::oneshot;

/// An hour without quota.
fn quota_failure() -> ScriptedAttempt {
    ScriptedAttempt::fail(1, Code::QuotaExceeded).with_retry_after(3600)
}

/// What waits at the worker: the reason, and the virtual second until which.
async fn queued_reasons(tree: &TestTree, agent: &str) -> Vec<(QueueReason, Option<i64>)> {
    let queued = tree.agent_status(agent).await.work.queued;
    let second = |time: chrono::DateTime<chrono::Utc>| time.timestamp() - 1_800_000_000;
    queued.into_iter().map(|one| (one.reason, one.until.map(second))).collect()
}

/// Seconds at which attempts of this text began.
fn start_seconds(tree: &TestTree, text: &str) -> Vec<u64> {
    let started = tree.driver.recorded_work().starts;
    let starts_of_text = started.iter().filter(|one| one.split('#').next() == Some(text));
    starts_of_text.map(|one| one.split('@').nth(1).unwrap().parse().unwrap()).collect()
}

async fn submit_until_deferred(
    tree: &TestTree,
    text: &str,
    next_attempt: ScriptedAttempt,
) -> ExecutionId {
    tree.script(text, [quota_failure(), next_attempt]);
    let id = tree.submit(text).await.unwrap();
    tree.advance_to(10).await;
    id
}

#[tokio::test(start_paused = true)]
async fn a_deferred_execution_holds_no_slot_and_resumes_on_time() {
    let tree = TestTree::new().await;
    let id = submit_until_deferred(&tree, "a", ScriptedAttempt::ok(5)).await;
    assert_eq!(
        queued_reasons(&tree, DEFAULT_AGENT).await,
        [(QueueReason::QuotaExhausted, Some(3601))]
    );
    let agent = tree.agent_status(DEFAULT_AGENT).await;
    assert_eq!((agent.work.running.len(), tree.driver.recorded_work().lifetimes.len()), (0, 1));
    assert_eq!(tree.record(id).await.unwrap().deferral().unwrap().times, 1);
    tree.advance_to(3600).await;
    assert_eq!(start_seconds(&tree, "a"), [0]);
    assert_eq!(tree.wait_for_end(id).await, "completed");
    let second_start = start_seconds(&tree, "a")[1];
    assert!((3601..=3632).contains(&second_start), "woke at {second_start}");
    assert_eq!(
        tree.states(id).await,
        "idle starting running failed starting running completed cleanup idle"
    );
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_deferral_survives_a_restart_with_its_time() {
    let mut tree = TestTree::new().await;
    let id = submit_until_deferred(&tree, "a", ScriptedAttempt::ok(5)).await;
    tree.kill().await;
    tree.advance_to(1000).await;
    tree.start().await;
    assert_eq!(
        queued_reasons(&tree, DEFAULT_AGENT).await,
        [(QueueReason::QuotaExhausted, Some(3601))]
    );
    // Who comes meanwhile waits for the account too: it is known again from the deferred executions.
    tree.script("b", [ScriptedAttempt::ok(1)]);
    let other = tree.submit("b").await.unwrap();
    tree.advance_to(3600).await;
    assert_eq!((start_seconds(&tree, "a"), start_seconds(&tree, "b")), (vec![0], vec![]));
    assert_eq!(
        (tree.wait_for_end(id).await, tree.wait_for_end(other).await),
        ("completed".into(), "completed".into())
    );
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_deferred_redacted_execution_fails_after_a_restart() {
    let mut tree = TestTree::new().await;
    let id = submit_until_deferred(&tree, "a", ScriptedAttempt::ok(5)).await;
    tree.ledger.lose_raw_input(id).await;
    tree.restart().await;
    assert_eq!(tree.wait_for_end(id).await, "failed: not-replayable");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_deferred_execution_is_cancelled_at_once() {
    let tree = TestTree::new().await;
    let id = submit_until_deferred(&tree, "a", ScriptedAttempt::ok(5)).await;
    tree.cancel(id).await.unwrap();
    assert_eq!(tree.wait_for_end(id).await, "cancelled: execution-cancelled");
    assert_eq!((tree.elapsed_seconds(), start_seconds(&tree, "a").len()), (10, 1));
    tree.advance_to(4000).await;
    assert_eq!(start_seconds(&tree, "a").len(), 1);
    tree.end().await;
}

/// The order to cancel meets the steps in which the actor of the execution hands it back.
#[tokio::test(start_paused = true)]
async fn an_execution_cancelled_while_deferring_does_not_resume() {
    for (yield_count, is_cancel_timer_set_first) in
        (0..10).flat_map(|steps| [(steps, true), (steps, false)])
    {
        let tree = Arc::new(TestTree::new().await);
        tree.script("a", [quota_failure(), ScriptedAttempt::ok(5)]);
        let (id_sender, id_receiver) = oneshot::channel();
        let early_id =
            if is_cancel_timer_set_first { None } else { Some(tree.submit("a").await.unwrap()) };
        // A task of the runtime takes its turns with the actors. Whose timer is set first has the first turn.
        let cancel_task = tokio::spawn({
            let tree = Arc::clone(&tree);
            async move {
                tree.advance_to(1).await; // When its attempt fails.
                let id = id_receiver.await.unwrap();
                yield_to_tasks(yield_count).await;
                tree.cancel(id).await.unwrap();
            }
        });
        tokio::task::yield_now().await;
        let id = match early_id {
            Some(id) => id,
            None => tree.submit("a").await.unwrap(),
        };
        id_sender.send(id).unwrap();
        cancel_task.await.unwrap();
        tree.advance_to(4000).await;
        assert_eq!(start_seconds(&tree, "a").len(), 1, "called off after {yield_count} steps");
        assert_eq!(tree.wait_for_end(id).await, "cancelled: execution-cancelled");
        Arc::into_inner(tree).unwrap().end().await;
    }
}

/// Lets each task that is ready have so many turns. `yield_now` would let them all run until they wait.
async fn yield_to_tasks(yield_count: u32) {
    let mut remaining = yield_count;
    std::future::poll_fn(|context| {
        if remaining == 0 {
            return Poll::Ready(());
        }
        remaining -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn clock_jumps_do_not_prolong_a_deferral() {
    for (jump, latest_second) in [(7200, 200), (-7200, 3700)] {
        let tree = TestTree::new().await;
        let id = submit_until_deferred(&tree, "a", ScriptedAttempt::ok(5)).await;
        tree.clock.shift_wall_clock(jump);
        tree.advance_to(latest_second).await;
        assert_eq!(tree.wait_for_end(id).await, "completed");
        assert!(
            tree.elapsed_seconds() <= latest_second + 5,
            "{jump}: at {}",
            tree.elapsed_seconds()
        );
        tree.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn deferrals_are_bounded_and_spend_no_retry() {
    let tree = TestTree::with_tuned_agent(|spec| {
        spec.quota.deferral_policy.max_deferrals = 2;
        spec.retry.max_retries = 0;
    })
    .await;
    tree.script("a", [quota_failure()]);
    let id = tree.submit("a").await.unwrap();
    tree.advance_to(20_000).await;
    assert_eq!(tree.wait_for_end(id).await, "failed: quota-exceeded");
    assert_eq!(start_seconds(&tree, "a").len(), 3);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn long_quotas_and_writing_agents_fail_at_once() {
    let make_read_write = |spec: &mut AgentSpec| spec.access = Access::ReadWrite;
    let shorten_deferral =
        |spec: &mut AgentSpec| spec.quota.deferral_policy.max_wait = Duration::from_secs(60);
    for tune in [make_read_write as fn(&mut AgentSpec), shorten_deferral] {
        let tree = TestTree::with_tuned_agent(tune).await;
        tree.driver.set_workspace(DEFAULT_AGENT, "/srv/x");
        tree.script("a", [quota_failure()]);
        let id = tree.submit("a").await.unwrap();
        assert_eq!(tree.wait_for_end(id).await, "failed: quota-exceeded");
        assert_eq!(tree.elapsed_seconds(), 1);
        tree.end().await;
    }
}

/// Two agents of one account, and one of another.
async fn tree_with_shared_account() -> TestTree {
    let agent_of_account = |id: &str, account: &str| {
        let mut spec = agent_spec(id);
        spec.limits.capacity.max_running = NonZeroU32::new(3);
        spec.quota.credential = QuotaCredential::Named(account.to_owned());
        spec
    };
    TestTree::with_agents([
        agent_of_account("one", "team"),
        agent_of_account("two", "team"),
        agent_of_account("other", "else"),
    ])
    .await
}

#[tokio::test(start_paused = true)]
async fn agents_of_one_account_wait_together() {
    let tree = tree_with_shared_account().await;
    tree.script("a", [quota_failure(), ScriptedAttempt::ok(1)]);
    let first = tree.submit_to("one", "a").await.unwrap();
    tree.advance_to(10).await;
    let second = tree.submit_to("two", "b").await.unwrap();
    let other = tree.submit_to("other", "c").await.unwrap();
    assert_eq!(tree.wait_for_end(other).await, "completed");
    assert_eq!(queued_reasons(&tree, "two").await, [(QueueReason::QuotaExhausted, Some(3601))]);
    let credentials = tree.status().await.credentials;
    assert_eq!((credentials[0].name.0.as_str(), credentials[0].state.as_str()), ("team", "open"));
    // Longer than its patience of half an hour: the time without quota is none of it.
    assert_eq!(
        (tree.wait_for_end(second).await, tree.wait_for_end(first).await),
        ("completed".into(), "completed".into())
    );
    assert_eq!(start_seconds(&tree, "b"), [3601]);
    assert_eq!(tree.status().await.credentials, []);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_successful_probe_resumes_all_waiting_executions() {
    let tree = tree_with_shared_account().await;
    tree.script("a", [quota_failure(), ScriptedAttempt::ok(1)]);
    tree.submit_to("one", "a").await.unwrap();
    tree.advance_to(10).await;
    for text in ["b", "c", "d"] {
        tree.script(text, [ScriptedAttempt::ok(100)]);
    }
    let mut ids = Vec::new();
    for (agent, text) in [("two", "b"), ("two", "c"), ("one", "d")] {
        ids.push(tree.submit_to(agent, text).await.unwrap());
    }
    tree.advance_to(3640).await;
    for id in ids {
        assert_eq!(tree.wait_for_end(id).await, "completed");
    }
    let mut starts: Vec<_> =
        ["b", "c", "d"].iter().flat_map(|text| start_seconds(&tree, text)).collect();
    starts.sort_unstable();
    assert_eq!(starts, [3601, 3701, 3701]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_first_reported_usage_of_a_probe_opens_the_account() {
    let tree = tree_with_shared_account().await;
    tree.script("a", [quota_failure()]);
    tree.submit_to("one", "a").await.unwrap();
    tree.advance_to(10).await;
    tree.script("b", [ScriptedAttempt::ok(200).with_usage([(5, 5, false)])]);
    tree.script("c", [ScriptedAttempt::ok(1)]);
    let long = tree.submit_to("two", "b").await.unwrap();
    let short = tree.submit_to("two", "c").await.unwrap();
    tree.advance_to(3610).await;
    assert_eq!(tree.wait_for_end(short).await, "completed");
    assert!(tree.elapsed_seconds() < 3700, "at {}", tree.elapsed_seconds());
    assert_eq!(tree.wait_for_end(long).await, "completed");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn failed_and_cancelled_probes_keep_the_account_closed() {
    let tree = tree_with_shared_account().await;
    tree.script("a", [quota_failure()]);
    let first = tree.submit_to("one", "a").await.unwrap();
    tree.advance_to(10).await;
    tree.cancel(first).await.unwrap(); // What it found out is known all the same.
    tree.script("b", [ScriptedAttempt::ok(1000)]);
    let probe = tree.submit_to("two", "b").await.unwrap();
    tree.script(
        "c",
        [
            ScriptedAttempt::fail(1, Code::QuotaExceeded).with_retry_after(600),
            ScriptedAttempt::ok(1),
        ],
    );
    let next = tree.submit_to("two", "c").await.unwrap();
    let last = tree.submit_to("two", "d").await.unwrap();
    tree.advance_to(3650).await;
    assert_eq!((start_seconds(&tree, "b"), start_seconds(&tree, "c")), (vec![3601], vec![]));
    tree.cancel(probe).await.unwrap();
    tree.advance_to(3700).await;
    // Another tries, and the account is blocked again for ten minutes.
    assert_eq!((start_seconds(&tree, "c"), start_seconds(&tree, "d")), (vec![3650], vec![]));
    tree.advance_to(4300).await;
    assert_eq!(tree.wait_for_end(last).await, "completed");
    assert!(start_seconds(&tree, "d")[0] >= 4251, "{:?}", start_seconds(&tree, "d"));
    assert_eq!(tree.wait_for_end(next).await, "completed");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn deferred_executions_resume_at_spread_times() {
    let tree = TestTree::with_tuned_agent(|spec| {
        spec.limits.capacity.max_running = None;
        spec.quota.has_breaker = false;
    })
    .await;
    tree.script("a", [quota_failure(), ScriptedAttempt::ok(1)]);
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(tree.submit("a").await.unwrap());
    }
    tree.advance_to(3640).await;
    for id in ids {
        assert_eq!(tree.wait_for_end(id).await, "completed");
    }
    let mut resume_seconds = start_seconds(&tree, "a").split_off(20);
    resume_seconds.sort_unstable();
    resume_seconds.dedup();
    assert!(resume_seconds.len() > 5, "all woke at {resume_seconds:?}");
    assert!(
        resume_seconds.iter().all(|second| (3601..=3632).contains(second)),
        "{resume_seconds:?}"
    );
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_crash_keeps_its_deferred_executions() {
    let tree = TestTree::new().await;
    let id = submit_until_deferred(&tree, "a", ScriptedAttempt::ok(5)).await;
    tree.crash_agent(DEFAULT_AGENT).await;
    tree.advance_to(100).await;
    assert_eq!(
        queued_reasons(&tree, DEFAULT_AGENT).await,
        [(QueueReason::QuotaExhausted, Some(3601))]
    );
    tree.advance_to(3640).await;
    assert_eq!(tree.describe_end(id).await, "completed");
    tree.end().await;
}
