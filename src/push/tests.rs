//! Tests with real receivers on loopback and a real store: delivered notifications, their order, and those that must
//! not be sent.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::agent::Access;
use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::execution::request::{Keys, Trigger};
use algonius_actors::model::execution::trace::Trace;
use algonius_actors::model::execution::{AttemptId, Fence, Outcome, State, StateChange};
use algonius_actors::model::id::{AgentId, ContextId, MessageId, PrincipalId};
use algonius_actors::model::push::{PushCredentials, Secret};
use algonius_actors::ports::ledger::{Accept, Claim, ClaimOrder, Settlement, WriteBatch};
use algonius_store::{Durability, Store};
use chrono::{DateTime, Utc};
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use uuid::Uuid;

use super::*;

mod stories;
mod tls;

/// Maximum duration of a test step.
const DEADLINE: Duration = Duration::from_secs(30);

fn moment() -> DateTime<Utc> {
    DateTime::from_timestamp(1_800_000_000, 0).unwrap()
}

/// Clock that advances in real time from a fixed moment.
struct Passing(tokio::time::Instant);

impl Clock for Passing {
    fn now(&self) -> DateTime<Utc> {
        moment() + self.0.elapsed()
    }
}

/// Request that a receiver got.
#[derive(Debug)]
struct Got {
    head: String,
    body: String,
}

impl Got {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| {
            let (key, value) = line.split_once(": ")?;
            key.eq_ignore_ascii_case(name).then_some(value)
        })
    }
}

