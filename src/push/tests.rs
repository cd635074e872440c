//! Tests with real receivers on loopback and a real store: delivered notifications, their order, and those that must
//! not be sent.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::agent::Access;
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::execution::request::{DedupKeys, Trigger};
use algonius_actors::model::execution::trace::TraceContext;
use algonius_actors::model::execution::{AttemptId, ExecutionState, Fence, Outcome, StateChange};
use algonius_actors::model::id::{AgentId, ContextId, MessageId, PrincipalId};
use algonius_actors::model::push::{PushCredentials, Secret};
use algonius_actors::ports::ledger::{
    AcceptCommand, ClaimCommand, ClaimResult, Settlement, WriteBatch,
};
use algonius_store::{Durability, Store};
use chrono::{DateTime, Utc};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::*;

mod delivery;
mod tls;

/// Maximum duration of a test step.
const STEP_TIMEOUT: Duration = Duration::from_secs(30);

fn start_time() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

/// Clock that advances in real time from a fixed moment.
struct RunningClock(tokio::time::Instant);

impl Clock for RunningClock {
    fn now(&self) -> DateTime<Utc> {
        start_time() + self.0.elapsed()
    }
}

/// Request that a receiver got.
#[derive(Debug)]
struct ReceivedRequest {
    head: String,
    body: String,
}

impl ReceivedRequest {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// Response of a receiver: a head, or no response at all.
#[derive(Clone)]
enum ReceiverResponse {
    Head(&'static str),
    Silence,
}

const OK: ReceiverResponse = ReceiverResponse::Head("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
const SERVER_ERROR: ReceiverResponse =
    ReceiverResponse::Head("HTTP/1.1 500 Oops\r\ncontent-length: 4\r\n\r\noops");

/// Receiver on loopback that gives its responses in turn, then success.
struct TestReceiver {
    address: SocketAddr,
    requests: mpsc::UnboundedReceiver<ReceivedRequest>,
    server_handle: JoinHandle<()>,
}

impl TestReceiver {
    async fn with_responses(responses: &[ReceiverResponse]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, requests) = mpsc::unbounded_channel();
        let mut responses: VecDeque<_> = responses.iter().cloned().collect();
        let server_handle = tokio::spawn(async move {
            let mut silent_streams = Vec::new();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let Some(request) = read_request(&mut stream).await else { continue };
                _ = sender.send(request);
                match responses.pop_front().unwrap_or(OK) {
                    ReceiverResponse::Head(head) => {
                        stream.write_all(head.as_bytes()).await.unwrap();
                    }
                    ReceiverResponse::Silence => silent_streams.push(stream),
                }
            }
        });
        Self { address, requests, server_handle }
    }

    fn url(&self) -> String {
        format!("http://{}/hook?key=url-canary", self.address)
    }

    async fn next_request(&mut self) -> ReceivedRequest {
        tokio::time::timeout(STEP_TIMEOUT, self.requests.recv()).await.unwrap().unwrap()
    }

    /// Returns the bodies of the next notifications.
    async fn next_bodies(&mut self, count: usize) -> Vec<String> {
        let mut bodies = Vec::new();
        for _ in 0..count {
            bodies.push(self.next_request().await.body);
        }
        bodies
    }

    /// Waits long enough for another notification to arrive.
    async fn receives_nothing_more(&mut self) -> bool {
        tokio::time::timeout(Duration::from_millis(1500), self.requests.recv()).await.is_err()
    }
}

impl Drop for TestReceiver {
    fn drop(&mut self) {
        self.server_handle.abort();
    }
}

async fn read_request<S: tokio::io::AsyncRead + Unpin>(stream: &mut S) -> Option<ReceivedRequest> {
    let (mut reader, mut head) = (BufReader::new(stream), String::new());
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let request_head = ReceivedRequest { head, body: String::new() };
    let mut body = vec![0; request_head.header("content-length")?.parse().ok()?];
    reader.read_exact(&mut body).await.ok()?;
    Some(ReceivedRequest { body: String::from_utf8(body).unwrap(), ..request_head })
}

/// Store with a push worker.
struct PushHarness {
    folder: TempDir,
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    registry: PushRegistry,
    worker: PushWorker,
}

fn policy() -> DeliveryPolicy {
    DeliveryPolicy {
        allowed_networks: vec!["127.0.0.0/8".parse().unwrap()],
        allows_http: false,
        timeout: Duration::from_millis(500),
        max_retry_duration: Duration::from_secs(3600),
        certificate_authorities: Vec::new(),
    }
}

/// Writes the version and the number of the event; 1.0 has no update for artifacts.
fn version_and_number_renderer() -> NotificationBodyFn {
    Arc::new(|_, version: ProtocolVersion, event| {
        let body = format!("{} {event}", version.as_str());
        let is_sent = version == ProtocolVersion::V0_3 || event != 4;
        Box::pin(async move { Ok(is_sent.then(|| body.into_bytes())) })
    })
}

async fn open_store(folder: &Path) -> Arc<Store> {
    Arc::new(Store::open(&folder.join("data"), Durability::ProcessCrash).await.unwrap())
}

impl PushHarness {
    async fn new(policy: DeliveryPolicy) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(RunningClock(tokio::time::Instant::now()));
        let folder = TempDir::new().unwrap();
        Self::new_in(folder, clock, policy).await
    }

