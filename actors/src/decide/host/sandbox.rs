//! Isolation of an agent on this machine: the mechanism, how far it enforces the sandbox, and the boundary
//! to the service.

#[cfg(test)]
mod tests;

use crate::model::agent::Access;
use crate::model::host::boundary::{Boundary, BoundaryGap, BoundaryLevel};
use crate::model::host::sandbox::{
    Confinement, Enforcement, Isolation, Sandbox, SandboxCapabilities,
};
use crate::model::program::ProcessExit;

/// First version of Landlock that distinguishes truncation of a file from reading.
const LANDLOCK_TRUNCATE_VERSION: u32 = 3;
/// First version that keeps signals and abstract sockets inside the domain.
const LANDLOCK_SCOPE_VERSION: u32 = 6;

/// Facts about an agent and its surroundings that decide which boundary can hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BoundaryFacts {
    /// True if the agent runs as another user than the service.
    pub has_own_user: bool,
    /// Hazards to the boundary.
    pub hazards: Vec<BoundaryHazard>,
}

/// Hazard to the boundary of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoundaryHazard {
    /// A folder that the agent may change contains a file that the service trusts. A mount protects the
    /// file, and Landlock cannot.
    TrustedFilesInWritableFolder,
    /// Such a folder contains, or lies in, a file that the agent may not read. Landlock grants reading with changing.
    SecretFilesInWritableFolder,
    /// The agent may add files beside the configuration, or replace a link that leads to it. No mount
    /// protects what does not exist.
    ConfigurationFolder,
    /// A socket is reachable through which a program can be started outside of every sandbox. A mount hides
    /// it, and Landlock cannot.
    EscapeSockets,
    /// The configuration permits the agent to use such a socket.
    AllowedEscapeSockets,
    /// The agent's own user can read a secret file by its mode. A mount hides the file. Landlock hides it too, unless
    /// the agent may change everything or a secret file is in one of its writable folders.
    SecretFilesReadableByOwnUser,
    /// Another agent runs as the same user, which is not the service's user. Mounts separate the agents. Landlock 6
    /// separates them too, with the same exceptions.
    SharedOwnUser,
}

impl BoundaryFacts {
    fn has(&self, hazard: BoundaryHazard) -> bool {
        self.hazards.contains(&hazard)
    }
}

/// Chooses the isolation of an agent from the capabilities of this machine.
///
/// Landlock is preferred where it enforces all of the sandbox and leaves no gap, because bubblewrap costs
/// some milliseconds for each start.
#[must_use]
pub fn choose_confinement(
    access: Access,
    sandbox: &Sandbox,
    capabilities: SandboxCapabilities,
    facts: &BoundaryFacts,
) -> Confinement {
    if !sandbox.is_enforced {
        let enforcement =
            if sandbox.has_restrictions(access) { Enforcement::Off } else { Enforcement::Unneeded };
        return Confinement { enforcement, isolation: None, boundary: unconfined_boundary(facts) };
    }
    let confinement = choose_enforced_confinement(access, sandbox, capabilities, facts);
    // The restrictions of the program's own sandbox are not known here.
    match sandbox.has_inner_sandbox && access == Access::ReadOnly {
        true => Confinement { enforcement: Enforcement::Off, ..confinement },
        false => confinement,
    }
}

/// Chooses the isolation of an agent that the system is to isolate.
fn choose_enforced_confinement(
    access: Access,
    sandbox: &Sandbox,
    capabilities: SandboxCapabilities,
    facts: &BoundaryFacts,
) -> Confinement {
    // Before version 6 every domain refuses the mounts that a nested sandbox needs.
    let version = capabilities
        .landlock
        .filter(|version| !sandbox.has_inner_sandbox || *version >= LANDLOCK_SCOPE_VERSION);
    let landlock = landlock_confinement(access, sandbox, version, facts);
    let is_landlock_enough =
        !landlock.enforcement.is_incomplete() && landlock.boundary.gaps.is_empty();
    let requires_bubblewrap = sandbox.isolation == Some(Isolation::Bubblewrap);
    let may_use_bubblewrap =
        capabilities.bubblewrap && sandbox.isolation != Some(Isolation::Landlock);
    if may_use_bubblewrap && (requires_bubblewrap || !is_landlock_enough) {
        bubblewrap_confinement(access, sandbox, facts)
    } else {
        landlock
    }
}

/// Confinement by bubblewrap: it hides the service's files and puts other processes in another namespace.
fn bubblewrap_confinement(access: Access, sandbox: &Sandbox, facts: &BoundaryFacts) -> Confinement {
    let enforcement = if sandbox.has_restrictions(access) {
        Enforcement::Enforced
    } else {
        Enforcement::Unneeded
    };
    let level =
        if facts.has_own_user { BoundaryLevel::OwnUser } else { BoundaryLevel::MountNamespace };
    let mut gaps = Vec::new();
    if !facts.has_own_user {
        if facts.has(BoundaryHazard::ConfigurationFolder) {
            gaps.push(BoundaryGap::ConfigurationFolder);
        }
        if !sandbox.restricts_writes(access) {
            gaps.push(BoundaryGap::UserFiles);
        }
    }
    if facts.has(BoundaryHazard::AllowedEscapeSockets) {
        gaps.push(BoundaryGap::Sockets);
    }
    let boundary = Boundary { level, gaps };
    Confinement { enforcement, isolation: Some(Isolation::Bubblewrap), boundary }
}

