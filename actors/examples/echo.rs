//! An agent that is no program: the supervision tree with a driver and a clock of one's own, and a
//! ledger in memory. `cargo run -p algonius-actors --example echo -- "hello"` prints what it answers.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::api::Api;
use algonius_actors::api::supervision_tree::{SupervisionTree, TreeOptions};
use algonius_actors::decide::admission::keyed_hasher::KeyedHasher;
use algonius_actors::driver::report::Reporter;
use algonius_actors::driver::{AttemptLease, AttemptWork, Driver, Lease};
use algonius_actors::model::access::principal::{Caller, Right, Scope};
use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::agent::workspace::Workspace;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::event::{EventKind, TextChannel};
use algonius_actors::model::execution::request::{
    Input, Overrides, Request, RequestOrigin, Trigger,
};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::{ContextId, MessageId, PrincipalId};
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::ports::observer::NoopObserver;
use algonius_actors::root::AgentDefinition;
use algonius_actors::services::monitor_handle::MonitorHandle;
use algonius_actors::services::{
    ActiveWriters, AttemptResources, BudgetUsageCache, CredentialBreakers, InputSealer,
    RecordStores, RedactorHandle, Services,
};
use algonius_actors::testing::{MemoryLedger, agent_spec};
use algonius_redact::Redactor;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tokio::task::JoinHandle;
use uuid::Uuid;

/// Answers with what it is asked.
struct EchoDriver;

#[async_trait]
impl Driver for EchoDriver {
    async fn workspace(&self, _: &AgentSpec, _: &Request) -> Option<Workspace> {
        None // It changes nothing.
    }

    fn start(&self, work: AttemptWork, reporter: Reporter) -> Lease {
        Box::new(EchoLease(tokio::spawn(async move {
            reporter.report_start(None);
            let result = write_answer(&reporter, &work.request.input.text()).await;
            let to_failure =
                |error: LedgerError| Failure::new(Code::LedgerUnavailable, error.to_string());
            reporter.report_end(result.map_err(to_failure), None);
        })))
    }

    /// No work outlives the process, so there is no work to take over, and nothing calls this function.
    fn resume(&self, work: AttemptWork, reporter: Reporter) -> Lease {
        self.start(work, reporter)
    }
}

/// What is written is masked on its way to the ledger.
async fn write_answer(reporter: &Reporter, text: &str) -> Result<(), LedgerError> {
    let mut output_writer = reporter.open_output(TextChannel::Stdout);
    output_writer.write(text.as_bytes()).await?;
    let stored_text = output_writer.close().await?;
    reporter.record_event(EventKind::answer_artifact(stored_text)).await
}

/// Dropped, it ends at once; its reporter tells so.
struct EchoLease(JoinHandle<()>);

#[async_trait]
impl AttemptLease for EchoLease {
    fn stop(&self) {
        self.0.abort();
    }

    async fn clean_up(self: Box<Self>) {}
}

impl Drop for EchoLease {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// The system's wall clock.
struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is the clock")]
    fn now(&self) -> DateTime<Utc> {
        Utc::now()
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let text = std::env::args().nth(1).unwrap_or_else(|| "hello".to_owned());
    let answer = run_tree_with_request(&text).await?;
    writeln!(std::io::stdout(), "{answer}")?;
    Ok(())
}

/// The tree from its start to its end, with one request.
async fn run_tree_with_request(text: &str) -> Result<String, Box<dyn Error>> {
    let ledger = MemoryLedger::default();
    let services = Services {
        input_sealer: InputSealer::without_key(),
        ledger: Arc::new(ledger.clone()),
        stores: RecordStores { history: Arc::new(ledger.clone()), interactions: Arc::new(ledger) },
        clock: Arc::new(SystemClock),
        redactor: RedactorHandle::from_redactor(Arc::new(Redactor::new([
            "correct-horse-battery".to_owned()
        ]))),
        observer: Arc::new(NoopObserver),
        monitor: MonitorHandle::default(),
        keyed_hasher: KeyedHasher::new([7; 32]), // One that is kept, where the ledger is.
        attempt_resources: AttemptResources::default(),
        active_writers: ActiveWriters::default(),
        breakers: CredentialBreakers::default(),
        budget_usages: BudgetUsageCache::default(),
    };
    let definition =
        AgentDefinition { spec: Arc::new(agent_spec("echo")), driver: Arc::new(EchoDriver) };
    let tree = SupervisionTree::start(services, vec![definition], TreeOptions::default()).await?;
    let answer = send_request(tree.api(), text).await;
    tree.stop(Duration::from_secs(5)).await;
    Ok(answer?)
}

/// Asks, waits, and reads the answer as everybody may see it.
async fn send_request(api: &Api, text: &str) -> Result<String, Failure> {
    let caller = Caller {
        principal: PrincipalId(Uuid::from_u128(1)),
        name: "operator".to_owned(),
        scope: Scope { rights: vec![Right::Read, Right::Run], agents: None },
    };
    let reply = api.requests.submit(&caller, request(&caller, text)).await?;
    let record = api.reader.execution(&caller, reply.execution).await?;
    api.requests.wait_until_ended(&record, reply.progress_receiver).await?;
    let mut answer = String::new();
    for event in api.reader.events(&record, 0).await? {
        let EventKind::Artifact { pieces, .. } = event.data else { continue };
        for piece in pieces {
            answer += &api.reader.text(&record, piece.text).await?;
        }
    }
    Ok(answer)
}

fn request(caller: &Caller, text: &str) -> Request {
    Request {
        agent: agent_spec("echo").id,
        origin: RequestOrigin::for_direct_request(caller.principal, Trigger::Api),
        message_id: MessageId("message-1".to_owned()),
        context: ContextId("context-1".to_owned()),
        starts_context: true,
        idempotency_key: None,
        continued_execution: None,
        inherited_overrides: Overrides::default(),
        input: Input::from_text(text),
    }
}

#[tokio::test]
async fn the_agent_answers_with_its_redacted_input() {
    let answer = run_tree_with_request("say correct-horse-battery now").await.unwrap();
    assert_eq!(answer, "say *** now");
}
