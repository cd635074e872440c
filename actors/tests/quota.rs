//! Executions whose account has used up what it may: parked, woken, called off, in virtual time.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::num::NonZeroU32;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use algonius_actors::model::agent::queue::QueueReason;
use algonius_actors::model::agent::quota::QuotaCredential;
use algonius_actors::model::agent::{Access, AgentSpec};
use algonius_actors::model::code::Code;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::testing::{Act, WORKER, World, spec};
use tokio::sync::oneshot;

/// An hour without quota.
fn used_up() -> Act {
    Act::fail(1, Code::QuotaExceeded).lasting(3600)
}

/// What waits at the worker: the reason, and the seconds of the world until which.
async fn waits(world: &World, agent: &str) -> Vec<(QueueReason, Option<i64>)> {
    let queued = world.agent(agent).await.work.queued;
    let second = |time: chrono::DateTime<chrono::Utc>| time.timestamp() - 1_800_000_000;
    queued.into_iter().map(|one| (one.reason, one.until.map(second))).collect()
}

/// Seconds at which attempts of this text began.
fn begun(world: &World, text: &str) -> Vec<u64> {
    let begun = world.driver.stage().begun;
    let of = begun.iter().filter(|one| one.split('#').next() == Some(text));
    of.map(|one| one.split('@').nth(1).unwrap().parse().unwrap()).collect()
}

async fn parked(world: &World, text: &str, then: Act) -> ExecutionId {
    world.script(text, [used_up(), then]);
    let id = world.submit(text).await.unwrap();
    world.at(10).await;
    id
}

