//! Agents that write and share a folder, in virtual time.

use std::time::Duration;

use algonius_actors::model::agent::{Access, AgentSpec};
use algonius_actors::model::code::Code;
use algonius_actors::testing::{ScriptedAttempt, TestTree, agent_spec};

fn read_write_agent(id: &str) -> AgentSpec {
    AgentSpec { access: Access::ReadWrite, ..agent_spec(id) }
}

/// Agents that change things, each in its folder.
async fn tree_with_writers(agents: &[(&str, &str)]) -> TestTree {
    let tree = TestTree::with_agents(agents.iter().map(|(agent, _)| read_write_agent(agent))).await;
    for (agent, folder) in agents {
        tree.driver.set_workspace(agent, folder);
    }
    tree
}

#[tokio::test(start_paused = true)]
async fn agents_of_one_workspace_run_in_order_of_arrival() {
    let tree = tree_with_writers(&[
        ("a", "/srv/x"),
        ("b", "/srv/x/deep"),
        ("c", "/srv"),
        ("d", "/srv-aside"),
    ])
    .await;
    for (agent, text) in [("b", "one"), ("c", "two"), ("a", "three"), ("d", "aside")] {
        tree.script(text, [ScriptedAttempt::ok(10)]);
        tree.submit_to(agent, text).await.unwrap();
    }
    tree.advance_to(60).await;
    let recorded_work = tree.driver.recorded_work();
    // What is freed wakes who waits: nobody loses the second until the next look.
    assert_eq!(recorded_work.starts, ["one#1@0", "aside#1@0", "two#1@10", "three#1@20"]);
    assert_eq!(recorded_work.max_alive_count, 2);
    tree.end().await;
}

