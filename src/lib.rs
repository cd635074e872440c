//! algonius-supervisor: serves any command-line AI agent as a supervised, durable A2A agent.
//!
//! This file is the composition root: the only place where a port meets its implementation.

mod admit;
pub mod cli;
pub mod clock;
pub mod config;
pub mod drive;
pub mod meter;
pub mod push;
pub mod serve;
mod settle;
mod starting;
pub mod store;
mod telemetry;
mod template;
mod token;
pub mod warden;
pub mod wire;

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::decide::key::Keyring;
use algonius_actors::decide::redact::Redactor;
use algonius_actors::door::Gateway;
use algonius_actors::kit::Kit;
use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::State;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::program::OnLoss;
use algonius_actors::model::record::Filter;
use algonius_actors::model::rungs::Rungs;
use algonius_actors::monitor::Probe;
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::ledger::Ledger;
use algonius_actors::ports::meter::Meter;
use algonius_actors::root::Seat;
use algonius_actors::tree::Tree;
use algonius_actors::turns::Turns;
use axum_server::Handle;
use chrono::{DateTime, Utc};
use tokio::task::{JoinHandle, spawn_blocking};
use uuid::Uuid;

pub use starting::StartError;

use clock::WallClock;
use config::{Lockout, Server, Settings};
use drive::process::{ProcessDriver, Site};
use meter::MachineMeter;
use push::{Desk, Policy, Post, Postman, Render};
use serve::auth::Guard;
use serve::card::GrpcUrls;
use serve::exposure::Rates;
use serve::host::Hosts;
use serve::listen::Bounds;
use serve::lockout::Lockouts;
use serve::{App, Shared, gate, listen, router};
use store::Store;
use warden::wardens::{Left, Origin, Terms, Wardens};

/// A service that runs.
pub struct Running {
    url: String,
    address: SocketAddr,
    tree: Tree,
    postman: Option<Postman>,
    store: Arc<Store>,
    wardens: Arc<Wardens>,
    handle: Handle<SocketAddr>,
    served: JoinHandle<io::Result<()>>,
}

/// What this machine offers to hold programs with. May take some time.
#[must_use]
pub fn rungs() -> Rungs {
    warden::rungs::look(std::env::var_os("PATH").as_deref())
}

/// Starts the service of this very program on this machine.
///
/// # Errors
/// When any of it does not work; nothing runs then.
pub async fn start(settings: Settings) -> Result<Running, StartError> {
    start_with(settings, Arc::new(WallClock), Origin::default()).await
}

/// Starts the service with another clock, or in another program; `origin` says how a process becomes
/// a warden.
///
/// # Errors
/// When any of it does not work; nothing runs then.
pub async fn start_with(
    settings: Settings,
    clock: Arc<dyn Clock>,
    origin: Origin,
) -> Result<Running, StartError> {
    let meter = Arc::new(MachineMeter::new(settings.server.data_dir.clone()));
    start_on(settings, clock, meter, origin).await
}

/// Starts the service: takes the address, opens the ledger, takes up or sweeps what an earlier life
/// left running, recovers, starts the tree, opens the door.
///
/// # Errors
/// When any of it does not work; nothing runs then.
pub async fn start_on(
    settings: Settings,
    clock: Arc<dyn Clock>,
    meter: Arc<dyn Meter>,
    origin: Origin,
) -> Result<Running, StartError> {
    let Settings { server, mut agents, default_agent, tokens, mut secrets, .. } = settings;
    let Settings { lockout, push, pressure, redaction, .. } = settings;
    let probe = pressure.map(|it| Probe { meter, spec: it.spec, interval: it.interval });
    let ground = Ground::lay(&server, &mut agents, origin).await?;
    let (guard, own) =
        admit::keys(&*ground.store, &server.token_file, &agents, tokens, &*clock).await?;
    secrets.extend(own);
    let kit = ground.kit(Arc::clone(&clock), Redactor::new(secrets).with(redaction));
    end_what_is_over(&*kit.ledger, &agents, &ground.wardens).await?;
    let seats = ground.seats(agents, &server);
    let agents: Specs =
        seats.iter().map(|seat| (seat.spec.id.clone(), Arc::clone(&seat.spec))).collect();
    let tree = grow(kit, seats, probe, &ground.wardens).await?;
    let (store, gateway) = (&ground.store, tree.gateway());
    let desk = push.map(|push| Desk::new(Arc::clone(store) as _, Arc::clone(&clock), policy(push)));
    let postman = desk.clone().map(|desk| desk.open(post(store, Arc::clone(&clock), gateway)));
    let postman = postman.transpose().map_err(|error| StartError::Push { cause: error.message })?;
    let callers = Callers { guard, lockout, default_agent, agents, desk, begun: clock.now() };
    Ok(ground.open(server, callers, tree, postman))
}

