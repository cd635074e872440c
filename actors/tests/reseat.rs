//! Agents are added, changed and removed while the service runs, and no work is lost.

use std::num::NonZeroU32;
use std::time::Duration;

use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::code::Code;
use algonius_actors::model::observation::status::Health;
use algonius_actors::testing::{Act, WORKER, World, spec};

/// The worker with another deadline.
fn worker(seconds: u64) -> AgentSpec {
    let mut worker = spec(WORKER);
    worker.limits.deadlines.run = Duration::from_secs(seconds);
    worker
}

/// The worker with room for so many at once.
fn roomy(running: u32) -> AgentSpec {
    let mut worker = spec(WORKER);
    worker.limits.capacity.running = NonZeroU32::new(running);
    worker
}

#[tokio::test(start_paused = true)]
async fn a_new_definition_applies_to_queued_work_only() {
    let world = World::of([worker(300)]).await;
    for text in ["a", "b"] {
        world.script(text, [Act::ok(200)]);
    }
    let (a, b) = (world.submit("a").await.unwrap(), world.submit("b").await.unwrap());
    world.at(5).await;
    world.seat(worker(100)).await;
    let ends = [world.wait(a).await, world.wait(b).await];
    assert_eq!(ends, ["completed", "timeout: execution-timeout"]);
    assert_eq!(world.driver.stage().begun, ["a#1@0", "b#1@200"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_crashed_execution_resumes_with_its_old_definition() {
    let world = World::of([worker(300)]).await;
    world.script("a", [Act::ok(50)]);
    let id = world.submit("a").await.unwrap();
    world.at(5).await;
    world.seat(worker(10)).await;
    world.driver.hold(id);
    world.clock.arm(1); // The next look at the clock panics: that of the execution, which ends.
    assert_eq!(world.wait(id).await, "completed");
    assert_eq!(world.driver.stage().begun, ["a#1@0", "again a#1@50"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_new_limit_applies_at_once_and_ends_no_run() {
    let world = World::new().await;
    let mut ids = Vec::new();
    for text in ["a", "b", "c", "d", "e"] {
        world.script(text, [Act::ok(10)]);
        ids.push(world.submit(text).await.unwrap());
    }
    world.at(5).await;
    world.seat(roomy(3)).await;
    world.at(6).await;
    world.seat(roomy(1)).await;
    for id in ids {
        assert_eq!(world.wait(id).await, "completed");
    }
    // A higher limit applies at once, and a lower limit ends no run
    assert_eq!(world.driver.stage().begun, ["a#1@0", "b#1@5", "c#1@5", "d#1@15", "e#1@25"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn queued_requests_use_the_new_queue_timeout() {
    let world = World::new().await;
    world.script("a", [Act::ok(250)]);
    world.submit("a").await.unwrap();
    world.at(5).await;
    let b = world.submit("b").await.unwrap();
    let mut hasty = spec(WORKER);
    hasty.limits.capacity.patience = Duration::from_secs(60);
    world.at(10).await;
    world.seat(hasty).await;
    let end = format!("{} at {}", world.wait(b).await, world.second());
    assert_eq!(end, "failed: queue-timeout at 65");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_agent_finishes_its_work_and_is_gone() {
    let world = World::of(["one", "two"].map(spec)).await;
    let mut ids = Vec::new();
    for text in ["a", "b"] {
        world.script(text, [Act::ok(10)]);
        ids.push(world.submit_to("one", text).await.unwrap());
    }
    let gone = world.unseat("one");
    world.status().await; // Who answers has heard of it.
    let refused = world.submit_to("one", "c").await;
    assert_eq!(
        (refused, world.agent("one").await.health),
        (Err(Code::AgentRemoved), Health::Draining)
    );
    assert!(gone.await);
    assert_eq!(world.second(), 20);
    for id in ids {
        assert_eq!(world.end_of(id).await, "completed");
    }
    assert_eq!(world.submit_to("one", "d").await, Err(Code::AgentUnknown));
    let left: Vec<_> =
        world.status().await.agents.into_iter().map(|it| it.id.to_string()).collect();
    assert_eq!(left, ["two"]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_removed_agent_finishes_though_its_actor_fails() {
    let world = World::of(["one", "two"].map(spec)).await;
    world.script("first", [Act::ok(5)]);
    world.script("bomb", [Act::bomb()]);
    world.script("last", [Act::ok(10)]);
    for text in ["first", "bomb", "bomb", "bomb", "bomb"] {
        world.submit_to("one", text).await.unwrap();
    }
    let last = world.submit_to("one", "last").await.unwrap();
    let gone = world.unseat("one");
    world.at(6).await;
    assert_eq!(world.agent("one").await.starts.restarts, 1);
    assert!(gone.await);
    // A removed agent finishes its work even if its actor fails meanwhile, and an agent that
    // is added again before that keeps its queue
    assert_eq!((world.end_of(last).await.as_str(), world.second()), ("completed", 15));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_added_again_before_its_removal_keeps_its_queue() {
    let world = World::new().await;
    let since = world.agent(WORKER).await.starts.since;
    let mut ids = Vec::new();
    for text in ["a", "b"] {
        world.script(text, [Act::ok(10)]);
        ids.push(world.submit(text).await.unwrap());
    }
    world.at(5).await;
    let gone = world.unseat(WORKER);
    world.seat(worker(50)).await;
    assert!(!gone.await);
    world.script("c", [Act::ok(10)]);
    ids.push(world.submit("c").await.unwrap());
    for id in ids {
        // A removed agent finishes its work even if its actor fails meanwhile, and an agent
        // that is added again before that keeps its queue
        assert_eq!(world.wait(id).await, "completed");
    }
    let worker = world.agent(WORKER).await;
    assert_eq!((worker.health, worker.starts.since, world.second()), (Health::Alive, since, 30));
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_new_definition_lifts_the_quarantine() {
    let world = World::new().await;
    for _ in 0..4 {
        world.crash_agent(WORKER).await;
    }
    assert_eq!(world.submit("a").await, Err(Code::AgentQuarantined));
    world.seat(worker(50)).await;
    assert_eq!(world.run("a").await, "completed at 0");
    for _ in 0..4 {
        world.crash_agent(WORKER).await;
    }
    assert!(world.unseat(WORKER).await);
    assert_eq!(world.submit("b").await, Err(Code::AgentUnknown));
    world.end().await;
}

/// Whoever comes while agents come and go has one end, or a refusal that is true.
#[tokio::test(start_paused = true)]
async fn requests_during_reconfiguration_end_once_or_are_refused() {
    let world = World::of([roomy(4), spec("guest")]).await;
    let (mut ends, mut refused) = (Vec::new(), Vec::new());
    for round in 0..50_u64 {
        let text = format!("text {round}");
        world.script(&text, [Act::ok(round % 3)]);
        let agent = if round % 2 == 0 { WORKER } else { "guest" };
        let asking = world.submit_to(agent, &text);
        let changing = async {
            match round % 4 {
                0 => world.seat(roomy(1 + u32::try_from(round).unwrap() % 5)).await,
                1 => drop(world.unseat("guest")),
                _ => world.seat(spec("guest")).await,
            }
        };
        match tokio::join!(asking, changing).0 {
            Ok(id) => ends.push(id),
            Err(code) => refused.push(code),
        }
    }
    for id in ends {
        assert_eq!(world.wait(id).await, "completed");
    }
    let is_true =
        |code: &Code| matches!(code, Code::AgentRemoved | Code::AgentUnknown | Code::QueueFull);
    assert!(refused.iter().all(is_true), "{refused:?}");
    world.end().await;
}
