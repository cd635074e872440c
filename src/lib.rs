//! algonius-supervisor: serves any command-line AI agent as a supervised, durable A2A agent.
//!
//! This file is the composition root: the only place where a port meets its implementation.

mod admit;
pub mod cli;
pub mod clock;
pub mod config;
pub mod drive;
mod ground;
pub mod meter;
pub mod push;
pub mod serve;
mod settle;
mod starting;
pub mod store;
mod telemetry;
mod telling;
mod template;
pub mod tls;
mod token;
pub mod warden;
pub mod wire;
mod wording;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::decide::redact::Redactor;
use algonius_actors::kit::Kit;
use algonius_actors::model::execution::State;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::program::OnLoss;
use algonius_actors::model::record::Filter;
use algonius_actors::model::rungs::Rungs;
use algonius_actors::monitor::Probe;
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::ledger::Ledger;
use algonius_actors::ports::meter::Meter;
use algonius_actors::root::Seat;
use algonius_actors::scheduler::{Agenda, Configured, NAP};
use algonius_actors::tree::Tree;
use tokio::task::JoinHandle;

pub use starting::StartError;

use clock::WallClock;
use config::{Scheduling, Settings};
use ground::{Callers, Ground, Specs};
use meter::MachineMeter;
use push::{Desk, Postman};
use serve::listen::Latch;
use store::Store;
use telling::{policy, post};
use warden::wardens::{Left, Origin, Wardens};
use wording::Words;

/// A service that runs.
pub struct Running {
    url: String,
    scheme: &'static str,
    address: SocketAddr,
    tree: Tree,
    postman: Option<Postman>,
    store: Arc<Store>,
    wardens: Arc<Wardens>,
    handle: Latch,
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
    let Settings { lockout, push, pressure, redaction, scheduling, .. } = settings;
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
    let times = (scheduling.timezone.clone(), scheduling.seconds);
    let agenda = agenda(&ground.store, scheduling);
    let tree = grow(kit, (seats, agenda), probe, &ground.wardens).await?;
    let (store, gateway) = (&ground.store, tree.gateway());
    let desk = push.map(|push| Desk::new(Arc::clone(store) as _, Arc::clone(&clock), policy(push)));
    let postman = desk.clone().map(|desk| desk.open(post(store, Arc::clone(&clock), gateway)));
    let postman = postman.transpose().map_err(|error| StartError::Push { cause: error.message })?;
    let begun = clock.now();
    let callers = Callers { guard, lockout, default_agent, agents, desk, begun, times };
    Ok(ground.open(server, callers, tree, postman))
}

impl Running {
    /// Where callers reach it.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// How it is spoken to where it listens: `http` or `https`.
    #[must_use]
    pub const fn scheme(&self) -> &'static str {
        self.scheme
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
    (seats, agenda): (Vec<Seat>, Agenda),
    probe: Option<Probe>,
    wardens: &Wardens,
) -> Result<Tree, StartError> {
    let tree = Tree::start(kit, seats, probe, Some(agenda)).await;
    let tree = tree.map_err(|error| StartError::Tree { cause: error.to_string() })?;
    wardens.end_the_unclaimed().await;
    Ok(tree)
}

/// What there is to do at set times.
fn agenda(store: &Arc<Store>, scheduling: Scheduling) -> Agenda {
    let configured = scheduling.schedules.into_iter();
    let configured = configured.map(|it| Configured { spec: it.spec, owner: it.owner });
    Agenda {
        timebook: Arc::clone(store) as _,
        wording: Arc::new(Words),
        configured: configured.collect(),
        history: scheduling.history,
        nap: NAP,
    }
}
