//! Factory of agents: their confinement on this machine, and their drivers.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use algonius_actors::api::RequestHandleCell;
use algonius_actors::model::host::host_capabilities::HostCapabilities;
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::host_check::HostCheck;
use algonius_actors::ports::session_store::SessionStore;
use algonius_actors::root::AgentDefinition;
use algonius_actors::runs::cognitive::CognitiveDriver;
use algonius_actors::runs::team::TeamDriver;
use algonius_store::Store;
use algonius_warden::ProgramLauncher;
use algonius_warden::confinement::cgroup::ControlGroups;
use algonius_warden::confinement::socket_search::EscapeSocketSearch;
use algonius_warden::confinement::sockets::EscapeSocketLocations;
use algonius_warden::process_holders::ProcessHolders;
use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use tokio::task::spawn_blocking;

use crate::StartError;
use crate::app::confinement;
use crate::app::confinement::{AgentUserSettings, HostContext};
use crate::app::host_check::{HostCheckTargets, ServiceHostCheck};
use crate::app::input_sealer::RuntimeKeyFile;
use crate::app::program_versions::{ProgramStatuses, VersionRequester};
use crate::config::{AgentWorker, ConfiguredAgent, ServerSettings, ServiceFiles};
use crate::drivers::mcp::McpServers;
use crate::drivers::models::ModelConnections;
use crate::drivers::program::backend_process::BackendLauncher;
use crate::drivers::program::context::{DriverSettings, SharedDriverContext, attempt_folder_name};
use crate::drivers::program::process_driver::ProcessDriver;
use crate::drivers::program::service_paths::ServicePaths;
use crate::drivers::remote::{RemoteConnections, RemoteDriver};
use crate::drivers::tools::{ToolHandlers, ToolServices};

/// Shared context for preparing agents, at the start and later. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AgentFactory {
    capabilities: HostCapabilities,
    control_groups: Option<Arc<ControlGroups>>,
    holders: Arc<ProcessHolders>,
    shared_context: Arc<SharedDriverContext>,
    program_statuses: ProgramStatuses,
    agent_users: AgentUserSettings,
    remote_connections: RemoteConnections,
    request_handle_cell: RequestHandleCell,
    model_connections: ModelConnections,
    tool_services: ToolServices,
}

impl AgentFactory {
    pub(crate) fn new(
        server: &ServerSettings,
        (capabilities, files): (HostCapabilities, &ServiceFiles),
        (control_groups, holders): (Option<Arc<ControlGroups>>, Arc<ProcessHolders>),
        (store, clock): (&Arc<Store>, &Arc<dyn Clock>),
    ) -> io::Result<Self> {
        let sessions: Arc<dyn SessionStore> = Arc::<Store>::clone(store);
        let escape_sockets = Arc::new(EscapeSocketSearch::new(
            EscapeSocketLocations::from_env(&|name| std::env::var_os(name)),
            capabilities.sockets.clone(),
        ));
        let driver_settings = DriverSettings {
            runtime_dir: server.runtime_dir.clone(),
            escape_sockets,
            bubblewrap: find_bubblewrap(&capabilities),
            is_runtime_dir_in_memory: is_on_tmpfs(&server.runtime_dir),
        };
        let remote_connections =
            RemoteConnections::new(server.programs.max_output_memory_bytes, Arc::clone(&sessions))?;
        let service_paths = Arc::new(ServicePaths::new(confinement::protected_files(files)));
        let shared_context =
            Arc::new(SharedDriverContext::new(driver_settings, service_paths, sessions));
        shared_context.create_sandbox_files()?;
        let (context, launcher) = (Arc::clone(&shared_context), Arc::clone(&holders) as _);
        let backend_launcher = BackendLauncher { context, launcher };
        let tool_services = ToolServices {
            clock: Arc::clone(clock),
            notes: Arc::<Store>::clone(store),
            mcp_servers: McpServers::new(backend_launcher.clone()),
            launcher: backend_launcher,
        };
        let agent_users = agent_user_settings(server);
        let program_statuses = ProgramStatuses::new();
        Ok(Self {
            capabilities,
            control_groups,
            holders,
            shared_context,
            program_statuses,
            agent_users,
            remote_connections,
            request_handle_cell: RequestHandleCell::default(),
            model_connections: ModelConnections::new(Arc::clone(clock))?,
            tool_services,
        })
    }

    /// Hides these files of the service from programs that are started from now on.
    pub(crate) async fn hide_service_files(&self, files: ServiceFiles) {
        let shared_context = Arc::clone(&self.shared_context);
        if let Err(error) = spawn_blocking(move || {
            shared_context
                .service_paths
                .replace_service_files(confinement::protected_files(&files));
        })
        .await
        {
            tracing::error!(%error, "failed to protect the files of the configuration");
        }
    }

    /// Decides how an agent is isolated with these files of the service.
    pub(crate) fn decide_isolation(&self, agent: &mut ConfiguredAgent, files: &ServiceFiles) {
        confinement::decide_isolation(
            agent,
            &HostContext { capabilities: &self.capabilities, service_files: files },
        );
    }

