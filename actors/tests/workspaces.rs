//! Agents that change things and share a folder, in virtual time.

use std::time::Duration;

use algonius_actors::model::agent::{Access, AgentSpec};
use algonius_actors::model::code::Code;
use algonius_actors::testing::{Act, World, spec};

fn writer(id: &str) -> AgentSpec {
    AgentSpec { access: Access::ReadWrite, ..spec(id) }
}

/// Agents that change things, each in its folder.
async fn world(agents: &[(&str, &str)]) -> World {
    let world = World::of(agents.iter().map(|(agent, _)| writer(agent))).await;
    for (agent, folder) in agents {
        world.driver.settle(agent, folder);
    }
    world
}

#[tokio::test(start_paused = true)]
async fn agents_of_one_workspace_run_in_order_of_arrival() {
    let world =
        world(&[("a", "/srv/x"), ("b", "/srv/x/deep"), ("c", "/srv"), ("d", "/srv-aside")]).await;
    for (agent, text) in [("b", "one"), ("c", "two"), ("a", "three"), ("d", "aside")] {
        world.script(text, [Act::ok(10)]);
        world.submit_to(agent, text).await.unwrap();
    }
    world.at(60).await;
    let stage = world.driver.stage();
    // What is freed wakes who waits: nobody loses the second until the next look.
    assert_eq!(stage.begun, ["one#1@0", "aside#1@0", "two#1@10", "three#1@20"]);
    assert_eq!(stage.most_alive, 2);
    world.end().await;
}

/// It is the request that has a place, not the moment in which its agent had a slot for it.
#[tokio::test(start_paused = true)]
async fn workspace_order_follows_the_arrival_of_requests() {
    let world = world(&[("a", "/srv/x"), ("b", "/srv/y"), ("c", "/srv/x")]).await;
    for (text, seconds) in [("long", 20), ("short", 5), ("early", 10), ("late", 10)] {
        world.script(text, [Act::ok(seconds)]);
    }
    for (agent, text) in [("a", "long"), ("b", "short"), ("b", "early"), ("c", "late")] {
        world.submit_to(agent, text).await.unwrap();
    }
    world.at(3).await;
    world.driver.settle("b", "/srv/x");
    world.at(60).await;
    assert_eq!(world.driver.stage().begun, ["long#1@0", "short#1@0", "early#1@20", "late#1@30"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn read_only_agents_do_not_wait_for_a_workspace() {
    let world = World::of([writer("writes"), spec("reads")]).await;
    world.driver.settle("writes", "/srv/x");
    world.driver.settle("reads", "/srv/x");
    for (agent, text) in [("writes", "one"), ("reads", "two")] {
        world.script(text, [Act::ok(10)]);
        world.submit_to(agent, text).await.unwrap();
    }
    world.at(60).await;
    assert_eq!(world.driver.stage().begun, ["one#1@0", "two#1@0"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_workspace_is_resolved_when_the_turn_comes() {
    let world = world(&[("a", "/srv/x"), ("b", "/srv/x"), ("c", "/srv/y")]).await;
    for (agent, text) in [("a", "one"), ("b", "two"), ("c", "three")] {
        world.script(text, [Act::ok(100)]);
        world.submit_to(agent, text).await.unwrap();
    }
    world.at(10).await;
    assert_eq!(world.driver.stage().alive, 2);
    world.driver.settle("b", "/srv/z"); // As a link that leads elsewhere now.
    world.at(12).await;
    assert_eq!(world.driver.stage().alive, 3);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn cancelled_and_timed_out_waiters_leave_the_workspace_queue() {
    let mut specs = ["a", "b", "c", "d"].map(writer);
    specs[2].limits.capacity.patience = Duration::from_secs(7);
    let world = World::of(specs).await;
    let mut ids = Vec::new();
    for (agent, text) in [("a", "one"), ("b", "two"), ("c", "three"), ("d", "four")] {
        world.driver.settle(agent, "/srv/x");
        world.script(text, [Act::ok(10)]);
        ids.push(world.submit_to(agent, text).await.unwrap());
    }
    world.at(5).await;
    world.cancel(ids[1]).await.unwrap();
    world.at(60).await;
    assert_eq!(world.driver.stage().begun, ["one#1@0", "four#1@10"]);
    let ends = [world.end_of(ids[1]).await, world.end_of(ids[2]).await];
    assert_eq!(ends, ["cancelled: execution-cancelled", "failed: queue-timeout"]);
    world.end().await;
}

/// What was waited in the line of the agent counts.
#[tokio::test(start_paused = true)]
async fn one_queue_timeout_covers_the_queue_and_the_workspace() {
    let mut specs = ["a", "b"].map(writer);
    specs[1].limits.capacity.patience = Duration::from_secs(25);
    let world = World::of(specs).await;
    world.driver.settle("a", "/srv/x");
    world.driver.settle("b", "/srv/y");
    for (agent, text) in [("a", "long"), ("b", "first"), ("b", "second")] {
        world.script(text, [Act::ok(20)]);
        world.submit_to(agent, text).await.unwrap();
    }
    world.at(1).await;
    world.script("again", [Act::ok(20)]);
    world.submit_to("a", "again").await.unwrap();
    let late = world.submit_to("b", "late").await.unwrap();
    world.at(19).await;
    world.driver.settle("b", "/srv/x");
    assert_eq!(world.wait(late).await, "failed: queue-timeout");
    assert_eq!(world.second(), 26);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_workspace_is_free_between_attempts_and_after_a_crash() {
    let world = world(&[("a", "/srv/x"), ("b", "/srv/x"), ("c", "/srv/x")]).await;
    let fails = Act::stillborn(Code::NoResources);
    world.script("one", [fails, Act::ok(10)]);
    world.script("two", [Act::bomb()]);
    world.script("three", [Act::ok(10)]);
    for (agent, text) in [("a", "one"), ("b", "two"), ("c", "three")] {
        world.submit_to(agent, text).await.unwrap();
    }
    world.at(60).await;
    let stage = world.driver.stage();
    assert_eq!(stage.begun.iter().filter(|begun| begun.starts_with("two#1")).count(), 1);
    assert_eq!((stage.begun.len(), stage.most_alive), (4, 1), "{:?}", stage.begun);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn workspaces_are_exclusive_after_a_restart() {
    let mut world = world(&[("a", "/srv/x"), ("b", "/srv/x"), ("c", "/srv/x")]).await;
    let mut ids = Vec::new();
    for (agent, text) in [("c", "one"), ("b", "two"), ("a", "three")] {
        world.script(text, [Act::ok(10)]);
        ids.push(world.submit_to(agent, text).await.unwrap());
    }
    world.at(5).await;
    world.restart().await;
    world.at(60).await;
    let stage = world.driver.stage();
    assert_eq!(stage.most_alive, 1, "{:?}", stage.begun);
    let mut ends = Vec::new();
    for id in ids {
        ends.push(world.end_of(id).await);
    }
    assert_eq!(ends, ["failed: interrupted", "completed", "completed"]);
    world.end().await;
}