/// Response of a receiver: a head, or no response at all.
#[derive(Clone)]
enum Answer {
    Head(&'static str),
    Silence,
}

const OK: Answer = Answer::Head("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
const BROKEN: Answer = Answer::Head("HTTP/1.1 500 Oops\r\ncontent-length: 4\r\n\r\noops");

/// Receiver on loopback that gives its responses in turn, then success.
struct Listener {
    address: SocketAddr,
    got: mpsc::UnboundedReceiver<Got>,
    serving: JoinHandle<()>,
}

impl Listener {
    async fn playing(answers: &[Answer]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (sender, got) = mpsc::unbounded_channel();
        let mut answers: VecDeque<_> = answers.iter().cloned().collect();
        let serving = tokio::spawn(async move {
            let mut silent = Vec::new();
            loop {
                let (mut stream, _) = listener.accept().await.unwrap();
                let Some(got) = read(&mut stream).await else { continue };
                _ = sender.send(got);
                match answers.pop_front().unwrap_or(OK) {
                    Answer::Head(head) => stream.write_all(head.as_bytes()).await.unwrap(),
                    Answer::Silence => silent.push(stream),
                }
            }
        });
        Self { address, got, serving }
    }

    fn url(&self) -> String {
        format!("http://{}/hook?key=url-canary", self.address)
    }

    async fn next(&mut self) -> Got {
        tokio::time::timeout(DEADLINE, self.got.recv()).await.unwrap().unwrap()
    }

    /// Returns the bodies of the next notifications.
    async fn bodies(&mut self, count: usize) -> Vec<String> {
        let mut bodies = Vec::new();
        for _ in 0..count {
            bodies.push(self.next().await.body);
        }
        bodies
    }

    /// Waits long enough for another notification to arrive.
    async fn is_quiet(&mut self) -> bool {
        tokio::time::timeout(Duration::from_millis(1500), self.got.recv()).await.is_err()
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.serving.abort();
    }
}

async fn read<S: tokio::io::AsyncRead + Unpin>(stream: &mut S) -> Option<Got> {
    let (mut reader, mut head) = (BufReader::new(stream), String::new());
    while !head.ends_with("\r\n\r\n") {
        if reader.read_line(&mut head).await.ok()? == 0 {
            return None;
        }
    }
    let got = Got { head, body: String::new() };
    let mut body = vec![0; got.header("content-length")?.parse().ok()?];
    reader.read_exact(&mut body).await.ok()?;
    Some(Got { body: String::from_utf8(body).unwrap(), ..got })
}

/// Store with a push worker.
struct World {
    folder: TempDir,
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    desk: PushRegistry,
    worker: PushWorker,
}

fn policy() -> AddressPolicy {
    AddressPolicy {
        allow: vec!["127.0.0.0/8".parse().unwrap()],
        insecure_http: false,
        timeout: Duration::from_millis(500),
        max_age: Duration::from_secs(3600),
        authorities: Vec::new(),
    }
}

/// Writes the version and the number of the event; 1.0 has no update for artifacts.
fn scripted() -> Render {
    Arc::new(|_, version: ProtocolVersion, event| {
        let body = format!("{} {event}", version.as_str());
        let is_told = version == ProtocolVersion::V0_3 || event != 4;
        Box::pin(async move { Ok(is_told.then(|| body.into_bytes())) })
    })
}

async fn opened(folder: &Path) -> Arc<Store> {
    Arc::new(Store::open(&folder.join("data"), Durability::Process).await.unwrap())
}

impl World {
    async fn new(policy: AddressPolicy) -> Self {
        let clock: Arc<dyn Clock> = Arc::new(Passing(tokio::time::Instant::now()));
        let folder = TempDir::new().unwrap();
        Self::over(folder, clock, policy).await
    }

    async fn over(folder: TempDir, clock: Arc<dyn Clock>, policy: AddressPolicy) -> Self {
        let store = opened(folder.path()).await;
        let desk = PushRegistry::new(store.clone(), Arc::clone(&clock), policy);
        let worker = desk.open(post(&store, &clock)).unwrap();
        Self { folder, store, clock, desk, worker }
    }

    /// Stops the worker and starts it again over the same directory.
    async fn restarted(self) -> Self {
        let Self { folder, store, clock, desk, worker } = self;
        worker.stop().await;
        store.close().await;
        drop((store, desk));
        Self::over(folder, clock, policy()).await
    }

    async fn accepted(&self) -> ExecutionId {
        let id = ExecutionId::fresh();
        let mut key = [0; 32];
        key[..16].copy_from_slice(id.0.as_bytes());
        let accept = Accept {
            id,
            agent: agent(),
            owner: PrincipalId(Uuid::nil()),
            message: MessageId("message-1".to_owned()),
            keys: Keys { message: key, named: None },
            digest: [7; 32],
            content: None,
            context: ContextId("context-1".to_owned()),
            trigger: Trigger::Api,
            trace: Trace::read("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "a=b"),
            access: Access::ReadWrite,
            input: "look at this".to_owned(),
            pieces: Vec::new(),
            params: Default::default(),
            overrides: Default::default(),
            replayable: true,
            sealed: None,
            at: moment(),
        };
        self.store.accept(accept).await.unwrap();
        id
    }

    /// Adds events after the caller's message, event 1: 2 is notified, 3 is not, 4 is the artifact and notified.
    async fn begun(&self, id: ExecutionId) {
        let moved = moved(State::Idle, State::Starting);
        let (agent, fence) = (agent(), Fence(0));
        let (limit, workspace) = (None, None);
        let order = ClaimOrder { id, agent, limit, workspace, in_turn: false, fence, moved };
        assert!(matches!(self.store.claim(order).await.unwrap(), Claim::Granted(Fence(1))));
        self.record(id, EventKind::StateChanged(self::moved(State::Starting, State::Running)))
            .await;
        let (artifact, name, description) = ("answer".to_owned(), None, None);
        let (pieces, append, last) = (Vec::new(), false, true);
        let made = EventKind::Artifact { id: artifact, name, description, pieces, append, last };
        self.record(id, made).await;
    }

    async fn record(&self, id: ExecutionId, fact: EventKind) {
        assert!(self.store.record(id, Fence(1), vec![(moment(), fact)]).await.unwrap());
    }

    /// Adds events 5 and 6, of which the last is notified; 7 follows the end.
    async fn ended(&self, id: ExecutionId) {
        let settlement = Settlement {
            id,
            fence: Fence(1),
            stamp: AttemptId::FIRST,
            outcome: Outcome::Completed,
            failure: None,
            exit_code: Some(0),
            lines: WriteBatch::of_moves([
                moved(State::Running, State::Completed),
                moved(State::Completed, State::Cleanup),
            ]),
            keeps_input: false,
            at: moment(),
        };
        assert!(self.store.settle(settlement).await.unwrap());
        self.record(id, EventKind::StateChanged(moved(State::Cleanup, State::Idle))).await;
    }

    async fn ran(&self) -> ExecutionId {
        let id = self.accepted().await;
        self.begun(id).await;
        self.ended(id).await;
        id
    }

    /// Waits until no target is open.
    async fn settled(&self) {
        let all_closed = async {
            while self
                .store
                .due(self.clock.now(), chrono::TimeDelta::zero(), 1)
                .await
                .unwrap()
                .any_open
            {
                // The outbox does not signal when it has nothing left.
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(DEADLINE, all_closed).await.unwrap();
    }
}

fn post(store: &Arc<Store>, clock: &Arc<dyn Clock>) -> PushContext {
    let (ledger, outbox) = (store.clone() as _, store.clone() as _);
    PushContext {
        ledger,
        outbox,
        clock: Arc::clone(clock),
        render: scripted(),
        given_up: Arc::new(|_| {}),
    }
}

fn agent() -> AgentId {
    AgentId::new("reviewer").unwrap()
}

fn moved(from: State, to: State) -> StateChange {
    StateChange::new((from, to), AttemptId::FIRST, moment(), "because".to_owned())
}

/// Returns a target of the execution at an address.
fn target(execution: ExecutionId, version: ProtocolVersion, url: &str) -> PushTarget {
    PushTarget {
        id: "first".to_owned(),
        execution,
        owner: PrincipalId(Uuid::nil()),
        version,
        registration: Uuid::new_v4(),
        url: Secret(url.to_owned()),
        token: Some(Secret("token-canary".to_owned())),
        authentication: Some(PushCredentials {
            scheme: "Bearer".to_owned(),
            credentials: Some(Secret("credentials-canary".to_owned())),
        }),
        created_at: moment(),
    }
}
