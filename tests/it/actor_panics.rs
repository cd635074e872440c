//! An actor that panics: the tree mends itself, and the others do not notice.
//!
//! The service runs inside the test here, so that a fault can be put into its clock.

use std::backtrace::Backtrace;
use std::ops::Deref;
use std::sync::Arc;

use algonius_actors::ports::clock::Clock;
use algonius_supervisor::platform::clock::WallClock;
use chrono::{DateTime, Utc};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::harness::client::{completed_outcome, failed_outcome, task_id, task_outcome};
use crate::harness::processes::pids_with_env;
use crate::harness::{
    EmbeddedService, Setup, fake_agent_config, gated_agent_config, message_params, poll_until,
};

/// Settings of an agent that writes. Its folder is not that of the test, in which the program of the service may be.
const READ_WRITE_SETTINGS: &str = "access = 'read-write'\nworking_dir = 'HERE'";
/// Where an agent's actor looks at the clock when it takes a message.
const SUBMIT_SOURCE: &str = "agent/submit.rs";
/// Where an execution's actor does when it is told something.
const EXECUTION_SOURCE: &str = "actors/src/execution.rs";

/// The wall's time, until it is lit and then asked from the place for which it is.
#[derive(Default)]
struct PanickingClock {
    panic_site: watch::Sender<Option<&'static str>>,
}

impl Clock for PanickingClock {
    fn now(&self) -> DateTime<Utc> {
        let site = *self.panic_site.borrow();
        if let Some(site) = site {
            let at_site = Backtrace::force_capture().to_string().contains(site);
            let must_panic = at_site
                && self.panic_site.send_if_modified(|panic_site| panic_site.take().is_some());
            assert!(!must_panic, "the fuse has burnt down");
        }
        WallClock.now()
    }
}

struct PanicFixture {
    setup: Setup,
    clock: Arc<PanickingClock>,
    embedded_service: EmbeddedService,
}

impl Deref for PanicFixture {
    type Target = EmbeddedService;

    fn deref(&self) -> &EmbeddedService {
        &self.embedded_service
    }
}

impl PanicFixture {
    async fn start(setup: Setup) -> Self {
        let clock = Arc::new(PanickingClock::default());
        let embedded_service =
            EmbeddedService::start_with_clock(&setup, Arc::clone(&clock) as _).await;
        Self { setup, clock, embedded_service }
    }

    /// Makes the actor of the agent panic; what its caller is told.
    async fn trigger_panic(&self, agent: &str) -> Value {
        self.clock.panic_site.send_replace(Some(SUBMIT_SOURCE));
        let answer =
            self.client.call(agent, "message/send", &message_params("the last straw")).await.json();
        assert!(self.clock.panic_site.borrow().is_none(), "no actor looked at the clock");
        answer
    }

    async fn wait_for_restarts(&self, agent: &str, count: u32) -> Value {
        poll_until("the restart", async || {
            let status = self.client.fetch_agent_status(agent).await;
            (status["restarts"] == json!(count) && status["health"] == "alive").then_some(status)
        })
        .await
    }

    async fn stop(self) {
        self.embedded_service.stop(&self.setup).await;
    }
}

#[tokio::test]
async fn a_panicked_agent_actor_restarts_and_others_are_unaffected() {
    let agents =
        [fake_agent_config("one", "echo", ""), fake_agent_config("two", "echo", "")].concat();
    let fixture = PanicFixture::start(Setup::new(&agents)).await;
    let other_status = fixture.client.fetch_agent_status("two").await;
    assert_eq!(fixture.trigger_panic("one").await["error"]["code"], -32603);
    let status = fixture.wait_for_restarts("one", 1).await;
    assert!(status["lastFault"].as_str().unwrap().contains("the fuse has burnt down"), "{status}");
    assert_eq!(fixture.client.fetch_agent_status("two").await, other_status);
    for agent in ["one", "two"] {
        assert_eq!(
            task_outcome(&fixture.client.send(agent, "hello").await),
            completed_outcome("hello")
        );
    }
    fixture.stop().await;
}

#[tokio::test]
async fn work_of_a_panicked_actor_continues_under_the_next_one() {
    let fixture =
        PanicFixture::start(Setup::new(&gated_agent_config("one", READ_WRITE_SETTINGS))).await;
    let running_id = fixture.client.start_task("one", "ann").await;
    fixture.setup.wait_for_file_text("log", "start ann\n").await;
    let waiting_id = fixture.client.start_task("one", "bob").await;
    fixture.trigger_panic("one").await;
    fixture.wait_for_restarts("one", 1).await;
    fixture.setup.open_gate("go");
    assert_eq!(
        task_outcome(&fixture.client.wait_for_task_end("one", &running_id).await),
        completed_outcome("ann\n")
    );
    assert_eq!(
        task_outcome(&fixture.client.wait_for_task_end("one", &waiting_id).await),
        completed_outcome("bob\n")
    );
    // R-46: Work of a failed actor continues under its successor, and its answer is complete
    assert_eq!(fixture.setup.read_file("log"), "start ann\nend ann\nstart bob\nend bob\n");
    fixture.stop().await;
}

