//! Base resources of the service: its address, its store, and the factory of its agents.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;

use algonius_actors::decide::admission::keyed_hasher::KeyedHasher;
use algonius_actors::model::host::host_capabilities::HostCapabilities;
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::host_check::HostCheck;
use algonius_actors::services::monitor_handle::MonitorHandle;
use algonius_actors::services::{
    ActiveWriters, AttemptResources, BudgetUsageCache, CredentialBreakers, InputSealer,
    RecordStores, RedactorHandle, Services,
};
use algonius_store::{Durability, Store};
use algonius_warden::OutputMemory;
use algonius_warden::process_holders::{HolderCommand, ProcessHolderOptions, ProcessHolders};
use tokio::task::spawn_blocking;

use crate::app::agent_factory::{AgentFactory, agent_user_settings};
use crate::app::confinement::HostContext;
use crate::app::input_sealer::KeyringSealer;
use crate::app::{confinement, credentials};
use crate::config::{self, RequestLimits, ServerSettings, ServiceFiles};
use crate::observe::Instruments;
use crate::platform::tls::WatchedTlsConfig;
use crate::serve::http::listen::{ListenLimits, bind_with_retry};
use crate::{StartError, host_capabilities};

/// Base resources of the service.
pub(crate) struct ServiceResources {
    pub(crate) listener: TcpListener,
    pub(crate) address: SocketAddr,
    pub(crate) certificates: Option<WatchedTlsConfig>,
    pub(crate) store: Arc<Store>,
    input_sealer: InputSealer,
    pub(crate) host_check: Arc<dyn HostCheck>,
    pub(crate) agent_factory: AgentFactory,
}

impl ServiceResources {
    /// Binds the address, examines the machine, opens the store, reattaches or starts the process holders, and decides
    /// the confinement of the agents.
    pub(crate) async fn open(
        (server, inputs, files): (&ServerSettings, &config::InputSettings, &ServiceFiles),
        agents: &mut [config::ConfiguredAgent],
        command: HolderCommand,
        clock: &Arc<dyn Clock>,
    ) -> Result<Self, StartError> {
        let certificates = server.tls.clone().map(WatchedTlsConfig::read_and_watch).transpose()?;
        let listener = bind_with_retry(server.listen_address)
            .await
            .map_err(|source| StartError::Listen { address: server.listen_address, source })?;
        let address = listener.local_addr().unwrap_or(server.listen_address);
        credentials::check_anonymous_access(agents, address)?;
        let capabilities = probe_host().await?;
        let host = HostContext { capabilities: &capabilities, service_files: files };
        let store = Arc::new(Store::open(&server.data_dir, durability(server)).await?);
        let user_settings = agent_user_settings(server);
        agents
            .iter_mut()
            .try_for_each(|agent| confinement::prepare_agent_user(agent, &user_settings))?;
        // The users of the agents can pass the folders of the service only now.
        agents
            .iter_mut()
            .try_for_each(|agent| confinement::decide_and_check_isolation(agent, &host))?;
        let data_dir_id = store.instance().id;
        let groups = confinement::open_control_groups(agents, data_dir_id).await?;
        agents
            .iter_mut()
            .try_for_each(|agent| confinement::decide_and_check_limits(agent, groups.as_deref()))?;
        agents.iter().try_for_each(confinement::create_home)?;
        let (runtime_dir, reattach_grace) =
            (server.runtime_dir.clone(), server.programs.reattach_grace);
        let (groups, output_memory) =
            (groups.clone(), OutputMemory::with_limit(server.programs.max_output_memory_bytes));
        let holder_options = ProcessHolderOptions {
            command,
            runtime_dir,
            data_dir_id,
            reattach_grace,
            control_groups: groups.clone(),
            output_memory,
        };
        let holders = ProcessHolders::start(holder_options).await;
        let holders = holders.map_err(|source| StartError::Warden { source })?;
        let folders = (server.runtime_dir.as_path(), server.data_dir.as_path());
        let (sealer, runtime_key) =
            KeyringSealer::load_or_create(inputs, folders, data_dir_id, &holders).await?;
        let sealer = Arc::new(sealer);
        store.set_answer_sealer(Arc::clone(&sealer) as _);
        let input_sealer = InputSealer::new(sealer, inputs.retry_window);
        let (capabilities_and_files, groups_and_holders) =
            ((capabilities, files), (groups, holders));
        let agent_factory =
            AgentFactory::new(server, capabilities_and_files, groups_and_holders, (&store, clock));
        let agent_factory = agent_factory.map_err(|source| StartError::Warden { source })?;
        let host_check = agent_factory.build_host_check(&store, runtime_key);
        Ok(Self { listener, address, certificates, store, input_sealer, host_check, agent_factory })
    }

    pub(crate) fn build_services(
        &self,
        clock: Arc<dyn Clock>,
        redactor: RedactorHandle,
        instruments: &Instruments,
        agents_memory_limit: Option<u64>,
    ) -> Services {
        let stores = RecordStores {
            history: Arc::clone(&self.store) as _,
            interactions: Arc::clone(&self.store) as _,
        };
        Services {
            ledger: Arc::clone(&self.store) as _,
            stores,
            clock,
            redactor,
            input_sealer: self.input_sealer.clone(),
            keyed_hasher: KeyedHasher::new(self.store.instance().key),
            observer: Arc::new(instruments.clone()),
            monitor: MonitorHandle::default(),
            attempt_resources: AttemptResources::with_memory_limit(agents_memory_limit),
            active_writers: ActiveWriters::default(),
            breakers: CredentialBreakers::default(),
            budget_usages: BudgetUsageCache::default(),
        }
    }
}

async fn probe_host() -> Result<HostCapabilities, StartError> {
    let inspected = spawn_blocking(host_capabilities).await;
    inspected.map_err(|error| StartError::SandboxProbe { source: io::Error::other(error) })?
}

pub(crate) const fn listen_limits(server: &ServerSettings) -> ListenLimits {
    let RequestLimits { max_connections, header_timeout, write_timeout, .. } =
        &server.request_limits;
    ListenLimits {
        max_connections: *max_connections,
        header_timeout: *header_timeout,
        write_timeout: *write_timeout,
    }
}

fn durability(server: &ServerSettings) -> Durability {
    match server.durability {
        config::DurabilitySetting::Process => Durability::ProcessCrash,
        config::DurabilitySetting::Power => Durability::PowerFailure,
    }
}