#[tokio::test(start_paused = true)]
async fn a_deferred_execution_holds_no_slot_and_resumes_on_time() {
    let world = World::new().await;
    let id = parked(&world, "a", Act::ok(5)).await;
    assert_eq!(waits(&world, WORKER).await, [(QueueReason::QuotaExhausted, Some(3601))]);
    let agent = world.agent(WORKER).await;
    assert_eq!((agent.work.running.len(), world.driver.stage().lives.len()), (0, 1));
    assert_eq!(world.record(id).await.unwrap().is_parked().unwrap().times, 1);
    world.at(3600).await;
    assert_eq!(begun(&world, "a"), [0]);
    assert_eq!(world.wait(id).await, "completed");
    let second = begun(&world, "a")[1];
    assert!((3601..=3632).contains(&second), "woke at {second}");
    assert_eq!(
        world.path(id).await,
        "idle starting running failed starting running completed cleanup idle"
    );
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_deferral_survives_a_restart_with_its_time() {
    let mut world = World::new().await;
    let id = parked(&world, "a", Act::ok(5)).await;
    world.kill().await;
    world.at(1000).await;
    world.start().await;
    assert_eq!(waits(&world, WORKER).await, [(QueueReason::QuotaExhausted, Some(3601))]);
    // Who comes meanwhile waits for the account too: it is known again from who is parked.
    world.script("b", [Act::ok(1)]);
    let other = world.submit("b").await.unwrap();
    world.at(3600).await;
    assert_eq!((begun(&world, "a"), begun(&world, "b")), (vec![0], vec![]));
    assert_eq!(
        (world.wait(id).await, world.wait(other).await),
        ("completed".into(), "completed".into())
    );
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_deferred_redacted_execution_fails_after_a_restart() {
    let mut world = World::new().await;
    let id = parked(&world, "a", Act::ok(5)).await;
    world.ledger.mask(id).await;
    world.restart().await;
    assert_eq!(world.wait(id).await, "failed: not-replayable");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_deferred_execution_is_cancelled_at_once() {
    let world = World::new().await;
    let id = parked(&world, "a", Act::ok(5)).await;
    world.cancel(id).await.unwrap();
    assert_eq!(world.wait(id).await, "cancelled: execution-cancelled");
    assert_eq!((world.second(), begun(&world, "a").len()), (10, 1));
    world.at(4000).await;
    assert_eq!(begun(&world, "a").len(), 1);
    world.end().await;
}

/// The order to cancel meets the steps in which the actor of the execution hands it back.
#[tokio::test(start_paused = true)]
async fn an_execution_cancelled_while_deferring_does_not_resume() {
    for (steps, is_before) in (0..10).flat_map(|steps| [(steps, true), (steps, false)]) {
        let world = Arc::new(World::new().await);
        world.script("a", [used_up(), Act::ok(5)]);
        let (tell, told) = oneshot::channel();
        let early = if is_before { None } else { Some(world.submit("a").await.unwrap()) };
        // A task of the runtime takes its turns with the actors. Whose timer is set first has the first turn.
        let cancels = tokio::spawn({
            let world = Arc::clone(&world);
            async move {
                world.at(1).await; // When its attempt fails.
                let id = told.await.unwrap();
                turns(steps).await;
                world.cancel(id).await.unwrap();
            }
        });
        tokio::task::yield_now().await;
        let id = match early {
            Some(id) => id,
            None => world.submit("a").await.unwrap(),
        };
        tell.send(id).unwrap();
        cancels.await.unwrap();
        world.at(4000).await;
        assert_eq!(begun(&world, "a").len(), 1, "called off after {steps} steps");
        assert_eq!(world.wait(id).await, "cancelled: execution-cancelled");
        Arc::into_inner(world).unwrap().end().await;
    }
}

/// Lets each task that is ready have so many turns. `yield_now` would let them all run until they wait.
async fn turns(many: u32) {
    let mut left = many;
    std::future::poll_fn(|context| {
        if left == 0 {
            return Poll::Ready(());
        }
        left -= 1;
        context.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn clock_jumps_do_not_prolong_a_deferral() {
    for (jump, latest) in [(7200, 200), (-7200, 3700)] {
        let world = World::new().await;
        let id = parked(&world, "a", Act::ok(5)).await;
        world.clock.jump(jump);
        world.at(latest).await;
        assert_eq!(world.wait(id).await, "completed");
        assert!(world.second() <= latest + 5, "{jump}: at {}", world.second());
        world.end().await;
    }
}

#[tokio::test(start_paused = true)]
async fn deferrals_are_bounded_and_spend_no_retry() {
    let world = World::tuned(|spec| {
        spec.quota.parking.times = 2;
        spec.retry.max = 0;
    })
    .await;
    world.script("a", [used_up()]);
    let id = world.submit("a").await.unwrap();
    world.at(20_000).await;
    assert_eq!(world.wait(id).await, "failed: quota-exceeded");
    assert_eq!(begun(&world, "a").len(), 3);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn long_quotas_and_writing_agents_fail_at_once() {
    let writes = |spec: &mut AgentSpec| spec.access = Access::ReadWrite;
    let brief = |spec: &mut AgentSpec| spec.quota.parking.max = Duration::from_secs(60);
    for tune in [writes as fn(&mut AgentSpec), brief] {
        let world = World::tuned(tune).await;
        world.driver.settle(WORKER, "/srv/x");
        world.script("a", [used_up()]);
        let id = world.submit("a").await.unwrap();
        assert_eq!(world.wait(id).await, "failed: quota-exceeded");
        assert_eq!(world.second(), 1);
        world.end().await;
    }
}

/// Two agents of one account, and one of another.
async fn accounts() -> World {
    let of = |id: &str, account: &str| {
        let mut spec = spec(id);
        spec.limits.capacity.running = NonZeroU32::new(3);
        spec.quota.credential = QuotaCredential::Named(account.to_owned());
        spec
    };
    World::of([of("one", "team"), of("two", "team"), of("other", "else")]).await
}

#[tokio::test(start_paused = true)]
async fn agents_of_one_account_wait_together() {
    let world = accounts().await;
    world.script("a", [used_up(), Act::ok(1)]);
    let first = world.submit_to("one", "a").await.unwrap();
    world.at(10).await;
    let second = world.submit_to("two", "b").await.unwrap();
    let other = world.submit_to("other", "c").await.unwrap();
    assert_eq!(world.wait(other).await, "completed");
    assert_eq!(waits(&world, "two").await, [(QueueReason::QuotaExhausted, Some(3601))]);
    let shown = world.status().await.credentials;
    assert_eq!((shown[0].name.0.as_str(), shown[0].state.as_str()), ("team", "open"));
    // Longer than its patience of half an hour: the time without quota is none of it.
    assert_eq!(
        (world.wait(second).await, world.wait(first).await),
        ("completed".into(), "completed".into())
    );
    assert_eq!(begun(&world, "b"), [3601]);
    assert_eq!(world.status().await.credentials, []);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_successful_probe_resumes_all_waiting_executions() {
    let world = accounts().await;
    world.script("a", [used_up(), Act::ok(1)]);
    world.submit_to("one", "a").await.unwrap();
    world.at(10).await;
    for text in ["b", "c", "d"] {
        world.script(text, [Act::ok(100)]);
    }
    let mut ids = Vec::new();
    for (agent, text) in [("two", "b"), ("two", "c"), ("one", "d")] {
        ids.push(world.submit_to(agent, text).await.unwrap());
    }
    world.at(3640).await;
    for id in ids {
        assert_eq!(world.wait(id).await, "completed");
    }
    let mut all: Vec<_> = ["b", "c", "d"].iter().flat_map(|text| begun(&world, text)).collect();
    all.sort_unstable();
    assert_eq!(all, [3601, 3701, 3701]);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn the_first_reported_usage_of_a_probe_opens_the_account() {
    let world = accounts().await;
    world.script("a", [used_up()]);
    world.submit_to("one", "a").await.unwrap();
    world.at(10).await;
    world.script("b", [Act::ok(200).using([(5, 5, false)])]);
    world.script("c", [Act::ok(1)]);
    let long = world.submit_to("two", "b").await.unwrap();
    let short = world.submit_to("two", "c").await.unwrap();
    world.at(3610).await;
    assert_eq!(world.wait(short).await, "completed");
    assert!(world.second() < 3700, "at {}", world.second());
    assert_eq!(world.wait(long).await, "completed");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn failed_and_cancelled_probes_keep_the_account_closed() {
    let world = accounts().await;
    world.script("a", [used_up()]);
    let first = world.submit_to("one", "a").await.unwrap();
    world.at(10).await;
    world.cancel(first).await.unwrap(); // What it found out is known all the same.
    world.script("b", [Act::ok(1000)]);
    let tries = world.submit_to("two", "b").await.unwrap();
    world.script("c", [Act::fail(1, Code::QuotaExceeded).lasting(600), Act::ok(1)]);
    let next = world.submit_to("two", "c").await.unwrap();
    let last = world.submit_to("two", "d").await.unwrap();
    world.at(3650).await;
    assert_eq!((begun(&world, "b"), begun(&world, "c")), (vec![3601], vec![]));
    world.cancel(tries).await.unwrap();
    world.at(3700).await;
    // Another tries, and the account is shut again for ten minutes.
    assert_eq!((begun(&world, "c"), begun(&world, "d")), (vec![3650], vec![]));
    world.at(4300).await;
    assert_eq!(world.wait(last).await, "completed");
    assert!(begun(&world, "d")[0] >= 4251, "{:?}", begun(&world, "d"));
    assert_eq!(world.wait(next).await, "completed");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn deferred_executions_resume_at_spread_times() {
    let world = World::tuned(|spec| {
        spec.limits.capacity.running = None;
        spec.quota.breaker = false;
    })
    .await;
    world.script("a", [used_up(), Act::ok(1)]);
    let mut ids = Vec::new();
    for _ in 0..20 {
        ids.push(world.submit("a").await.unwrap());
    }
    world.at(3640).await;
    for id in ids {
        assert_eq!(world.wait(id).await, "completed");
    }
    let mut woke = begun(&world, "a").split_off(20);
    woke.sort_unstable();
    woke.dedup();
    assert!(woke.len() > 5, "all woke at {woke:?}");
    assert!(woke.iter().all(|second| (3601..=3632).contains(second)), "{woke:?}");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn an_agent_crash_keeps_its_deferred_executions() {
    let world = World::new().await;
    let id = parked(&world, "a", Act::ok(5)).await;
    world.crash_agent(WORKER).await;
    world.at(100).await;
    assert_eq!(waits(&world, WORKER).await, [(QueueReason::QuotaExhausted, Some(3601))]);
    world.at(3640).await;
    assert_eq!(world.end_of(id).await, "completed");
    world.end().await;
}
