//! An actor that panics: the tree mends itself, and the others do not notice.
//!
//! The service runs inside the test here, so that a fault can be put into its clock.

use std::backtrace::Backtrace;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use algonius_actors::ports::clock::Clock;
use algonius_supervisor::clock::WallClock;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};

use crate::harness::door::{completed, failed, id, outcome};
use crate::harness::{Inside, Setup, fake, gated, message, until};

/// Where an agent's actor looks at the clock when it takes a message.
const INTAKE: &str = "agent/intake.rs";

/// The wall's time, until it is lit and then asked by the actor of an agent.
#[derive(Default)]
struct Fused {
    is_lit: AtomicBool,
}

impl Clock for Fused {
    fn now(&self) -> DateTime<Utc> {
        if self.is_lit.load(Ordering::SeqCst) {
            let is_intake = Backtrace::force_capture().to_string().contains(INTAKE);
            let burns = is_intake && self.is_lit.swap(false, Ordering::SeqCst);
            assert!(!burns, "the fuse has burnt down");
        }
        WallClock.now()
    }
}

struct World {
    setup: Setup,
    clock: Arc<Fused>,
    inside: Inside,
}

impl Deref for World {
    type Target = Inside;

    fn deref(&self) -> &Inside {
        &self.inside
    }
}

impl World {
    async fn start(setup: Setup) -> Self {
        let clock = Arc::new(Fused::default());
        let inside = Inside::on_clock(&setup, Arc::clone(&clock) as _).await;
        Self { setup, clock, inside }
    }

    /// Makes the actor of the agent panic; what its caller is told.
    async fn panic_in(&self, agent: &str) -> Value {
        self.clock.is_lit.store(true, Ordering::SeqCst);
        let answer = self.door.call(agent, "message/send", &message("the last straw")).await.json();
        assert!(!self.clock.is_lit.load(Ordering::SeqCst), "no actor looked at the clock");
        answer
    }

    async fn restarts(&self, agent: &str, count: u32) -> Value {
        until("the restart", async || {
            let status = self.door.agent(agent).await;
            (status["restarts"] == json!(count) && status["health"] == "alive").then_some(status)
        })
        .await
    }

    async fn stop(self) {
        self.inside.stop(&self.setup).await;
    }
}

#[tokio::test]
async fn an_agent_s_actor_that_panics_is_started_again_and_the_others_do_not_notice() {
    let agents = [fake("one", "echo", ""), fake("two", "echo", "")].concat();
    let world = World::start(Setup::new(&agents)).await;
    let other = world.door.agent("two").await;
    assert_eq!(world.panic_in("one").await["error"]["code"], -32603);
    let status = world.restarts("one", 1).await;
    assert!(status["last_fault"].as_str().unwrap().contains("the fuse has burnt down"), "{status}");
    assert_eq!(world.door.agent("two").await, other);
    for agent in ["one", "two"] {
        assert_eq!(outcome(&world.door.send(agent, "hello").await), completed("hello"));
    }
    world.stop().await;
}

#[tokio::test]
async fn what_an_actor_had_when_it_panicked_is_settled_or_taken_up_again() {
    let world = World::start(Setup::new(&gated("one", "access = 'read-write'"))).await;
    let running = world.door.begin("one", "ann").await;
    world.setup.written("log", "start ann\n").await;
    let waiting = world.door.begin("one", "bob").await;
    world.panic_in("one").await;
    world.restarts("one", 1).await;
    assert_eq!(outcome(&world.door.ended("one", &running).await), failed("interrupted"));
    world.setup.open("go");
    assert_eq!(outcome(&world.door.ended("one", &waiting).await), completed("bob\n"));
    assert_eq!(world.setup.read("log"), "start ann\nstart bob\nend bob\n");
    world.stop().await;
}

#[tokio::test]
async fn an_agent_that_panics_too_often_is_quarantined_alone() {
    let agents = [fake("one", "echo", ""), fake("two", "echo", "")].concat();
    let world = World::start(Setup::new(&agents)).await;
    for restarts in 1..=3 {
        world.panic_in("one").await;
        world.restarts("one", restarts).await;
    }
    world.panic_in("one").await;
    until("the quarantine", async || {
        (world.door.agent("one").await["health"] == "quarantined").then_some(())
    })
    .await;
    let refused = world.door.refused("one", "message/send", message("again")).await;
    assert_eq!(refused, (-32054, "agent-quarantined".to_owned()));
    assert_eq!(outcome(&world.door.send("two", "hello").await), completed("hello"));
    world.stop().await;
}

#[tokio::test]
async fn cards_and_the_directory_name_the_public_address() {
    let server = "public_url = 'https://agents.example.org/a/'\ndefault_agent = 'one'";
    let world = World::start(Setup::server(server, &fake("one", "echo", ""))).await;
    let url = "https://agents.example.org/a/agents/one/v1";
    let card = world.door.get("/.well-known/agent-card.json").await.json();
    assert_eq!((&card["url"], &card["additionalInterfaces"][0]["url"]), (&json!(url), &json!(url)));
    let list = world.door.get("/api/v1/agents").await.json();
    assert_eq!(list["agents"][0]["url"], url);
    let task = world.door.send("one", "hello").await;
    assert!(!id(&task).is_empty());
    world.stop().await;
}
