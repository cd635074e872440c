//! Sandbox of an attempt: the files and sockets that its program may use, in the
//! form that the system requires.

mod escape_sockets;
mod failures;
mod reachable_files;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use algonius_actors::driver::AttemptWork;
use algonius_actors::model::agent::Access;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::host::sandbox::{Isolation, Sandbox};
use algonius_actors::model::program::backend_program::BackendProgram;
use algonius_actors::model::program::{EnvVariable, ProgramSpec, UnixUser};
use algonius_warden::confinement::bubblewrap::FilesystemView;
use algonius_warden::confinement::landlock::{
    FileAccess, LandlockDomain, ReadablePaths, Ruleset, abi_version,
};
use algonius_warden::confinement::network_access::NetworkAccess;
use algonius_warden::confinement::service_folders::ProtectedServiceFiles;
use algonius_warden::{LaunchRequest, RootCapabilities};
use nix::unistd::geteuid;
use tokio::task::spawn_blocking;

use self::escape_sockets::{find_escape_sockets, refuse_escape_sockets};
use self::failures::sandbox_failure;
pub(super) use self::failures::{access_denial_note, setup_failure};
use self::reachable_files::retain_reachable_files;
use super::context::SharedDriverContext;
use super::program_environment::InheritedVariables;
use crate::drivers::files::scratch_dir::TEMPORARY_FOLDER;
use crate::drivers::files::scratch_slots::ScratchSlot;
use crate::drivers::start_faults::check_executable;

/// Variable that names that folder.
const TMPDIR_VARIABLE: &str = "TMPDIR";

/// Mode bit of a program that runs as its owner.
const SETUID_BIT: u32 = 0o4000;

/// Sandbox of a program, before the folder of its attempt is known.
#[derive(Debug, Clone)]
pub(super) enum SandboxPlan {
    /// The program has no confinement.
    Unconfined,
    /// A Landlock domain that restricts files; the launch needs a scratch slot.
    DomainWithFileRules(LandlockDomain),
    /// A Landlock domain that restricts no file.
    DomainWithoutFileRules {
        /// Network that the program may use.
        network: NetworkAccess,
    },
    /// A mount namespace of its own, created by the bubblewrap at this path.
    View(Box<FilesystemView>, PathBuf),
}

impl SandboxPlan {
    /// Returns the plan with one more folder that the program may change.
    pub(super) fn with_writable_folder(mut self, folder: &Path) -> Self {
        match &mut self {
            Self::DomainWithFileRules(LandlockDomain { files: Some(files), .. }) => {
                files.private_folders.push(folder.to_owned());
            }
            Self::View(view, _) => view.private_folders.push(folder.to_owned()),
            Self::DomainWithFileRules(_)
            | Self::DomainWithoutFileRules { .. }
            | Self::Unconfined => {}
        }
        self
    }
}

/// Sandbox of a program at its start.
#[derive(Debug, Clone)]
pub(super) struct LaunchSandbox {
    ruleset: Option<Ruleset>,
    /// View, and the path of the bubblewrap that creates it.
    view: Option<(Box<FilesystemView>, PathBuf)>,
    /// Capabilities that a program of root keeps.
    root_capabilities: RootCapabilities,
}

/// Sandbox and the folder of its slot, if it has one.
pub(super) type PreparedSandbox = (LaunchSandbox, Option<ScratchSlot>);

/// Program to be confined: the facts on which its sandbox depends.
pub(super) struct SandboxSubject<'a> {
    pub(super) access: Access,
    pub(super) sandbox: &'a Sandbox,
    /// Mechanism that confines the program.
    pub(super) isolation: Option<Isolation>,
    /// Folders of the program's own that it may change.
    pub(super) private_folders: Vec<PathBuf>,
    /// Home of the program.
    pub(super) home: &'a Path,
    /// User of the program; `None` for the service's own.
    pub(super) user: Option<UnixUser>,
}

impl<'a> SandboxSubject<'a> {
    /// Returns the program of an attempt.
    pub(super) fn for_attempt(program: &'a ProgramSpec, work: &AttemptWork) -> Self {
        let runtime = &program.runtime_settings;
        Self {
            access: work.spec.access,
            sandbox: &program.sandbox,
            isolation: isolation(work),
            private_folders: runtime.agent_home.iter().map(|home| home.path.clone()).collect(),
            home: &runtime.home,
            user: program.user.ids,
        }
    }

    /// Returns a backend program.
    pub(super) fn for_backend(program: &'a BackendProgram) -> Self {
        Self {
            access: BackendProgram::ACCESS,
            sandbox: &program.sandbox,
            isolation: program.confinement.isolation,
            private_folders: Vec::new(),
            home: &program.home,
            user: None,
        }
    }

    /// Returns true if the program may change only some files, or reach only a part of the network.
    pub(super) fn is_confined(&self) -> bool {
        self.isolation.is_some() && self.sandbox.has_restrictions(self.access)
    }
}

/// Returns the mechanism that confines the program of an attempt.
pub(super) fn isolation(work: &AttemptWork) -> Option<Isolation> {
    work.spec.confinement().and_then(|confinement| confinement.isolation)
}

