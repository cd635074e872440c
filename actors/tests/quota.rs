//! Executions whose account has used up what it may: parked, woken, called off, in virtual time.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::num::NonZeroU32;
use std::time::Duration;

use algonius_actors::model::agent::{Access, AgentSpec};
use algonius_actors::model::code::Code;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::queue::Reason;
use algonius_actors::model::quota::Credential;
use algonius_actors::testing::{Act, WORKER, World, spec};

/// An hour without quota.
fn used_up() -> Act {
    Act::fail(1, Code::QuotaExceeded).lasting(3600)
}

/// What waits at the worker: the reason, and the seconds of the world until which.
async fn waits(world: &World, agent: &str) -> Vec<(Reason, Option<i64>)> {
    let queued = world.agent(agent).await.queued;
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
async fn what_is_parked_holds_no_slot_and_goes_on_when_its_time_has_come() {
    let world = World::new().await;
    let id = parked(&world, "a", Act::ok(5)).await;
    assert_eq!(waits(&world, WORKER).await, [(Reason::QuotaUsedUp, Some(3601))]);
    let agent = world.agent(WORKER).await;
    assert_eq!((agent.running.len(), world.driver.stage().lives.len()), (0, 1));
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
async fn what_is_parked_survives_the_service_and_keeps_its_time() {
    let mut world = World::new().await;
    let id = parked(&world, "a", Act::ok(5)).await;
    world.kill().await;
    world.at(1000).await;
    world.start().await;
    assert_eq!(waits(&world, WORKER).await, [(Reason::QuotaUsedUp, Some(3601))]);
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
async fn what_is_parked_and_was_masked_is_told_so_after_a_restart() {
    let mut world = World::new().await;
    let id = parked(&world, "a", Act::ok(5)).await;
    world.ledger.mask(id).await;
    world.restart().await;
    assert_eq!(world.wait(id).await, "failed: not-replayable");
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn what_is_parked_is_called_off_at_once() {
    let world = World::new().await;
    let id = parked(&world, "a", Act::ok(5)).await;
    world.cancel(id).await.unwrap();
    assert_eq!(world.wait(id).await, "cancelled: execution-cancelled");
    assert_eq!((world.second(), begun(&world, "a").len()), (10, 1));
    world.at(4000).await;
    assert_eq!(begun(&world, "a").len(), 1);
    world.end().await;
}

#[tokio::test(start_paused = true)]
async fn a_clock_that_jumps_ahead_wakes_it_and_one_that_is_set_back_does_not_keep_it() {
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
async fn it_is_parked_so_many_times_and_no_retry_is_spent_on_that() {
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
async fn what_lasts_too_long_and_what_may_have_changed_things_fails_at_once() {
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
        spec.capacity.running = NonZeroU32::new(3);
        spec.quota.credential = Credential::Named(account.to_owned());
        spec
    };
    World::of([of("one", "team"), of("two", "team"), of("other", "else")]).await
}

#[tokio::test(start_paused = true)]
async fn agents_of_one_account_wait_together_and_others_do_not() {
    let world = accounts().await;
    world.script("a", [used_up(), Act::ok(1)]);
    let first = world.submit_to("one", "a").await.unwrap();
    world.at(10).await;
    let second = world.submit_to("two", "b").await.unwrap();
    let other = world.submit_to("other", "c").await.unwrap();
    assert_eq!(world.wait(other).await, "completed");
    assert_eq!(waits(&world, "two").await, [(Reason::QuotaUsedUp, Some(3601))]);
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
async fn one_tries_and_when_it_is_served_all_go_on() {
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
async fn who_counts_tokens_is_served_and_the_others_need_not_wait_for_its_end() {
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
async fn who_tries_in_vain_and_who_is_called_off_let_nobody_else_burn_an_attempt() {
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
async fn a_herd_does_not_wake_at_once() {
    let world = World::tuned(|spec| {
        spec.capacity.running = None;
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
async fn an_agent_that_crashes_leaves_those_who_are_parked_where_they_are() {
    let world = World::new().await;
    let id = parked(&world, "a", Act::ok(5)).await;
    world.crash_agent(WORKER).await;
    world.at(100).await;
    assert_eq!(waits(&world, WORKER).await, [(Reason::QuotaUsedUp, Some(3601))]);
    world.at(3640).await;
    assert_eq!(world.end_of(id).await, "completed");
    world.end().await;
}
