//! algonius-supervisor: serves any command-line AI agent as a supervised, durable A2A agent.
//!
//! This file is the composition root: the only place where a port meets its implementation.

mod admit;
pub mod cli;
pub mod clock;
pub mod config;
pub mod drive;
mod front;
mod ground;
pub mod meter;
pub mod push;
mod reload;
pub mod serve;
mod settle;
mod starting;
pub mod store;
mod telemetry;
mod telling;
mod template;
mod token;
pub mod warden;
pub mod wire;
mod wording;
mod workshop;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

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
use algonius_actors::retention::Retention;
use algonius_actors::root::Seat;
use algonius_actors::scheduler::{Agenda, NAP};
use algonius_actors::tree::{Plan, Tree};
use tokio::task::JoinHandle;

pub use starting::StartError;

use admit::Keys;
use clock::WallClock;
use config::{Scheduling, Settings, Source};
use front::{Fixed, Front};
use ground::Ground;
use meter::MachineMeter;
use push::Postman;
use reload::{Masks, Reloader, Steward, World};
use serve::listen::{self, Latch};
use store::Store;
use telling::tell;
use warden::wardens::{Left, Origin, Wardens};
use wording::Words;

/// A service that runs.
pub struct Running {
    url: String,
    address: SocketAddr,
    tree: Tree,
    postman: Option<Postman>,
    store: Arc<Store>,
    wardens: Arc<Wardens>,
    handle: Latch,
    served: JoinHandle<io::Result<()>>,
    steward: Steward,
    reloader: JoinHandle<()>,
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

/// Starts the service of this very program on this machine, with settings that were read from a source
/// whose changes it takes up.
///
/// # Errors
/// When any of it does not work; nothing runs then.
pub async fn start_as(source: Source, settings: Settings) -> Result<Running, StartError> {
    let meter = Arc::new(MachineMeter::new(settings.server.data_dir.clone()));
    start_from(source, settings, (Arc::new(WallClock), meter), Origin::default()).await
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

/// Starts the service on a machine with these gauges. Its configuration does not change.
///
/// # Errors
/// When any of it does not work; nothing runs then.
pub async fn start_on(
    settings: Settings,
    clock: Arc<dyn Clock>,
    meter: Arc<dyn Meter>,
    origin: Origin,
) -> Result<Running, StartError> {
    start_from(Source::given(settings.clone()), settings, (clock, meter), origin).await
}

/// Starts the service with settings that were read from a source, whose changes it takes up: takes the
/// address, opens the ledger, takes up or sweeps what an earlier life left running, recovers, starts
/// the tree, opens the door.
///
/// # Errors
/// When any of it does not work; nothing runs then.
pub async fn start_from(
    source: Source,
    settings: Settings,
    (clock, meter): (Arc<dyn Clock>, Arc<dyn Meter>),
    origin: Origin,
) -> Result<Running, StartError> {
    let mut agents = settings.agents.clone();
    let ground = Ground::lay(&settings.server, &mut agents, origin).await?;
    end_what_is_over(&*ground.store, &agents, ground.workshop.wardens()).await?;
    let seats: Vec<_> = agents.into_iter().map(|agent| ground.workshop.seat(agent)).collect();
    let specs = reload::specs(seats.iter().map(|seat| &seat.spec));
    let keys = Keys::seed(&*ground.store, &settings, &specs, &*clock).await?;
    let secrets = settings.secrets.iter().chain([&keys.own]).cloned();
    let masks = Masks::new(secrets, settings.redaction.clone());
    let kit = ground.kit(Arc::clone(&clock), masks.masking());
    let plan = plan(&settings, meter, &ground.store);
    let tree = grow(kit, seats, plan, ground.workshop.wardens()).await?;
    let told = tell(&settings, &ground.store, &clock, tree.gateway())?;
    let bounds = ground::bounds(&settings.server);
    let Ground { listener, address, store, workshop } = ground;
    let (desk, postman) = told;
    let (steward, orders) = reload::desk(&store);
    let fixed = Fixed {
        address,
        gateway: tree.gateway().clone(),
        desk,
        rungs: workshop.machine().clone(),
        wardens: Arc::clone(workshop.wardens()),
        admin: Arc::new(steward.clone()),
    };
    let front = Front::new(fixed, &settings.lockout);
    let (paths, handle) = (front.paths().latest(), Latch::new());
    let (url, wardens) = (
        front::url(settings.server.public_url.as_deref(), address),
        Arc::clone(workshop.wardens()),
    );
    let seating = tree.seating();
    let kept = Arc::clone(&store);
    let world = World { source, clock, store, workshop, seating, front, masks };
    let reloader = Reloader::begin(world, settings, (specs, keys), orders);
    let served = tokio::spawn(listen::serve(listener, paths, bounds, handle.clone()));
    Ok(Running {
        url,
        address,
        tree,
        postman,
        store: kept,
        wardens,
        handle,
        served,
        steward,
        reloader,
    })
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

    /// Has the configuration read again. What comes of it stands in the log and in `/status`.
    pub fn reload(&self, why: &'static str) {
        self.steward.reload_soon(why);
    }

    /// Stops: refuses new work, lets what runs finish until the deadline, answers who waits,
    /// closes the ledger.
    pub async fn stop(self, deadline: Duration) {
        self.reloader.abort();
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
        self.reloader.abort();
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

/// How the history is kept.
fn bounds(config::Retention { keep, interval }: config::Retention) -> Retention {
    Retention { keep, interval }
}

/// Starts the tree, which takes up what the wardens hold; what it does not is ended.
async fn grow(
    kit: Kit,
    seats: Vec<Seat>,
    plan: Plan,
    wardens: &Wardens,
) -> Result<Tree, StartError> {
    let tree = Tree::start(kit, seats, plan).await;
    let tree = tree.map_err(|error| StartError::Tree { cause: error.to_string() })?;
    wardens.end_the_unclaimed().await;
    Ok(tree)
}

/// What the tree does besides serving its agents.
fn plan(settings: &Settings, meter: Arc<dyn Meter>, store: &Arc<Store>) -> Plan {
    let probe = |it: config::Pressure| Probe { meter, spec: it.spec, interval: it.interval };
    Plan {
        probe: settings.pressure.map(probe),
        agenda: Some(agenda(store, &settings.scheduling)),
        retention: settings.retention.map(bounds),
    }
}

/// What there is to do at set times.
fn agenda(store: &Arc<Store>, scheduling: &Scheduling) -> Agenda {
    Agenda {
        timebook: Arc::clone(store) as _,
        wording: Arc::new(Words),
        configured: reload::schedules(scheduling),
        history: scheduling.history,
        nap: NAP,
    }
}
