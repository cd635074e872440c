//! Factory of agents: their confinement on this machine, and their drivers.

use std::collections::HashSet;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use algonius_actors::model::host::host_capabilities::HostCapabilities;
use algonius_actors::ports::sessions::Sessions;
use algonius_actors::root::AgentDefinition;
use algonius_warden::Warden;
use algonius_warden::confinement::bubblewrap::ProtectedServiceFiles;
use algonius_warden::confinement::group::ControlGroups;
use algonius_warden::wardens::ProcessHolders;
use nix::sys::statfs::{TMPFS_MAGIC, statfs};
use tokio::task::spawn_blocking;

use crate::StartError;
use crate::app::confinement;
use crate::app::confinement::{HostContext, UserFolders};
use crate::app::program_versions::{ProgramRegistry, VersionRequester};
use crate::config::{Agent, AgentWorker, ServerSettings, ServiceFiles};
use crate::drivers::program::context::{DriverContext, SharedDriverContext, folder_name};
use crate::drivers::program::driver::ProcessDriver;
use crate::drivers::program::service_paths::ServicePaths;
use crate::drivers::remote::{RemoteConnections, RemoteDriver};

/// Shared context for preparing agents, at the start and later. Cheap to clone.
#[derive(Clone)]
pub(crate) struct AgentFactory {
    machine: HostCapabilities,
    groups: Option<Arc<ControlGroups>>,
    holders: Arc<ProcessHolders>,
    shared_context: Arc<SharedDriverContext>,
    programs: ProgramRegistry,
    users: UserFolders,
    remotes: RemoteConnections,
}

impl AgentFactory {
    pub(crate) fn new(
        server: &ServerSettings,
        (machine, files): (HostCapabilities, &ServiceFiles),
        (groups, wardens): (Option<Arc<ControlGroups>>, Arc<ProcessHolders>),
        sessions: Arc<dyn Sessions>,
    ) -> io::Result<Self> {
        let driver_context = DriverContext {
            runtime_dir: server.runtime_dir.clone(),
            sockets: machine.sockets.clone(),
            bubblewrap: find_bubblewrap(&machine),
            in_memory: is_in_memory(&server.runtime_dir),
        };
        let remotes = RemoteConnections::new(server.programs.output_memory, Arc::clone(&sessions))?;
        let service = Arc::new(ServicePaths::new(guarded_files(files)));
        let shared_context = Arc::new(SharedDriverContext::new(driver_context, service, sessions));
        shared_context.prepare()?;
        let users = user_folders(server);
        let programs = ProgramRegistry::new();
        Ok(Self { machine, groups, holders: wardens, shared_context, programs, users, remotes })
    }

    /// Hides these files of the service from programs that are started from now on.
    pub(crate) async fn protect(&self, files: ServiceFiles) {
        let shared_context = Arc::clone(&self.shared_context);
        if let Err(error) =
            spawn_blocking(move || shared_context.service.set(guarded_files(&files))).await
        {
            tracing::error!(%error, "failed to protect the files of the configuration");
        }
    }

    /// Decides how an agent is isolated with these files of the service.
    pub(crate) fn isolate(&self, agent: &mut Agent, files: &ServiceFiles) {
        confinement::decide_isolation(agent, &HostContext { capabilities: &self.machine, files });
    }

    /// Removes the folders of executions that ended while the service was down.
    pub(crate) async fn sweep(&self) {
        let (shared_context, wardens) =
            (Arc::clone(&self.shared_context), Arc::clone(&self.holders));
        let swept = spawn_blocking(move || {
            let held: HashSet<_> = wardens.held_attempts().into_iter().map(folder_name).collect();
            shared_context.sweep(&|name| held.contains(name), &wardens.held_slots())
        });
        if let Ok(folders @ 1..) = swept.await {
            tracing::warn!(folders, "removed folders of executions that ended without the service");
        }
    }

    /// Returns the capabilities of the machine.
    pub(crate) const fn machine(&self) -> &HostCapabilities {
        &self.machine
    }

    /// Returns the process holders.
    pub(crate) const fn holders(&self) -> &Arc<ProcessHolders> {
        &self.holders
    }

    /// Returns the known facts about the programs.
    pub(crate) const fn programs(&self) -> &ProgramRegistry {
        &self.programs
    }

    /// Decides the user, the isolation and the limits of an agent, and creates its home.
    pub(crate) fn confine(
        &self,
        agent: &mut Agent,
        files: &ServiceFiles,
    ) -> Result<(), StartError> {
        confinement::assign_user(agent, &self.users)?;
        confinement::decide_sandbox(agent, &HostContext { capabilities: &self.machine, files })?;
        confinement::decide_limits(agent, self.groups.as_deref())?;
        confinement::create_home(agent)
    }

    /// Returns the definition of a settled agent, with its driver.
    pub(crate) fn definition(&self, agent: Agent) -> AgentDefinition {
        let Agent { spec, worker, .. } = agent;
        let program = match worker {
            AgentWorker::Program { program, .. } => program,
            AgentWorker::Remote(remote) => {
                let driver = Arc::new(RemoteDriver::new(remote, self.remotes.clone()));
                return AgentDefinition { spec, driver };
            }
        };
        let warden: Arc<dyn Warden> = Arc::clone(&self.holders) as _;
        if spec.enabled && spec.unavailable().is_none() {
            let requester = VersionRequester {
                shared_context: Arc::clone(&self.shared_context),
                warden: Arc::clone(&warden),
            };
            self.programs.request_version(requester, &spec, &program);
        }
        let driver =
            Arc::new(ProcessDriver::new(program, Arc::clone(&self.shared_context), warden));
        AgentDefinition { spec, driver }
    }
}

/// Returns the folders of agents that have their own users.
pub(crate) fn user_folders(server: &ServerSettings) -> UserFolders {
    let (data_dir, runtime_dir) = (server.data_dir.clone(), server.runtime_dir.clone());
    UserFolders { data_dir, runtime_dir, range: server.programs.agent_users }
}

/// Returns the files of the service in the form for sandboxes.
fn guarded_files(files: &ServiceFiles) -> ProtectedServiceFiles {
    let ServiceFiles { unreadable, unwritable, folder, programs: _ } = files.clone();
    ProtectedServiceFiles { unreadable, unwritable, folder }
}

fn is_in_memory(folder: &Path) -> bool {
    statfs(folder).is_ok_and(|of| of.filesystem_type() == TMPFS_MAGIC)
}

fn find_bubblewrap(machine: &HostCapabilities) -> Option<PathBuf> {
    let find = || algonius_warden::capabilities::bubblewrap(std::env::var_os("PATH").as_deref());
    machine.sandbox_capabilities().bubblewrap.then(find).flatten()
}
