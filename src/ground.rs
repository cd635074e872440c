//! What the service stands on: its address, its store, and where its agents are made ready.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use algonius_actors::decide::key::Keyring;
use algonius_actors::kit::{Circuits, Kit, Masking, Pens, Purses};
use algonius_actors::lookout::Lookout;
use algonius_actors::model::rungs::Rungs;
use algonius_actors::ports::clock::Clock;
use algonius_actors::turns::Turns;
use tokio::task::spawn_blocking;

use crate::config::{self, Server};
use crate::observe::Observatory;
use crate::serve::listen::Bounds;
use crate::store::{self, Store};
use crate::tls::Certificates;
use crate::warden::wardens::{Origin, Terms, Wardens};
use crate::workshop::Workshop;
use crate::{StartError, admit, rungs, settle};

/// What everything else stands on.
pub(super) struct Ground {
    pub(super) listener: TcpListener,
    pub(super) address: SocketAddr,
    pub(super) certificates: Option<Certificates>,
    pub(super) store: Arc<Store>,
    pub(super) workshop: Workshop,
}

impl Ground {
    /// Takes the address, looks at the machine, opens the store, finds or starts the wardens, and
    /// settles what holds the agents.
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
        let instance = store.instance().id;
        let groups = settle::groups(agents, instance).await?;
        agents.iter_mut().try_for_each(|agent| settle::limit(agent, groups.as_deref()))?;
        agents.iter().try_for_each(settle::home)?;
        let (runtime_dir, patience) = (server.runtime_dir.clone(), server.reattach_grace);
        let terms = Terms { origin, runtime_dir, instance, patience, groups: groups.clone() };
        let wardens = Wardens::start(terms).await;
        let wardens = wardens.map_err(|source| StartError::Warden { source })?;
        let workshop = Workshop::new(server, machine, groups, wardens, Arc::clone(&store) as _);
        Ok(Self { listener, address, certificates, store, workshop })
    }

    pub(super) fn kit(
        &self,
        clock: Arc<dyn Clock>,
        redactor: Masking,
        observatory: &Observatory,
    ) -> Kit {
        Kit {
            ledger: Arc::clone(&self.store) as _,
            history: Arc::clone(&self.store) as _,
            clock,
            redactor,
            keyring: Keyring::new(self.store.instance().key),
            observer: Arc::new(observatory.clone()),
            lookout: Lookout::default(),
            turns: Turns::default(),
            pens: Pens::default(),
            circuits: Circuits::default(),
            purses: Purses::default(),
        }
    }
}

async fn machine() -> Result<Rungs, StartError> {
    let looked = spawn_blocking(rungs).await;
    looked.map_err(|error| StartError::Warden { source: io::Error::other(error) })
}

pub(super) const fn bounds(server: &Server) -> Bounds {
    let Server { max_connections, header_timeout, write_timeout, .. } = server;
    Bounds { connections: *max_connections, head: *header_timeout, unread: *write_timeout }
}

fn durability(server: &Server) -> store::Durability {
    match server.durability {
        config::Durability::Process => store::Durability::Process,
        config::Durability::Power => store::Durability::Power,
    }
}