/// Returns true if the program may change only some files, or reach only a part of the network.
pub(super) fn is_confined(work: &AttemptWork, program: &ProgramSpec) -> bool {
    SandboxSubject::for_attempt(program, work).is_confined()
}

/// Plans the sandbox of a program that works in `workspace`. Lists folders again if one has changed since the
/// last time.
///
/// # Errors
/// `agent-not-started` if the mechanism that existed at the start of the service no longer exists.
pub(super) async fn plan(
    subject: &SandboxSubject<'_>,
    context: &Arc<SharedDriverContext>,
    workspace: &Path,
) -> Result<SandboxPlan, Failure> {
    let Some(isolation) = subject.isolation else { return Ok(SandboxPlan::Unconfined) };
    let (access, sandbox) = (subject.access, subject.sandbox);
    let writable = writable_paths(access, sandbox, workspace);
    let private_folders = subject.private_folders.clone();
    if isolation == Isolation::Landlock {
        refuse_escape_sockets(subject, context).await?;
        let network = match sandbox.allows_network {
            true => NetworkAccess::Full,
            false => NetworkAccess::Refused,
        };
        if !sandbox.restricts_writes(access) {
            return Ok(SandboxPlan::DomainWithoutFileRules { network });
        }
        let readable = readable_paths(context).await?;
        let shared_memory = context.service_paths.shared_memory_folder(sandbox, workspace);
        let files = Some(FileAccess {
            readable_paths: readable,
            writable_paths: writable,
            private_folders,
            shared_memory,
        });
        return Ok(SandboxPlan::DomainWithFileRules(LandlockDomain { files, network }));
    }
    let mut service_files = ProtectedServiceFiles::clone(&context.service_paths.service_files());
    service_files.hidden_paths.extend(find_escape_sockets(sandbox, context).await);
    let service_files = retain_reachable_files(service_files, subject.user).await;
    let view = FilesystemView {
        writable_paths: writable,
        private_folders,
        shares_network: sandbox.allows_network,
        home: subject.home.to_owned(),
        workspace: workspace.to_owned(),
        workspace_roots: sandbox
            .canonical_paths
            .as_ref()
            .map(|roots| roots.working_dirs.clone())
            .unwrap_or_default(),
        // A program with a sandbox of its own restricts its workspace itself.
        is_workspace_writable: access == Access::ReadWrite || sandbox.has_inner_sandbox,
        creates_sandboxes: sandbox.has_inner_sandbox,
        hidden_paths: sandbox.hidden.clone(),
        empty_file: context.empty_file(),
        protected_paths: sandbox.protected.clone(),
        service_files,
    };
    let bubblewrap = context.settings.bubblewrap.clone().ok_or_else(setup_failure)?;
    Ok(SandboxPlan::View(Box::new(view), bubblewrap))
}

/// Returns everything that a program may read.
async fn readable_paths(context: &Arc<SharedDriverContext>) -> Result<Arc<ReadablePaths>, Failure> {
    if let Some(readable) = context.service_paths.cached_readable_paths() {
        return Ok(readable);
    }
    let context = Arc::clone(context);
    let paths = spawn_blocking(move || context.service_paths.readable_paths()).await;
    paths.map_err(|error| sandbox_failure(&io::Error::other(error).into()))
}

/// Returns the paths that the program may change, in addition to those that the service creates for it.
fn writable_paths(access: Access, sandbox: &Sandbox, workspace: &Path) -> Vec<PathBuf> {
    let Sandbox { canonical_paths: roots, writable, .. } = sandbox;
    let resolved = roots.as_ref().map(|roots| roots.writable.clone());
    let mut paths = resolved.or_else(|| writable.clone()).unwrap_or_default();
    if !sandbox.restricts_writes(access) {
        paths.push(PathBuf::from("/"));
    } else if access == Access::ReadWrite {
        paths.push(workspace.to_owned());
    }
    paths
}