/// What everything else stands on.
struct Ground {
    listener: TcpListener,
    address: SocketAddr,
    machine: Rungs,
    store: Arc<Store>,
    wardens: Arc<Wardens>,
}

/// The agents, as the door knows them.
type Specs = BTreeMap<AgentId, Arc<AgentSpec>>;

/// What the door knows of those who come.
struct Callers {
    guard: Guard,
    lockout: Lockout,
    default_agent: Option<AgentId>,
    agents: Specs,
    desk: Option<Desk>,
    begun: DateTime<Utc>,
}

impl Ground {
    /// Takes the address, looks at the machine, opens the store, and finds or starts the wardens.
    async fn lay(
        server: &Server,
        agents: &mut [config::Agent],
        origin: Origin,
    ) -> Result<Self, StartError> {
        let listener = TcpListener::bind(server.listen)
            .map_err(|source| StartError::Listen { address: server.listen, source })?;
        let address = listener.local_addr().unwrap_or(server.listen);
        admit::guarded(agents, address)?;
        let machine = machine().await?;
        agents.iter_mut().try_for_each(|agent| settle::sandbox(agent, &machine))?;
        let store = Arc::new(Store::open(&server.data_dir, durability(server)).await?);
        let wardens = wardens(server, agents, store.instance().id, origin).await?;
        Ok(Self { listener, address, machine, store, wardens })
    }

    fn kit(&self, clock: Arc<dyn Clock>, redactor: Redactor) -> Kit {
        Kit {
            ledger: Arc::clone(&self.store) as _,
            clock,
            redactor: Arc::new(redactor),
            keyring: Keyring::new(self.store.instance().key),
            turns: Turns::default(),
        }
    }

    /// Each agent and what does its work.
    fn seats(&self, agents: Vec<config::Agent>, server: &Server) -> Vec<Seat> {
        let site = site(server, &self.machine);
        let driver =
            |program| ProcessDriver::new(program, site.clone(), Arc::clone(&self.wardens) as _);
        let seat = |config::Agent { spec, program }| Seat {
            spec: Arc::new(spec),
            driver: Arc::new(driver(program)),
        };
        agents.into_iter().map(seat).collect()
    }

    /// Opens the door.
    fn open(
        self,
        server: Server,
        callers: Callers,
        tree: Tree,
        postman: Option<Postman>,
    ) -> Running {
        let Self { listener, address, machine, store, wardens } = self;
        let url = server.public_url.clone().unwrap_or_else(|| format!("http://{address}"));
        let (bounds, handle) = (bounds(&server), Handle::new());
        let gateway = tree.gateway().clone();
        let shared = shared(server, callers, (&url, address), (machine, living(&wardens)), gateway);
        let app = router::router(App::new(shared));
        let served = tokio::spawn(listen::serve(listener, app, bounds, handle.clone()));
        Running { url, address, tree, postman, store, wardens, handle, served }
    }
}

/// What all requests share.
fn shared(
    server: Server,
    callers: Callers,
    (url, address): (&str, SocketAddr),
    (rungs, wardens): (Rungs, Living),
    gateway: Gateway,
) -> Shared {
    let (entry, Callers { guard, lockout, default_agent, agents, desk, begun }) =
        (server.entry, callers);
    Shared {
        gateway,
        guard,
        lockouts: Lockouts::new(lockout.spec, lockout.exempt),
        rates: Rates::default(),
        hosts: Hosts::new(address, url, entry.allowed_hosts).with_origins(entry.allowed_origins),
        proxies: entry.trusted_proxies,
        aliases: gate::aliases(agents.values().map(|spec| &**spec)),
        grpc: GrpcUrls::new(entry.grpc_url_0_3, entry.grpc_url_1_0, url),
        push: desk,
        agents,
        default_agent,
        rungs,
        wardens,
        begun,
        public_url: url.to_owned(),
        public_card: server.public_card,
        max_body: server.max_body_bytes,
        body_timeout: server.body_timeout,
    }
}

impl Running {
    /// Where callers reach it.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Where it listens.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops: refuses new work, lets what runs finish until the deadline, answers who waits,
    /// closes the ledger.
    pub async fn stop(self, deadline: Duration) {
        self.tree.stop(deadline).await;
        self.handle.graceful_shutdown(Some(Duration::from_secs(2)));
        if let Ok(Err(error)) = self.served.await {
            tracing::error!(%error, "the listener had failed");
        }
        if let Some(postman) = self.postman {
            postman.stop().await;
        }
        self.wardens.end().await;
        self.store.close().await;
    }