/// It is the request that has a place, not the moment in which its agent had a slot for it.
#[tokio::test(start_paused = true)]
async fn workspace_order_follows_the_arrival_of_requests() {
    let tree = tree_with_writers(&[("a", "/srv/x"), ("b", "/srv/y"), ("c", "/srv/x")]).await;
    for (text, seconds) in [("long", 20), ("short", 5), ("early", 10), ("late", 10)] {
        tree.script(text, [ScriptedAttempt::ok(seconds)]);
    }
    for (agent, text) in [("a", "long"), ("b", "short"), ("b", "early"), ("c", "late")] {
        tree.submit_to(agent, text).await.unwrap();
    }
    tree.advance_to(3).await;
    tree.driver.set_workspace("b", "/srv/x");
    tree.advance_to(60).await;
    assert_eq!(
        tree.driver.recorded_work().starts,
        ["long#1@0", "short#1@0", "early#1@20", "late#1@30"]
    );
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn read_only_agents_do_not_wait_for_a_workspace() {
    let tree = TestTree::with_agents([read_write_agent("writes"), agent_spec("reads")]).await;
    tree.driver.set_workspace("writes", "/srv/x");
    tree.driver.set_workspace("reads", "/srv/x");
    for (agent, text) in [("writes", "one"), ("reads", "two")] {
        tree.script(text, [ScriptedAttempt::ok(10)]);
        tree.submit_to(agent, text).await.unwrap();
    }
    tree.advance_to(60).await;
    assert_eq!(tree.driver.recorded_work().starts, ["one#1@0", "two#1@0"]);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_workspace_is_resolved_when_the_turn_comes() {
    let tree = tree_with_writers(&[("a", "/srv/x"), ("b", "/srv/x"), ("c", "/srv/y")]).await;
    for (agent, text) in [("a", "one"), ("b", "two"), ("c", "three")] {
        tree.script(text, [ScriptedAttempt::ok(100)]);
        tree.submit_to(agent, text).await.unwrap();
    }
    tree.advance_to(10).await;
    assert_eq!(tree.driver.recorded_work().alive_count, 2);
    tree.driver.set_workspace("b", "/srv/z"); // As a link that leads elsewhere now.
    tree.advance_to(12).await;
    assert_eq!(tree.driver.recorded_work().alive_count, 3);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn cancelled_and_timed_out_waiters_leave_the_workspace_queue() {
    let mut specs = ["a", "b", "c", "d"].map(read_write_agent);
    specs[2].limits.capacity.queue_timeout = Duration::from_secs(7);
    let tree = TestTree::with_agents(specs).await;
    let mut ids = Vec::new();
    for (agent, text) in [("a", "one"), ("b", "two"), ("c", "three"), ("d", "four")] {
        tree.driver.set_workspace(agent, "/srv/x");
        tree.script(text, [ScriptedAttempt::ok(10)]);
        ids.push(tree.submit_to(agent, text).await.unwrap());
    }
    tree.advance_to(5).await;
    tree.cancel(ids[1]).await.unwrap();
    tree.advance_to(60).await;
    assert_eq!(tree.driver.recorded_work().starts, ["one#1@0", "four#1@10"]);
    let ends = [tree.describe_end(ids[1]).await, tree.describe_end(ids[2]).await];
    assert_eq!(ends, ["cancelled: execution-cancelled", "failed: queue-timeout"]);
    tree.end().await;
}

/// What was waited in the line of the agent counts.
#[tokio::test(start_paused = true)]
async fn one_queue_timeout_covers_the_queue_and_the_workspace() {
    let mut specs = ["a", "b"].map(read_write_agent);
    specs[1].limits.capacity.queue_timeout = Duration::from_secs(25);
    let tree = TestTree::with_agents(specs).await;
    tree.driver.set_workspace("a", "/srv/x");
    tree.driver.set_workspace("b", "/srv/y");
    for (agent, text) in [("a", "long"), ("b", "first"), ("b", "second")] {
        tree.script(text, [ScriptedAttempt::ok(20)]);
        tree.submit_to(agent, text).await.unwrap();
    }
    tree.advance_to(1).await;
    tree.script("again", [ScriptedAttempt::ok(20)]);
    tree.submit_to("a", "again").await.unwrap();
    let late = tree.submit_to("b", "late").await.unwrap();
    tree.advance_to(19).await;
    tree.driver.set_workspace("b", "/srv/x");
    assert_eq!(tree.wait_for_end(late).await, "failed: queue-timeout");
    assert_eq!(tree.elapsed_seconds(), 26);
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_workspace_is_free_between_attempts_and_after_a_crash() {
    let tree = tree_with_writers(&[("a", "/srv/x"), ("b", "/srv/x"), ("c", "/srv/x")]).await;
    let failing_attempt = ScriptedAttempt::failing_to_start(Code::NoResources);
    tree.script("one", [failing_attempt, ScriptedAttempt::ok(10)]);
    tree.script("two", [ScriptedAttempt::panicking()]);
    tree.script("three", [ScriptedAttempt::ok(10)]);
    for (agent, text) in [("a", "one"), ("b", "two"), ("c", "three")] {
        tree.submit_to(agent, text).await.unwrap();
    }
    tree.advance_to(60).await;
    let recorded_work = tree.driver.recorded_work();
    assert_eq!(
        recorded_work.starts.iter().filter(|started| started.starts_with("two#1")).count(),
        1
    );
    assert_eq!(
        (recorded_work.starts.len(), recorded_work.max_alive_count),
        (4, 1),
        "{:?}",
        recorded_work.starts
    );
    tree.end().await;
}

#[tokio::test(start_paused = true)]
async fn workspaces_are_exclusive_after_a_restart() {
    let mut tree = tree_with_writers(&[("a", "/srv/x"), ("b", "/srv/x"), ("c", "/srv/x")]).await;
    let mut ids = Vec::new();
    for (agent, text) in [("c", "one"), ("b", "two"), ("a", "three")] {
        tree.script(text, [ScriptedAttempt::ok(10)]);
        ids.push(tree.submit_to(agent, text).await.unwrap());
    }
    tree.advance_to(5).await;
    tree.restart().await;
    tree.advance_to(60).await;
    let recorded_work = tree.driver.recorded_work();
    assert_eq!(recorded_work.max_alive_count, 1, "{:?}", recorded_work.starts);
    let mut ends = Vec::new();
    for id in ids {
        ends.push(tree.describe_end(id).await);
    }
    assert_eq!(ends, ["failed: interrupted", "completed", "completed"]);
    tree.end().await;
}