/// Prepares the resources that the plan needs.
///
/// # Errors
/// `agent-not-started` if the system does not provide them: no program runs with less confinement than promised.
pub(super) async fn prepare(
    plan: SandboxPlan,
    context: &Arc<SharedDriverContext>,
    SandboxSubject { user, sandbox, .. }: &SandboxSubject<'_>,
) -> Result<PreparedSandbox, Failure> {
    let user = *user;
    let unrestricted_sandbox =
        LaunchSandbox { ruleset: None, view: None, root_capabilities: RootCapabilities::All };
    let ruleset_without_file_rules = |network| {
        let ruleset = context.scratch_slots.ruleset_without_file_rules(network);
        ruleset.map_err(|error| sandbox_failure(&error))
    };
    match plan {
        SandboxPlan::Unconfined => Ok((unrestricted_sandbox, None)),
        // A domain that restricts no file still separates the processes of agents from others.
        SandboxPlan::DomainWithoutFileRules { network } => {
            // With all capabilities a program of root could mount a network, or open a network device.
            let root_capabilities = match network {
                NetworkAccess::Full => RootCapabilities::All,
                _ => RootCapabilities::ReadWrite,
            };
            let ruleset = ruleset_without_file_rules(network)?;
            Ok((LaunchSandbox { ruleset, root_capabilities, ..unrestricted_sandbox }, None))
        }
        SandboxPlan::View(view, bubblewrap) => {
            let network = match view.shares_network {
                true => NetworkAccess::Full,
                false => NetworkAccess::EmptyNamespace,
            };
            let ruleset = match can_run_in_domain(&bubblewrap) {
                true => ruleset_without_file_rules(network)?,
                false => None,
            };
            Ok((
                LaunchSandbox { ruleset, view: Some((view, bubblewrap)), ..unrestricted_sandbox },
                None,
            ))
        }
        SandboxPlan::DomainWithFileRules(domain) => {
            // A ruleset with hundreds of paths costs more than a short run, so a used slot is preferred.
            let slot = match context.scratch_slots.take_idle_slot(&domain, user) {
                Some(slot) => slot,
                None => create_slot(context, domain, user).await?,
            };
            let ruleset = Some(slot.ruleset());
            // Without writable folders only a read-only agent has a slot.
            let has_writable_folders = sandbox.writable.is_some();
            // As root, `tar -x` and `cp -a` have to change owners where the agent may write.
            let root_capabilities = if has_writable_folders {
                RootCapabilities::ReadWrite
            } else {
                RootCapabilities::ReadOnly
            };
            Ok((LaunchSandbox { ruleset, root_capabilities, ..unrestricted_sandbox }, Some(slot)))
        }
    }
}

async fn create_slot(
    context: &Arc<SharedDriverContext>,
    domain: LandlockDomain,
    user: Option<UnixUser>,
) -> Result<ScratchSlot, Failure> {
    let context = Arc::clone(context);
    let slot = spawn_blocking(move || context.scratch_slots.create(domain, user)).await;
    let slot = slot.unwrap_or_else(|error| Err(io::Error::other(error).into()));
    slot.map_err(|error| sandbox_failure(&error))
}

/// Returns true if bubblewrap works inside of a domain. A bubblewrap that runs as root by its mode bit does not,
/// because a domain disables that bit. Before version 6 every domain refuses mounts.
fn can_run_in_domain(bubblewrap: &Path) -> bool {
    let has_setuid_bit = |metadata: fs::Metadata| metadata.permissions().mode() & SETUID_BIT != 0;
    let needs_setuid_bit =
        !geteuid().is_root() && fs::metadata(bubblewrap).is_ok_and(has_setuid_bit);
    abi_version().is_some_and(|version| version >= 6) && !needs_setuid_bit
}

impl LaunchSandbox {
    /// Returns true if a launch can use the plan without reading files.
    pub(super) fn can_apply_without_io(&self) -> bool {
        self.view.is_none()
    }

    /// Lets the program change a folder, unless it may already.
    pub(super) fn allow_writing(&mut self, folder: &Path) {
        if let Some((view, _)) = &mut self.view {
            view.private_folders.push(folder.to_owned());
        }
    }

    /// Applies the sandbox to a launch. Reads files if it creates a view.
    ///
    /// # Errors
    /// `agent-not-started` if the system does not provide it.
    pub(super) fn apply(self, mut launch: LaunchRequest) -> Result<LaunchRequest, Failure> {
        let Self { ruleset, view, root_capabilities } = self;
        if let Some((view, bubblewrap)) = view {
            check_executable(&launch.program)?;
            let wrapper = view.build_wrapper_command(&bubblewrap, &launch.program);
            launch.wrapper = Some(wrapper.map_err(|error| sandbox_failure(&error))?);
        }
        (launch.ruleset, launch.root_capabilities) = (ruleset, root_capabilities);
        Ok(launch)
    }

    /// Applies the sandbox like [`Self::apply`], on a thread that may block.
    ///
    /// # Errors
    /// Same as [`Self::apply`].
    pub(super) async fn apply_in_background(
        self,
        launch: LaunchRequest,
    ) -> Result<LaunchRequest, Failure> {
        let applied = spawn_blocking(move || self.apply(launch)).await;
        applied.unwrap_or_else(|error| Err(sandbox_failure(&io::Error::other(error).into())))
    }
}

/// Returns the paths that a program cannot see, and from which no answer may hand over a file.
pub(super) fn hidden_paths(program: &ProgramSpec, context: &SharedDriverContext) -> Vec<PathBuf> {
    let service = context.service_paths.hidden_paths();
    service.into_iter().chain(program.sandbox.hidden.iter().cloned()).collect()
}

/// Sets the variable for temporary files, unless the configuration or the caller has set it.
pub(super) fn set_temporary_folder(
    env: &mut BTreeMap<OsString, OsString>,
    configured: &BTreeMap<String, EnvVariable>,
    inherited: &InheritedVariables,
    attempt_folder: &Path,
) {
    let is_inherited = env.get(&OsString::from(TMPDIR_VARIABLE))
        == inherited.get(&OsString::from(TMPDIR_VARIABLE));
    if is_inherited && !configured.contains_key(TMPDIR_VARIABLE) {
        env.insert(TMPDIR_VARIABLE.into(), attempt_folder.join(TEMPORARY_FOLDER).into());
    }
}