    async fn new_in(folder: TempDir, clock: Arc<dyn Clock>, policy: DeliveryPolicy) -> Self {
        let store = open_store(folder.path()).await;
        let registry = PushRegistry::new(store.clone(), Arc::clone(&clock), policy);
        let worker = registry.start_worker(push_context(&store, &clock)).unwrap();
        Self { folder, store, clock, registry, worker }
    }

    /// Stops the worker and starts it again over the same directory.
    async fn restart(self) -> Self {
        let Self { folder, store, clock, registry, worker } = self;
        worker.stop().await;
        store.close().await;
        drop((store, registry));
        Self::new_in(folder, clock, policy()).await
    }

    async fn accept_execution(&self) -> ExecutionId {
        let id = ExecutionId::generate();
        let mut key = [0; 32];
        key[..16].copy_from_slice(id.0.as_bytes());
        let accept = AcceptCommand {
            id,
            agent: agent_id(),
            owner: PrincipalId(Uuid::nil()),
            message_id: MessageId("message-1".to_owned()),
            keys: DedupKeys { message_key: key, idempotency_key: None },
            content_digest: [7; 32],
            coalescing_key_and_since: None,
            context: ContextId("context-1".to_owned()),
            trigger: Trigger::Api,
            trace: TraceContext::parse(
                "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
                "a=b",
            ),
            access: Access::ReadWrite,
            input_text: "look at this".to_owned(),
            content: Default::default(),
            params: Default::default(),
            overrides: Default::default(),
            stores_raw_input: true,
            sealed_input: None,
            at: start_time(),
        };
        self.store.accept(accept).await.unwrap();
        id
    }

    /// Adds events after the caller's message, event 1: 2 is notified, 3 is not, 4 is the artifact and notified.
    async fn start_with_artifact(&self, id: ExecutionId) {
        let starting_change = state_change(ExecutionState::Idle, ExecutionState::Starting);
        let (agent, fence) = (agent_id(), Fence(0));
        let (max_running, workspace) = (None, None);
        let claim = ClaimCommand {
            id,
            agent,
            max_running,
            workspace,
            runs_turns_in_order: false,
            fence,
            state_change: starting_change,
        };
        assert!(matches!(self.store.claim(claim).await.unwrap(), ClaimResult::Granted(Fence(1))));
        self.record(
            id,
            EventKind::StateChanged(self::state_change(
                ExecutionState::Starting,
                ExecutionState::Running,
            )),
        )
        .await;
        let (artifact, name, description) = ("answer".to_owned(), None, None);
        let (pieces, append, last) = (Vec::new(), false, true);
        let artifact_event =
            EventKind::Artifact { id: artifact, name, description, pieces, append, last };
        self.record(id, artifact_event).await;
    }

    async fn record(&self, id: ExecutionId, event: EventKind) {
        assert!(self.store.append_events(id, Fence(1), vec![(start_time(), event)]).await.unwrap());
    }

    /// Adds events 5 and 6, of which the last is notified; 7 follows the end.
    async fn end_execution(&self, id: ExecutionId) {
        let settlement = Settlement {
            id,
            fence: Fence(1),
            attempt_id: AttemptId::FIRST,
            outcome: Outcome::Completed,
            failure: None,
            exit_code: Some(0),
            batch: WriteBatch::from_transitions([
                state_change(ExecutionState::Running, ExecutionState::Completed),
                state_change(ExecutionState::Completed, ExecutionState::Cleanup),
            ]),
            keeps_sealed_input: false,
            at: start_time(),
        };
        assert!(self.store.settle(settlement).await.unwrap());
        self.record(
            id,
            EventKind::StateChanged(state_change(ExecutionState::Cleanup, ExecutionState::Idle)),
        )
        .await;
    }

    async fn run_execution(&self) -> ExecutionId {
        let id = self.accept_execution().await;
        self.start_with_artifact(id).await;
        self.end_execution(id).await;
        id
    }

    /// Waits until no target is open.
    async fn wait_until_no_open_target(&self) {
        let all_closed = async {
            while self
                .store
                .due_targets(self.clock.now(), chrono::TimeDelta::zero(), 1)
                .await
                .unwrap()
                .has_open_targets
            {
                // The worker does not signal when it has nothing left.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(STEP_TIMEOUT, all_closed).await.unwrap();
    }
}

fn push_context(store: &Arc<Store>, clock: &Arc<dyn Clock>) -> PushContext {
    let (ledger, target_store) = (store.clone() as _, store.clone() as _);
    PushContext {
        ledger,
        target_store,
        clock: Arc::clone(clock),
        render_body: version_and_number_renderer(),
        on_target_abandoned: Arc::new(|_| {}),
    }
}

fn agent_id() -> AgentId {
    AgentId::new("reviewer").unwrap()
}

fn state_change(from: ExecutionState, to: ExecutionState) -> StateChange {
    StateChange::new((from, to), AttemptId::FIRST, start_time(), "because".to_owned())
}

/// Returns a target of the execution at an address.
fn target(execution: ExecutionId, version: ProtocolVersion, url: &str) -> PushTarget {
    PushTarget {
        id: "first".to_owned(),
        execution,
        owner: PrincipalId(Uuid::nil()),
        version,
        registration_id: Uuid::new_v4(),
        url: Secret(url.to_owned()),
        token: Some(Secret("token-canary".to_owned())),
        authentication: Some(PushCredentials {
            scheme: "Bearer".to_owned(),
            credentials: Some(Secret("credentials-canary".to_owned())),
        }),
        created_at: start_time(),
    }
}