/// Confinement by a version of Landlock; `None` stands for a kernel without Landlock.
fn landlock_confinement(
    access: Access,
    sandbox: &Sandbox,
    version: Option<u32>,
    facts: &BoundaryFacts,
) -> Confinement {
    let enforcement = match sandbox.has_restrictions(access) {
        true => landlock_enforcement(access, sandbox, version),
        false => Enforcement::Unneeded,
    };
    let Some(version) = version else {
        return Confinement { enforcement, isolation: None, boundary: unconfined_boundary(facts) };
    };
    let isolation = (enforcement != Enforcement::Unavailable).then_some(Isolation::Landlock);
    if facts.has_own_user {
        // Landlock grants reading with changing.
        let hides_service_files = isolation.is_some()
            && sandbox.restricts_writes(access)
            && !facts.has(BoundaryHazard::SecretFilesInWritableFolder);
        let domain_version = hides_service_files.then_some(version);
        let boundary = own_user_boundary(facts, domain_version);
        return Confinement { enforcement, isolation, boundary };
    }
    let mut gaps = Vec::new();
    if !sandbox.restricts_writes(access) || facts.has(BoundaryHazard::SecretFilesInWritableFolder) {
        gaps.push(BoundaryGap::ServiceFiles);
    }
    if !sandbox.restricts_writes(access) || facts.has(BoundaryHazard::TrustedFilesInWritableFolder)
    {
        gaps.push(BoundaryGap::Configuration);
    }
    if !sandbox.restricts_writes(access) || facts.has(BoundaryHazard::ConfigurationFolder) {
        gaps.push(BoundaryGap::ConfigurationFolder);
    }
    if !sandbox.restricts_writes(access) {
        gaps.push(BoundaryGap::UserFiles);
    }
    if version < LANDLOCK_SCOPE_VERSION {
        gaps.push(BoundaryGap::Signals);
    }
    if facts.has(BoundaryHazard::EscapeSockets) || facts.has(BoundaryHazard::AllowedEscapeSockets) {
        gaps.push(BoundaryGap::Sockets);
    }
    let level = if gaps.contains(&BoundaryGap::ServiceFiles) {
        BoundaryLevel::None
    } else {
        BoundaryLevel::Landlock
    };
    Confinement { enforcement, isolation, boundary: Boundary { level, gaps } }
}

/// Returns the boundary of an agent with a user of its own, outside of bubblewrap. Modes of files protect the files of
/// the service; only a domain separates agents of the same user. `domain_version` is the version of Landlock if its
/// domain hides the files of the service, with the homes of other agents among them.
fn own_user_boundary(facts: &BoundaryFacts, domain_version: Option<u32>) -> Boundary {
    let mut gaps = Vec::new();
    if facts.has(BoundaryHazard::SecretFilesReadableByOwnUser) && domain_version.is_none() {
        gaps.push(BoundaryGap::ServiceFiles);
    }
    let separates_agents = domain_version.is_some_and(|version| version >= LANDLOCK_SCOPE_VERSION);
    if facts.has(BoundaryHazard::SharedOwnUser) && !separates_agents {
        gaps.push(BoundaryGap::OtherAgents);
    }
    Boundary { level: BoundaryLevel::OwnUser, gaps }
}

/// Returns the boundary of an agent without confinement: another user is a boundary,
/// the service's own user is none.
fn unconfined_boundary(facts: &BoundaryFacts) -> Boundary {
    if facts.has_own_user {
        return own_user_boundary(facts, None);
    }
    let mut gaps = vec![
        BoundaryGap::ServiceFiles,
        BoundaryGap::Configuration,
        BoundaryGap::ConfigurationFolder,
        BoundaryGap::UserFiles,
        BoundaryGap::Processes,
        BoundaryGap::Signals,
    ];
    if facts.has(BoundaryHazard::EscapeSockets) || facts.has(BoundaryHazard::AllowedEscapeSockets) {
        gaps.push(BoundaryGap::Sockets);
    }
    Boundary { level: BoundaryLevel::None, gaps }
}

/// Returns the extent to which a version of Landlock enforces a sandbox that has restrictions.
fn landlock_enforcement(access: Access, sandbox: &Sandbox, version: Option<u32>) -> Enforcement {
    let Some(version) = version else { return Enforcement::Unavailable };
    let (restricts_files, restricts_network) =
        (sandbox.restricts_writes(access), !sandbox.allows_network);
    let lacks_file_enforcement = restricts_files && version < LANDLOCK_TRUNCATE_VERSION;
    // A seccomp filter refuses the network, with every version.
    let cannot_enforce_all = lacks_file_enforcement || sandbox.needs_bubblewrap();
    match (cannot_enforce_all, restricts_files || restricts_network) {
        (false, _) => Enforcement::Enforced,
        (true, true) => Enforcement::Partial,
        (true, false) => Enforcement::Unavailable,
    }
}

/// Returns true if bubblewrap reports that it could not start the program. Only its message shows this, so the result
/// is false for every program with output.
#[must_use]
pub fn bwrap_failed(
    isolation: Option<Isolation>,
    exit: ProcessExit,
    stdout: &str,
    stderr: &str,
) -> bool {
    let uses_bubblewrap = isolation == Some(Isolation::Bubblewrap);
    uses_bubblewrap
        && exit == ProcessExit::Code(1)
        && stdout.is_empty()
        && stderr.starts_with("bwrap: ")
}