    /// Ends at once, for a new binary that is started next: nothing is waited for, what runs is left
    /// to its wardens, and the ledger is closed. The process must end right afterwards without taking
    /// anything down.
    pub async fn hand_over(self) -> Left {
        self.tree.hold().await;
        let left = self.wardens.leave().await;
        self.handle.shutdown();
        if let Some(postman) = self.postman {
            // What it was telling is told again.
            _ = tokio::time::timeout(Duration::from_secs(1), postman.stop()).await;
        }
        self.store.close().await;
        left
    }
}

/// Ends what the wardens hold and no agent will take up, before anything begins that may work in the
/// same folder.
async fn end_what_is_over(
    ledger: &dyn Ledger,
    agents: &[config::Agent],
    wardens: &Wardens,
) -> Result<(), StartError> {
    let reattaches = |id: &AgentId| {
        let mut found = agents.iter().filter(|agent| agent.spec.id == *id);
        found.any(|agent| agent.program.on_loss == OnLoss::Reattach)
    };
    let unfinished = ledger.executions(Filter { unfinished: true, ..Filter::default() }).await?;
    let goes_on = unfinished.into_iter().filter(|record| {
        matches!(record.state, State::Starting | State::Running) && reattaches(&record.agent)
    });
    wardens.end_all_but(&goes_on.map(|record| (record.id, record.stamp)).collect()).await;
    Ok(())
}

/// Starts the tree, which takes up what the wardens hold; what it does not is ended.
async fn grow(
    kit: Kit,
    seats: Vec<Seat>,
    probe: Option<Probe>,
    wardens: &Wardens,
) -> Result<Tree, StartError> {
    let tree = Tree::start(kit, seats, probe).await;
    let tree = tree.map_err(|error| StartError::Tree { cause: error.to_string() })?;
    wardens.end_the_unclaimed().await;
    Ok(tree)
}

async fn wardens(
    server: &Server,
    agents: &mut [config::Agent],
    instance: Uuid,
    origin: Origin,
) -> Result<Arc<Wardens>, StartError> {
    let groups = settle::limits(agents, instance).await?;
    let (runtime_dir, patience) = (server.runtime_dir.clone(), server.reattach_grace);
    let started = Wardens::start(Terms { origin, runtime_dir, instance, patience, groups }).await;
    started.map_err(|source| StartError::Warden { source })
}

async fn machine() -> Result<Rungs, StartError> {
    let looked = spawn_blocking(rungs).await;
    looked.map_err(|error| StartError::Warden { source: io::Error::other(error) })
}

/// Tells which wardens live.
type Living = Arc<dyn Fn() -> Vec<u32> + Send + Sync>;

fn living(wardens: &Arc<Wardens>) -> Living {
    let wardens = Arc::clone(wardens);
    Arc::new(move || wardens.pids())
}

/// Where programs find what they need, and what holds them.
fn site(server: &Server, machine: &Rungs) -> Site {
    let path = std::env::var_os("PATH");
    let bubblewrap = || warden::rungs::bubblewrap(path.as_deref());
    Site {
        runtime_dir: server.runtime_dir.clone(),
        data_dir: server.data_dir.clone(),
        bubblewrap: machine.means().bubblewrap.then(bubblewrap).flatten(),
    }
}

const fn bounds(server: &Server) -> Bounds {
    let Server { max_connections, header_timeout, write_timeout, .. } = server;
    Bounds { connections: *max_connections, head: *header_timeout, unread: *write_timeout }
}

fn durability(server: &Server) -> store::Durability {
    match server.durability {
        config::Durability::Process => store::Durability::Process,
        config::Durability::Power => store::Durability::Power,
    }
}

fn policy(push: config::Push) -> Policy {
    let config::Push { allow, insecure_http, timeout, max_age } = push;
    Policy { allow, insecure_http, timeout, max_age }
}

/// What the postman works with: the ledger as it is, and the words of the transports.
fn post(store: &Arc<Store>, clock: Arc<dyn Clock>, gateway: &Gateway) -> Post {
    let (ledger, gateway): (Arc<dyn Ledger>, _) = (Arc::clone(store) as _, gateway.clone());
    let reader = Arc::clone(&ledger);
    let render: Render = Arc::new(move |execution, version, event| {
        let (ledger, gateway) = (Arc::clone(&reader), gateway.clone());
        Box::pin(async move {
            match ledger.execution(execution).await {
                Ok(Some(record)) => serve::push::notice(&gateway, &record, version, event).await,
                Ok(None) => Ok(None),
                Err(error) => Err(Failure::new(Code::LedgerUnavailable, error.to_string())),
            }
        })
    });
    Post { ledger, outbox: Arc::clone(store) as _, clock, render }
}
