//! Agents are added, changed and removed while the service runs, and no work is lost.

use std::num::NonZeroU32;
use std::time::Duration;

use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::code::Code;
use algonius_actors::model::observation::status::Health;
use algonius_actors::testing::{DEFAULT_AGENT, ScriptedAttempt, TestTree, agent_spec};

/// The worker with another deadline.
fn worker_with_deadline(seconds: u64) -> AgentSpec {
    let mut worker = agent_spec(DEFAULT_AGENT);
    worker.limits.timeouts.run = Duration::from_secs(seconds);
    worker
}

/// The worker with room for so many at once.
fn worker_with_slots(running: u32) -> AgentSpec {
    let mut worker = agent_spec(DEFAULT_AGENT);
    worker.limits.capacity.max_running = NonZeroU32::new(running);
    worker
}

#[tokio::test(start_paused = true)]
async fn a_new_definition_applies_to_queued_work_only() {
    let tree = TestTree::with_agents([worker_with_deadline(300)]).await;
    for text in ["a", "b"] {
        tree.script(text, [ScriptedAttempt::ok(200)]);
    }
    let (a, b) = (tree.submit("a").await.unwrap(), tree.submit("b").await.unwrap());
    tree.advance_to(5).await;
    tree.register(worker_with_deadline(100)).await;
    let ends = [tree.wait_for_end(a).await, tree.wait_for_end(b).await];
    assert_eq!(ends, ["completed", "timeout: execution-timeout"]);
    assert_eq!(tree.driver.recorded_work().starts, ["a#1@0", "b#1@200"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_crashed_execution_resumes_with_its_old_definition() {
    let tree = TestTree::with_agents([worker_with_deadline(300)]).await;
    tree.script("a", [ScriptedAttempt::ok(50)]);
    let id = tree.submit("a").await.unwrap();
    tree.advance_to(5).await;
    tree.register(worker_with_deadline(10)).await;
    tree.driver.preserve_over_restart(id);
    tree.clock.panic_at_reading(1); // The next look at the clock panics: that of the execution, which ends.
    assert_eq!(tree.wait_for_end(id).await, "completed");
    assert_eq!(tree.driver.recorded_work().starts, ["a#1@0", "again a#1@50"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_new_limit_applies_at_once_and_ends_no_run() {
    let tree = TestTree::new().await;
    let mut ids = Vec::new();
    for text in ["a", "b", "c", "d", "e"] {
        tree.script(text, [ScriptedAttempt::ok(10)]);
        ids.push(tree.submit(text).await.unwrap());
    }
    tree.advance_to(5).await;
    tree.register(worker_with_slots(3)).await;
    tree.advance_to(6).await;
    tree.register(worker_with_slots(1)).await;
    for id in ids {
        assert_eq!(tree.wait_for_end(id).await, "completed");
    }
    // A higher limit applies at once, and a lower limit ends no run
    assert_eq!(tree.driver.recorded_work().starts, ["a#1@0", "b#1@5", "c#1@5", "d#1@15", "e#1@25"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn queued_requests_use_the_new_queue_timeout() {
    let tree = TestTree::new().await;
    tree.script("a", [ScriptedAttempt::ok(250)]);
    tree.submit("a").await.unwrap();
    tree.advance_to(5).await;
    let b = tree.submit("b").await.unwrap();
    let mut worker_with_short_timeout = agent_spec(DEFAULT_AGENT);
    worker_with_short_timeout.limits.capacity.queue_timeout = Duration::from_secs(60);
    tree.advance_to(10).await;
    tree.register(worker_with_short_timeout).await;
    let end = format!("{} at {}", tree.wait_for_end(b).await, tree.elapsed_seconds());
    assert_eq!(end, "failed: queue-timeout at 65");
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_agent_finishes_its_work_and_is_gone() {
    let tree = TestTree::with_agents(["one", "two"].map(agent_spec)).await;
    let mut ids = Vec::new();
    for text in ["a", "b"] {
        tree.script(text, [ScriptedAttempt::ok(10)]);
        ids.push(tree.submit_to("one", text).await.unwrap());
    }
    let removal = tree.unregister("one");
    tree.status().await; // The root answers after it has handled the removal.
    let refused = tree.submit_to("one", "c").await;
    assert_eq!(
        (refused, tree.agent_status("one").await.health),
        (Err(Code::AgentRemoved), Health::Draining)
    );
    assert!(removal.await);
    assert_eq!(tree.elapsed_seconds(), 20);
    for id in ids {
        assert_eq!(tree.describe_end(id).await, "completed");
    }
    assert_eq!(tree.submit_to("one", "d").await, Err(Code::AgentUnknown));
    let remaining: Vec<_> =
        tree.status().await.agents.into_iter().map(|it| it.id.to_string()).collect();
    assert_eq!(remaining, ["two"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_agent_finishes_though_its_actor_fails() {
    let tree = TestTree::with_agents(["one", "two"].map(agent_spec)).await;
    tree.script("first", [ScriptedAttempt::ok(5)]);
    tree.script("bomb", [ScriptedAttempt::panicking()]);
    tree.script("last", [ScriptedAttempt::ok(10)]);
    for text in ["first", "bomb", "bomb", "bomb", "bomb"] {
        tree.submit_to("one", text).await.unwrap();
    }
    let last = tree.submit_to("one", "last").await.unwrap();
    let removal = tree.unregister("one");
    tree.advance_to(6).await;
    assert_eq!(tree.agent_status("one").await.actor_starts.restarts, 1);
    assert!(removal.await);
    // A removed agent finishes its work even if its actor fails meanwhile, and an agent that
    // is added again before that keeps its queue
    assert_eq!((tree.describe_end(last).await.as_str(), tree.elapsed_seconds()), ("completed", 15));
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_added_again_before_its_removal_keeps_its_queue() {
    let tree = TestTree::new().await;
    let since = tree.agent_status(DEFAULT_AGENT).await.actor_starts.since;
    let mut ids = Vec::new();
    for text in ["a", "b"] {
        tree.script(text, [ScriptedAttempt::ok(10)]);
        ids.push(tree.submit(text).await.unwrap());
    }
    tree.advance_to(5).await;
    let removal = tree.unregister(DEFAULT_AGENT);
    tree.register(worker_with_deadline(50)).await;
    assert!(!removal.await);
    tree.script("c", [ScriptedAttempt::ok(10)]);
    ids.push(tree.submit("c").await.unwrap());
    for id in ids {
        // A removed agent finishes its work even if its actor fails meanwhile, and an agent
        // that is added again before that keeps its queue
        assert_eq!(tree.wait_for_end(id).await, "completed");
    }
    let worker = tree.agent_status(DEFAULT_AGENT).await;
    assert_eq!(
        (worker.health, worker.actor_starts.since, tree.elapsed_seconds()),
        (Health::Alive, since, 30)
    );
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_new_definition_lifts_the_quarantine() {
    let tree = TestTree::new().await;
    for _ in 0..4 {
        tree.crash_agent(DEFAULT_AGENT).await;
    }
    assert_eq!(tree.submit("a").await, Err(Code::AgentQuarantined));
    tree.register(worker_with_deadline(50)).await;
    assert_eq!(tree.submit_and_describe_end("a").await, "completed at 0");
    for _ in 0..4 {
        tree.crash_agent(DEFAULT_AGENT).await;
    }
    assert!(tree.unregister(DEFAULT_AGENT).await);
    assert_eq!(tree.submit("b").await, Err(Code::AgentUnknown));
    tree.end().await;
}

/// Whoever comes while agents come and go has one end, or a refusal that is true.
#[tokio::test(start_paused = true)]
async fn requests_during_reconfiguration_end_once_or_are_refused() {
    let tree = TestTree::with_agents([worker_with_slots(4), agent_spec("guest")]).await;
    let (mut accepted_ids, mut refusal_codes) = (Vec::new(), Vec::new());
    for round in 0..50_u64 {
        let text = format!("text {round}");
        tree.script(&text, [ScriptedAttempt::ok(round % 3)]);
        let agent = if round % 2 == 0 { DEFAULT_AGENT } else { "guest" };
        let submission = tree.submit_to(agent, &text);
        let reconfiguration = async {
            match round % 4 {
                0 => tree.register(worker_with_slots(1 + u32::try_from(round).unwrap() % 5)).await,
                1 => drop(tree.unregister("guest")),
                _ => tree.register(agent_spec("guest")).await,
            }
        };
        match tokio::join!(submission, reconfiguration).0 {
            Ok(id) => accepted_ids.push(id),
            Err(code) => refusal_codes.push(code),
        }
    }
    for id in accepted_ids {
        assert_eq!(tree.wait_for_end(id).await, "completed");
    }
    let is_justified =
        |code: &Code| matches!(code, Code::AgentRemoved | Code::AgentUnknown | Code::QueueFull);
    assert!(refusal_codes.iter().all(is_justified), "{refusal_codes:?}");
    tree.end().await;
}
