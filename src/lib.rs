//! algonius-supervisor: serves any command-line AI agent as a supervised, durable A2A agent.
//!
//! This file is the composition root: the only place where a port meets its implementation.

mod admit;
pub mod alert;
pub mod cli;
pub mod clock;
pub mod config;
pub mod drive;
mod ground;
pub mod meter;
pub mod observe;
pub mod push;
pub mod serve;
mod settle;
mod starting;
pub mod store;
mod telemetry;
mod telling;
mod template;
mod token;
pub mod warden;
mod watching;
pub mod wire;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::decide::redact::Redactor;
use algonius_actors::kit::Kit;
use algonius_actors::model::alert::AlertSpec;
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
use algonius_actors::tree::Tree;
use tokio::task::JoinHandle;

pub use starting::StartError;

use clock::WallClock;
use config::Settings;
use ground::{Callers, Ground, Specs};
use meter::MachineMeter;
use observe::Observatory;
use push::{Desk, Postman};
use serve::listen::Latch;
use store::Store;
use telling::{policy, post};
use warden::wardens::{Left, Origin, Wardens};
use watching::{Onlookers, Watching};

/// A service that runs.
pub struct Running {
    url: String,
    address: SocketAddr,
    tree: Tree,
    postman: Option<Postman>,
    onlookers: Onlookers,
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
    let Settings { lockout, push, pressure, redaction, metrics, alerts, telemetry, .. } = settings;
    let probe = pressure.map(|it| Probe { meter, spec: it.spec, interval: it.interval });
    let ground = Ground::lay(&server, &mut agents, origin).await?;
    let (guard, own) =
        admit::keys(&*ground.store, &server.token_file, &agents, tokens, &*clock).await?;
    secrets.extend(own);
    let watching = Watching::prepare(alerts, push.as_ref(), telemetry)?;
    let observatory = watching.observatory.clone();
    let redactor = Redactor::new(secrets).with(redaction);
    let kit = ground.kit(Arc::clone(&clock), redactor, &observatory);
    end_what_is_over(&*kit.ledger, &agents, &ground.wardens).await?;
    let seats = ground.seats(agents, &server);
    let agents: Specs =
        seats.iter().map(|seat| (seat.spec.id.clone(), Arc::clone(&seat.spec))).collect();
    let (spec, onlookers) = (watching.spec, watching.begin(&ground.wardens)?);
    let tree = grow(kit, seats, (probe, spec), &ground.wardens).await?;
    let (store, gateway) = (&ground.store, tree.gateway());
    let desk = push.map(|push| Desk::new(Arc::clone(store) as _, Arc::clone(&clock), policy(push)));
    let postman = desk.clone().map(|desk| desk.open(post(store, Arc::clone(&clock), gateway)));
    let postman = postman.transpose().map_err(|error| StartError::Push { cause: error.message })?;
    let callers = Callers {
        guard,
        lockout,
        default_agent,
        agents,
        desk,
        begun: clock.now(),
        observatory,
        metrics,
    };
    Ok(ground.open(server, callers, tree, (postman, onlookers)))
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

    /// Who looks on.
    #[must_use]
    pub const fn observatory(&self) -> &Observatory {
        &self.onlookers.observatory
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
        self.onlookers.stop().await;
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
    watch: (Option<Probe>, AlertSpec),
    wardens: &Wardens,
) -> Result<Tree, StartError> {
    let tree = Tree::start(kit, seats, watch).await;
    let tree = tree.map_err(|error| StartError::Tree { cause: error.to_string() })?;
    wardens.end_the_unclaimed().await;
    Ok(tree)
}