    /// Searches the sockets through which programs could be started outside of a sandbox. Returns true if there are
    /// others than before; the next decisions about isolation are based on them.
    pub(crate) async fn update_escape_sockets(&mut self) -> bool {
        let sockets = self.shared_context.find_escape_sockets().await;
        let is_new = |socket: &&PathBuf| !self.capabilities.sockets.contains(socket);
        for socket in sockets.iter().filter(is_new) {
            let socket = socket.display();
            tracing::warn!(%socket, "a socket appeared through which programs start outside of sandboxes");
        }
        let has_changed = sockets != self.capabilities.sockets;
        self.capabilities.sockets = sockets;
        has_changed
    }

    /// Removes the folders of executions that ended while the service was down.
    pub(crate) async fn remove_stale_folders(&self) {
        let (shared_context, holders) =
            (Arc::clone(&self.shared_context), Arc::clone(&self.holders));
        let sweep_handle = spawn_blocking(move || {
            let held_folders: HashSet<_> =
                holders.held_attempts().into_iter().map(attempt_folder_name).collect();
            shared_context.remove_stale_folders(
                &|name| held_folders.contains(name),
                &holders.held_scratch_slots(),
            )
        });
        if let Ok(folders @ 1..) = sweep_handle.await {
            tracing::warn!(folders, "removed folders of executions that ended without the service");
        }
    }

    /// Returns the check of the preconditions of all executions.
    pub(crate) fn build_host_check(
        &self,
        store: &Arc<Store>,
        runtime_key: Option<RuntimeKeyFile>,
    ) -> Arc<dyn HostCheck> {
        let targets = HostCheckTargets {
            context: Arc::clone(&self.shared_context),
            store: Arc::clone(store),
            runtime_key,
            holders: Arc::clone(&self.holders),
        };
        Arc::new(ServiceHostCheck::new(targets))
    }

    /// Returns the capabilities of the machine.
    pub(crate) const fn capabilities(&self) -> &HostCapabilities {
        &self.capabilities
    }

    /// Returns the cell for the handle of the requests, which the drivers of teams use.
    pub(crate) const fn request_handle_cell(&self) -> &RequestHandleCell {
        &self.request_handle_cell
    }

    /// Returns the process holders.
    pub(crate) const fn holders(&self) -> &Arc<ProcessHolders> {
        &self.holders
    }

    /// Returns the MCP servers.
    pub(crate) const fn mcp_servers(&self) -> &McpServers {
        &self.tool_services.mcp_servers
    }

    /// Returns the statuses of the programs.
    pub(crate) const fn program_statuses(&self) -> &ProgramStatuses {
        &self.program_statuses
    }

    /// Decides the user, the isolation and the limits of an agent, and creates its home.
    pub(crate) fn prepare_confinement(
        &self,
        agent: &mut ConfiguredAgent,
        files: &ServiceFiles,
    ) -> Result<(), StartError> {
        confinement::prepare_agent_user(agent, &self.agent_users)?;
        confinement::decide_and_check_isolation(
            agent,
            &HostContext { capabilities: &self.capabilities, service_files: files },
        )?;
        confinement::decide_and_check_limits(agent, self.control_groups.as_deref())?;
        confinement::create_home(agent)
    }

    /// Returns the definition of a settled agent, with its driver.
    pub(crate) fn build_definition(&self, agent: ConfiguredAgent) -> AgentDefinition {
        let ConfiguredAgent { spec, worker, .. } = agent;
        let program = match worker {
            AgentWorker::Program { program, .. } => program,
            AgentWorker::Team => {
                let driver = Arc::new(TeamDriver::new(self.request_handle_cell.clone()));
                return AgentDefinition { spec, driver };
            }
            AgentWorker::Cognitive { provider, tool_backends: sources } => {
                let model_client = Arc::new(self.model_connections.client(provider));
                let tools = Arc::new(ToolHandlers::new(self.tool_services.clone(), sources));
                let cell = self.request_handle_cell.clone();
                let driver = Arc::new(CognitiveDriver::new(cell, model_client, tools));
                return AgentDefinition { spec, driver };
            }
            AgentWorker::Remote(remote) => {
                let driver = Arc::new(RemoteDriver::new(remote, self.remote_connections.clone()));
                return AgentDefinition { spec, driver };
            }
        };
        let launcher: Arc<dyn ProgramLauncher> = Arc::clone(&self.holders) as _;
        if spec.enabled && spec.unavailable_failure().is_none() {
            let requester = VersionRequester {
                shared_context: Arc::clone(&self.shared_context),
                launcher: Arc::clone(&launcher),
            };
            self.program_statuses.start_inspection(requester, &spec, &program);
        }
        let driver =
            Arc::new(ProcessDriver::new(program, Arc::clone(&self.shared_context), launcher));
        AgentDefinition { spec, driver }
    }
}

/// Returns the folders of agents that have their own users.
pub(crate) fn agent_user_settings(server: &ServerSettings) -> AgentUserSettings {
    let (data_dir, runtime_dir) = (server.data_dir.clone(), server.runtime_dir.clone());
    AgentUserSettings { data_dir, runtime_dir, uid_range: server.programs.agent_uid_range }
}

fn is_on_tmpfs(folder: &Path) -> bool {
    statfs(folder).is_ok_and(|filesystem| filesystem.filesystem_type() == TMPFS_MAGIC)
}

fn find_bubblewrap(capabilities: &HostCapabilities) -> Option<PathBuf> {
    let find =
        || algonius_warden::capabilities::find_bubblewrap(std::env::var_os("PATH").as_deref());
    capabilities.sandbox_capabilities().bubblewrap.then(find).flatten()
}
