//! What the service stands on, and how its door is opened upon that.

use std::collections::BTreeMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use algonius_actors::decide::key::Keyring;
use algonius_actors::decide::redact::Redactor;
use algonius_actors::door::Gateway;
use algonius_actors::kit::Kit;
use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::rungs::Rungs;
use algonius_actors::ports::clock::Clock;
use algonius_actors::root::Seat;
use algonius_actors::tree::Tree;
use algonius_actors::turns::Turns;
use chrono::{DateTime, Utc};
use tokio::task::spawn_blocking;
use uuid::Uuid;

use crate::config::{self, Lockout, Server};
use crate::drive::process::{ProcessDriver, Site};
use crate::push::{Desk, Postman};
use crate::serve::auth::Guard;
use crate::serve::card::GrpcUrls;
use crate::serve::exposure::Rates;
use crate::serve::host::Hosts;
use crate::serve::listen::Bounds;
use crate::serve::lockout::Lockouts;
use crate::serve::{App, Shared, gate, listen, router};
use crate::store::{self, Store};
use crate::tls::Certificates;
use crate::warden::wardens::{Origin, Terms, Wardens};
use crate::{Running, StartError, admit, rungs, settle, warden};

/// What everything else stands on.
pub(super) struct Ground {
    pub(super) listener: TcpListener,
    pub(super) address: SocketAddr,
    pub(super) certificates: Option<Certificates>,
    pub(super) machine: Rungs,
    pub(super) store: Arc<Store>,
    pub(super) wardens: Arc<Wardens>,
}

/// The agents, as the door knows them.
pub(super) type Specs = BTreeMap<AgentId, Arc<AgentSpec>>;

/// What the door knows of those who come.
pub(super) struct Callers {
    pub(super) guard: Guard,
    pub(super) lockout: Lockout,
    pub(super) default_agent: Option<AgentId>,
    pub(super) agents: Specs,
    pub(super) desk: Option<Desk>,
    pub(super) begun: DateTime<Utc>,
    /// The zone of a schedule that names none, and whether schedules may have seconds.
    pub(super) times: (String, bool),
}

impl Ground {
    /// Takes the address, looks at the machine, opens the store, and finds or starts the wardens.
    pub(super) async fn lay(
        server: &Server,
        agents: &mut [config::Agent],
        origin: Origin,
    ) -> Result<Self, StartError> {
        let certificates = server.tls.clone().map(Certificates::open).transpose()?;
        let listener = TcpListener::bind(server.listen)
            .map_err(|source| StartError::Listen { address: server.listen, source })?;
        let address = listener.local_addr().unwrap_or(server.listen);
        admit::guarded(agents, address)?;
        let machine = machine().await?;
        agents.iter_mut().try_for_each(|agent| settle::sandbox(agent, &machine))?;
        let store = Arc::new(Store::open(&server.data_dir, durability(server)).await?);
        let wardens = wardens(server, agents, store.instance().id, origin).await?;
        Ok(Self { listener, address, certificates, machine, store, wardens })
    }

    pub(super) fn kit(&self, clock: Arc<dyn Clock>, redactor: Redactor) -> Kit {
        Kit {
            ledger: Arc::clone(&self.store) as _,
            clock,
            redactor: Arc::new(redactor),
            keyring: Keyring::new(self.store.instance().key),
            turns: Turns::default(),
        }
    }

    /// Each agent and what does its work.
    pub(super) fn seats(&self, agents: Vec<config::Agent>, server: &Server) -> Vec<Seat> {
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
    pub(super) fn open(
        self,
        server: Server,
        callers: Callers,
        tree: Tree,
        postman: Option<Postman>,
    ) -> Running {
        let Self { listener, address, certificates, machine, store, wardens } = self;
        let scheme = if certificates.is_some() { "https" } else { "http" };
        let url = server.public_url.clone().unwrap_or_else(|| format!("{scheme}://{address}"));
        let (bounds, handle) = (bounds(&server), listen::Latch::new());
        let gateway = tree.gateway().clone();
        let shared = shared(server, callers, (&url, address), (machine, living(&wardens)), gateway);
        let app = router::router(App::new(shared));
        let served =
            tokio::spawn(listen::serve(listener, certificates, app, bounds, handle.clone()));
        Running { url, scheme, address, tree, postman, store, wardens, handle, served }
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
    let (entry, Callers { guard, lockout, default_agent, agents, desk, begun, times }) =
        (server.entry, callers);
    let (zone, seconds) = times;
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
        zone,
        seconds,
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
