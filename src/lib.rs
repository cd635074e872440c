//! algonius-supervisor: serves any command-line AI agent as a supervised, durable A2A agent.
//!
//! This file is the composition root: the only place where a port meets its implementation.

mod admit;
pub mod alert;
pub mod cli;
pub mod clock;
pub mod config;
pub mod drive;
mod form;
mod front;
mod ground;
pub mod meter;
pub mod observe;
mod opening;
mod programs;
pub mod push;
mod reload;
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
mod watching;
pub mod wire;
mod wording;
mod workshop;

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::rungs::Rungs;
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::meter::Meter;
use algonius_actors::tree::Tree;
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub use starting::StartError;

use clock::WallClock;
use config::{Settings, Source};
use meter::MachineMeter;
use observe::Observatory;
use opening::Grown;
use push::Postman;
use reload::Steward;
use serve::listen::Latch;
use store::Store;
use warden::memory;
use warden::wardens::{Left, Origin, Wardens};
use watching::Onlookers;

/// A service that runs.
pub struct Running {
    url: String,
    scheme: &'static str,
    address: SocketAddr,
    tree: Tree,
    postman: Option<Postman>,
    onlookers: Onlookers,
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

/// What programs can ask of the service, in OpenAPI 3.1.
#[must_use]
pub fn openapi() -> serde_json::Value {
    serve::api::openapi::document()
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
    let world = (Arc::new(WallClock) as _, meter as _);
    let running = start_from(source, settings, world, Origin::default()).await?;
    tokio::spawn(memory::give_back_at_rest());
    Ok(running)
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
    mut settings: Settings,
    (clock, meter): (Arc<dyn Clock>, Arc<dyn Meter>),
    origin: Origin,
) -> Result<Running, StartError> {
    // What grows is large: whoever waits for it should not be.
    let grown = Box::pin(Grown::grow(&mut settings, (&clock, meter), origin)).await?;
    grown.open(source, settings, clock)
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

    /// Who looks on.
    #[must_use]
    pub const fn observatory(&self) -> &Observatory {
        &self.onlookers.observatory
    }

    /// The level of the log, as the configuration in force has it.
    #[must_use]
    pub fn levels(&self) -> watch::Receiver<tracing::Level> {
        self.steward.levels()
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
        self.onlookers.stop().await;
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