/// Tells half of its answer before the gate and half behind it.
const TWO_PART_OUTPUT_AGENT: &str = r#"
[agents.one]
command = "sh"
args = ["-c", 'seq 50000; echo begun >> HERE/log; until [ -e HERE/go ]; do sleep 0.02; done; seq 50001 100000']
sandbox.writable = ['HERE']
"#;

#[tokio::test]
async fn an_actor_panic_at_the_end_loses_no_output() {
    let fixture = PanicFixture::start(Setup::new(TWO_PART_OUTPUT_AGENT)).await;
    let id = fixture.client.start_task("one", "count").await;
    fixture.setup.wait_for_file_text("log", "begun\n").await;
    fixture.clock.panic_site.send_replace(Some(EXECUTION_SOURCE));
    fixture.setup.open_gate("go");
    let full_output: String = (1..=100_000).map(|number| format!("{number}\n")).collect();
    // R-46: Work of a failed actor continues under its successor, and its answer is complete
    assert!(
        task_outcome(&fixture.client.wait_for_task_end("one", &id).await)
            == completed_outcome(&full_output)
    );
    assert!(fixture.clock.panic_site.borrow().is_none(), "no actor looked at the clock");
    assert_eq!(fixture.setup.read_file("log"), "begun\n");
    assert_eq!(fixture.client.fetch_agent_status("one").await["restarts"], 0);
    fixture.stop().await;
}

/// What would make every actor panic is not tried for ever.
#[tokio::test]
async fn an_execution_whose_actors_panic_twice_is_interrupted() {
    let fixture = PanicFixture::start(Setup::new(&format!(
        "\nheartbeat_min = 0.1\n{}",
        gated_agent_config("one", "heartbeat = 0.1")
    )))
    .await;
    let id = fixture.client.start_task("one", "ann").await;
    fixture.setup.wait_for_file_text("log", "start ann\n").await;
    for _ in 0..2 {
        fixture.clock.panic_site.send_replace(Some(EXECUTION_SOURCE));
        poll_until("a panic", async || fixture.clock.panic_site.borrow().is_none().then_some(()))
            .await;
    }
    // R-47: An execution that makes its actors fail is not retried forever
    assert_eq!(
        task_outcome(&fixture.client.wait_for_task_end("one", &id).await),
        failed_outcome("interrupted")
    );
    assert_eq!(pids_with_env(&format!("ALGONIUS_EXECUTION_ID={id}")), Vec::<i32>::new());
    fixture.setup.open_gate("go");
    assert_eq!(task_outcome(&fixture.client.send("one", "bob").await), completed_outcome("bob\n"));
    assert_eq!(fixture.setup.read_file("log"), "start ann\nstart bob\nend bob\n");
    fixture.stop().await;
}

#[tokio::test]
async fn an_agent_that_panics_too_often_is_quarantined_alone() {
    let agents =
        [fake_agent_config("one", "echo", ""), fake_agent_config("two", "echo", "")].concat();
    let fixture = PanicFixture::start(Setup::new(&agents)).await;
    for restarts in 1..=3 {
        fixture.trigger_panic("one").await;
        fixture.wait_for_restarts("one", restarts).await;
    }
    fixture.trigger_panic("one").await;
    poll_until("the quarantine", async || {
        (fixture.client.fetch_agent_status("one").await["health"] == "quarantined").then_some(())
    })
    .await;
    let refused =
        fixture.client.expect_refusal("one", "message/send", message_params("again")).await;
    assert_eq!(refused, (-32054, "agent-quarantined".to_owned()));
    // R-49: An agent that fails too often is quarantined, without an effect on the others
    assert_eq!(
        task_outcome(&fixture.client.send("two", "hello").await),
        completed_outcome("hello")
    );
    fixture.stop().await;
}

#[tokio::test]
async fn cards_and_the_directory_name_the_public_address() {
    let server_settings = "public_url = 'https://agents.example.org/a/'\ndefault_agent = 'one'";
    let fixture = PanicFixture::start(Setup::with_server_settings(
        server_settings,
        &fake_agent_config("one", "echo", ""),
    ))
    .await;
    let url = "https://agents.example.org/a/agents/one/v1";
    let card = fixture.client.get("/.well-known/agent-card.json").await.json();
    assert_eq!((&card["url"], &card["additionalInterfaces"][0]["url"]), (&json!(url), &json!(url)));
    let list = fixture.client.get("/api/v1/agents").await.json();
    assert_eq!(list["agents"][0]["url"], url);
    let task = fixture.client.send("one", "hello").await;
    assert!(!task_id(&task).is_empty());
    fixture.stop().await;
}
