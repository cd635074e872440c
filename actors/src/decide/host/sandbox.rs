//! Isolation of an agent on this machine: the mechanism, how far it enforces the sandbox, and the boundary
//! to the service.

use crate::model::agent::Access;
use crate::model::host::boundary::{Boundary, BoundaryGap, BoundaryLevel};
use crate::model::host::sandbox::{Capabilities, Confinement, Enforcement, Isolation, Sandbox};
use crate::model::program::Exit;

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
    pub hazards: Vec<Hazard>,
}

/// Hazard to the boundary of an agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hazard {
    /// A folder that the agent may change contains a file that the service trusts. A mount protects the
    /// file, and Landlock cannot.
    ServiceFiles,
    /// The agent may add files beside the configuration, or replace a link that leads to it. No mount
    /// protects what does not exist.
    ConfigurationFolder,
    /// A socket is reachable through which a program can be started outside of every sandbox. A mount hides
    /// it, and Landlock cannot.
    Sockets,
    /// The configuration permits the agent to use such a socket.
    AllowedSockets,
}

impl BoundaryFacts {
    fn has(&self, hazard: Hazard) -> bool {
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
    capabilities: Capabilities,
    facts: &BoundaryFacts,
) -> Confinement {
    if !sandbox.enforce {
        let enforcement =
            if sandbox.restricts(access) { Enforcement::Off } else { Enforcement::Unneeded };
        return Confinement { enforcement, isolation: None, boundary: unconfined_boundary(facts) };
    }
    let confinement = choose_enforced(access, sandbox, capabilities, facts);
    // The restrictions of the program's own sandbox are not known here.
    match sandbox.has_own_sandbox && access == Access::ReadOnly {
        true => Confinement { enforcement: Enforcement::Off, ..confinement },
        false => confinement,
    }
}

/// Chooses the isolation of an agent that the system is to isolate.
fn choose_enforced(
    access: Access,
    sandbox: &Sandbox,
    capabilities: Capabilities,
    facts: &BoundaryFacts,
) -> Confinement {
    // Before version 6 every domain refuses the mounts that a nested sandbox needs.
    let version = capabilities
        .landlock
        .filter(|version| !sandbox.has_own_sandbox || *version >= LANDLOCK_SCOPE_VERSION);
    let landlock = with_landlock(access, sandbox, version, facts);
    let is_landlock_enough =
        !landlock.enforcement.is_incomplete() && landlock.boundary.gaps.is_empty();
    let requires_bubblewrap = sandbox.isolation == Some(Isolation::Bubblewrap);
    let may_wrap = capabilities.bubblewrap && sandbox.isolation != Some(Isolation::Landlock);
    if may_wrap && (requires_bubblewrap || !is_landlock_enough) {
        with_bubblewrap(access, sandbox, facts)
    } else {
        landlock
    }
}

/// Confinement by bubblewrap: it hides the service's files and puts other processes in another namespace.
fn with_bubblewrap(access: Access, sandbox: &Sandbox, facts: &BoundaryFacts) -> Confinement {
    let enforcement =
        if sandbox.restricts(access) { Enforcement::Enforced } else { Enforcement::Unneeded };
    let level =
        if facts.has_own_user { BoundaryLevel::OwnUser } else { BoundaryLevel::MountNamespace };
    let mut gaps = Vec::new();
    if !facts.has_own_user {
        if facts.has(Hazard::ConfigurationFolder) {
            gaps.push(BoundaryGap::ConfigurationFolder);
        }
        if !sandbox.guards_files(access) {
            gaps.push(BoundaryGap::UserFiles);
        }
    }
    if facts.has(Hazard::AllowedSockets) {
        gaps.push(BoundaryGap::Sockets);
    }
    let boundary = Boundary { level, gaps };
    Confinement { enforcement, isolation: Some(Isolation::Bubblewrap), boundary }
}

/// Confinement by a version of Landlock; `None` stands for a kernel without Landlock.
fn with_landlock(
    access: Access,
    sandbox: &Sandbox,
    version: Option<u32>,
    facts: &BoundaryFacts,
) -> Confinement {
    let enforcement = match sandbox.restricts(access) {
        true => enforced_by_landlock(access, sandbox, version),
        false => Enforcement::Unneeded,
    };
    let Some(version) = version else {
        return Confinement { enforcement, isolation: None, boundary: unconfined_boundary(facts) };
    };
    let isolation = (enforcement != Enforcement::Unavailable).then_some(Isolation::Landlock);
    if facts.has_own_user {
        return Confinement { enforcement, isolation, boundary: unconfined_boundary(facts) };
    }
    let mut gaps = Vec::new();
    if !sandbox.guards_files(access) {
        gaps.push(BoundaryGap::ServiceFiles);
    }
    if !sandbox.guards_files(access) || facts.has(Hazard::ServiceFiles) {
        gaps.push(BoundaryGap::Configuration);
    }
    if !sandbox.guards_files(access) || facts.has(Hazard::ConfigurationFolder) {
        gaps.push(BoundaryGap::ConfigurationFolder);
    }
    if !sandbox.guards_files(access) {
        gaps.push(BoundaryGap::UserFiles);
    }
    if version < LANDLOCK_SCOPE_VERSION {
        gaps.push(BoundaryGap::Signals);
    }
    if facts.has(Hazard::Sockets) || facts.has(Hazard::AllowedSockets) {
        gaps.push(BoundaryGap::Sockets);
    }
    let level = if gaps.contains(&BoundaryGap::ServiceFiles) {
        BoundaryLevel::None
    } else {
        BoundaryLevel::Landlock
    };
    Confinement { enforcement, isolation, boundary: Boundary { level, gaps } }
}

/// Returns the boundary of an agent without confinement: another user is a boundary,
/// the service's own user is none.
fn unconfined_boundary(facts: &BoundaryFacts) -> Boundary {
    if facts.has_own_user {
        return Boundary { level: BoundaryLevel::OwnUser, gaps: Vec::new() };
    }
    let mut gaps = vec![
        BoundaryGap::ServiceFiles,
        BoundaryGap::Configuration,
        BoundaryGap::ConfigurationFolder,
        BoundaryGap::UserFiles,
        BoundaryGap::Processes,
        BoundaryGap::Signals,
    ];
    if facts.has(Hazard::Sockets) || facts.has(Hazard::AllowedSockets) {
        gaps.push(BoundaryGap::Sockets);
    }
    Boundary { level: BoundaryLevel::None, gaps }
}

/// Returns the extent to which a version of Landlock enforces a sandbox that has restrictions.
fn enforced_by_landlock(access: Access, sandbox: &Sandbox, version: Option<u32>) -> Enforcement {
    let Some(version) = version else { return Enforcement::Unavailable };
    let (guards_files, guards_network) = (sandbox.guards_files(access), !sandbox.allows_network);
    let lacks_files = guards_files && version < LANDLOCK_TRUNCATE_VERSION;
    // A seccomp filter refuses the network, with every version.
    let lacks_some = lacks_files || sandbox.needs_bubblewrap();
    match (lacks_some, guards_files || guards_network) {
        (false, _) => Enforcement::Enforced,
        (true, true) => Enforcement::Partial,
        (true, false) => Enforcement::Unavailable,
    }
}

/// Returns true if the output of a failed program complains about refused access. The result is a guess from the
/// program's messages, so it explains a failure and never causes one.
#[must_use]
pub fn reports_denied_access(stderr: &str) -> bool {
    const ACCESS_ERRORS: [&str; 4] =
        ["EACCES", "EXDEV", "permission denied", "read-only file system"];
    let text = stderr.to_lowercase();
    ACCESS_ERRORS.iter().any(|word| text.contains(&word.to_lowercase()))
}

/// Returns true if bubblewrap reports that it could not start the program. Only its message shows this, so the result
/// is false for every program with output.
#[must_use]
pub fn bwrap_failed(isolation: Option<Isolation>, exit: Exit, stdout: &str, stderr: &str) -> bool {
    let is_wrapped = isolation == Some(Isolation::Bubblewrap);
    is_wrapped && exit == Exit::Code(1) && stdout.is_empty() && stderr.starts_with("bwrap: ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use Enforcement::{Enforced, Off, Partial, Unavailable, Unneeded};

    const READS: Access = Access::ReadOnly;
    const WRITES: Access = Access::ReadWrite;
    const LANDLOCK: Option<Isolation> = Some(Isolation::Landlock);
    const BUBBLEWRAP: Option<Isolation> = Some(Isolation::Bubblewrap);

    fn base() -> Sandbox {
        Sandbox::default()
    }

    fn confined() -> Sandbox {
        Sandbox { writable: Some(Vec::new()), ..base() }
    }

    fn nested() -> Sandbox {
        Sandbox { has_own_sandbox: true, ..base() }
    }

    fn hidden() -> Sandbox {
        Sandbox { hidden: vec!["/srv".into()], ..base() }
    }

    fn confinement_of(
        access: Access,
        sandbox: &Sandbox,
        (landlock, bubblewrap): (Option<u32>, bool),
    ) -> Confinement {
        choose_confinement(
            access,
            sandbox,
            Capabilities { landlock, bubblewrap },
            &BoundaryFacts::default(),
        )
    }

    #[test]
    fn enforcement_depends_on_the_sandbox_and_the_kernel() {
        for (access, sandbox, by_version) in [
            (READS, base(), [Unavailable, Partial, Enforced, Enforced]),
            (READS, Sandbox { enforce: false, ..base() }, [Off; 4]),
            (READS, nested(), [Off; 4]),
            (WRITES, nested(), [Unneeded; 4]),
            (
                READS,
                Sandbox { allows_network: false, ..base() },
                [Unavailable, Partial, Enforced, Enforced],
            ),
            (WRITES, base(), [Unneeded; 4]),
            (WRITES, confined(), [Unavailable, Partial, Enforced, Enforced]),
            (
                WRITES,
                Sandbox { allows_network: false, ..base() },
                [Unavailable, Enforced, Enforced, Enforced],
            ),
        ] {
            let versions = [None, Some(1), Some(3), Some(4)];
            let enforcements = versions
                .map(|version| confinement_of(access, &sandbox, (version, false)).enforcement);
            assert_eq!(enforcements, by_version, "{access:?} {sandbox:?}");
        }
    }

    #[test]
    fn bubblewrap_is_used_if_landlock_leaves_a_gap() {
        let landlock_only = || Sandbox { isolation: LANDLOCK, ..base() };
        for (access, sandbox, by_version) in [
            (READS, base(), [BUBBLEWRAP, BUBBLEWRAP, BUBBLEWRAP, LANDLOCK]),
            (
                READS,
                Sandbox { allows_network: false, ..base() },
                [BUBBLEWRAP, BUBBLEWRAP, BUBBLEWRAP, LANDLOCK],
            ),
            (READS, landlock_only(), [None, LANDLOCK, LANDLOCK, LANDLOCK]),
            (READS, Sandbox { isolation: BUBBLEWRAP, ..base() }, [BUBBLEWRAP; 4]),
            (WRITES, base(), [BUBBLEWRAP; 4]),
            (WRITES, confined(), [BUBBLEWRAP, BUBBLEWRAP, BUBBLEWRAP, LANDLOCK]),
            (WRITES, hidden(), [BUBBLEWRAP; 4]),
            (WRITES, Sandbox { protected: vec![".git".into()], ..base() }, [BUBBLEWRAP; 4]),
            (WRITES, landlock_only(), [None, LANDLOCK, LANDLOCK, LANDLOCK]),
            (WRITES, Sandbox { enforce: false, ..hidden() }, [None; 4]),
            (READS, nested(), [BUBBLEWRAP; 4]),
            (READS, Sandbox { isolation: LANDLOCK, ..nested() }, [None, None, None, LANDLOCK]),
        ] {
            let versions = [None, Some(1), Some(4), Some(6)];
            let isolations =
                versions.map(|version| confinement_of(access, &sandbox, (version, true)).isolation);
            assert_eq!(isolations, by_version, "{access:?} {sandbox:?}");
        }
    }

    #[test]
    fn landlock_alone_enforces_only_a_part() {
        for (access, sandbox, expected) in [
            (READS, hidden(), (Partial, LANDLOCK)),
            (WRITES, hidden(), (Unavailable, None)),
            (WRITES, Sandbox { allows_network: false, ..hidden() }, (Partial, LANDLOCK)),
        ] {
            let confinement = confinement_of(access, &sandbox, (Some(4), false));
            assert_eq!(
                (confinement.enforcement, confinement.isolation),
                expected,
                "{access:?} {sandbox:?}"
            );
        }
    }

    #[test]
    fn the_boundary_names_every_gap() {
        use BoundaryGap::{
            Configuration, ConfigurationFolder, Processes, ServiceFiles, Signals, Sockets,
            UserFiles,
        };
        let facts_with =
            |hazards: &[Hazard]| BoundaryFacts { has_own_user: false, hazards: hazards.to_vec() };
        let (no_hazards, sockets) = (facts_with(&[]), facts_with(&[Hazard::Sockets]));
        let (service_files, allowed) =
            (facts_with(&[Hazard::ServiceFiles]), facts_with(&[Hazard::AllowedSockets]));
        let changeable_folder = facts_with(&[Hazard::ServiceFiles, Hazard::ConfigurationFolder]);
        let own_user = BoundaryFacts {
            has_own_user: true,
            ..facts_with(&[Hazard::ServiceFiles, Hazard::Sockets])
        };
        let unenforced = || Sandbox { enforce: false, ..base() };
        let file_gaps = &[ServiceFiles, Configuration, ConfigurationFolder, UserFiles][..];
        let all_gaps = &[file_gaps, &[Processes, Signals]].concat()[..];
        let no_gaps = &[][..];
        for (access, sandbox, version, facts, (level, landlock), bubblewrap_gaps) in [
            (READS, base(), Some(6), &no_hazards, (BoundaryLevel::Landlock, no_gaps), no_gaps),
            (READS, base(), Some(5), &no_hazards, (BoundaryLevel::Landlock, &[Signals]), no_gaps),
            (READS, base(), None, &no_hazards, (BoundaryLevel::None, all_gaps), no_gaps),
            (READS, unenforced(), Some(6), &no_hazards, (BoundaryLevel::None, all_gaps), all_gaps),
            (READS, nested(), Some(6), &no_hazards, (BoundaryLevel::None, file_gaps), &[UserFiles]),
            (READS, nested(), Some(5), &no_hazards, (BoundaryLevel::None, all_gaps), &[UserFiles]),
            (READS, nested(), None, &own_user, (BoundaryLevel::OwnUser, no_gaps), no_gaps),
            (READS, base(), Some(6), &sockets, (BoundaryLevel::Landlock, &[Sockets]), no_gaps),
            (READS, base(), Some(6), &allowed, (BoundaryLevel::Landlock, &[Sockets]), &[Sockets]),
            (WRITES, base(), Some(6), &no_hazards, (BoundaryLevel::None, file_gaps), &[UserFiles]),
            (
                WRITES,
                base(),
                Some(6),
                &changeable_folder,
                (BoundaryLevel::None, file_gaps),
                &[ConfigurationFolder, UserFiles],
            ),
            (WRITES, confined(), Some(6), &no_hazards, (BoundaryLevel::Landlock, no_gaps), no_gaps),
            (
                WRITES,
                confined(),
                Some(6),
                &service_files,
                (BoundaryLevel::Landlock, &[Configuration]),
                no_gaps,
            ),
            (WRITES, base(), None, &own_user, (BoundaryLevel::OwnUser, no_gaps), no_gaps),
            (WRITES, unenforced(), Some(6), &own_user, (BoundaryLevel::OwnUser, no_gaps), no_gaps),
        ] {
            let case = format!("{access:?} {sandbox:?} {version:?} {facts:?}");
            let capabilities = Capabilities { landlock: version, bubblewrap: false };
            let boundary = choose_confinement(access, &sandbox, capabilities, facts).boundary;
            assert_eq!(boundary, Boundary { level, gaps: landlock.to_vec() }, "{case}");
            let capabilities = Capabilities { landlock: version, bubblewrap: true };
            assert_eq!(
                choose_confinement(access, &sandbox, capabilities, facts).boundary.gaps,
                bubblewrap_gaps,
                "{case}"
            );
        }
    }

    #[test]
    fn only_output_of_a_failed_wrapper_is_attributed_to_it() {
        let (bubblewrap, landlock) = (Some(Isolation::Bubblewrap), Some(Isolation::Landlock));
        let bwrap_error = "bwrap: execvp /x: No such file or directory\n";
        for (isolation, exit, stdout, stderr, expected) in [
            (bubblewrap, Exit::Code(1), "", bwrap_error, true),
            (landlock, Exit::Code(1), "", bwrap_error, false),
            (None, Exit::Code(1), "", bwrap_error, false),
            (bubblewrap, Exit::Code(2), "", bwrap_error, false),
            (bubblewrap, Exit::Signal(9), "", bwrap_error, false),
            (bubblewrap, Exit::Code(1), "answer", bwrap_error, false),
            (bubblewrap, Exit::Code(1), "", "no bwrap: here", false),
        ] {
            assert_eq!(
                bwrap_failed(isolation, exit, stdout, stderr),
                expected,
                "{exit:?} {stderr}"
            );
        }
    }

    #[test]
    fn permission_errors_of_shells_and_languages_are_recognized() {
        for (text, expected) in [
            ("sh: 1: cannot create x: Permission denied", true),
            ("Error: EACCES: permission denied, mkdir '/srv/.x'", true),
            ("PermissionError: [Errno 13] Permission denied: 'x'", true),
            ("mv: cannot move: Read-only file system", true),
            ("no such model", false),
        ] {
            assert_eq!(reports_denied_access(text), expected, "{text}");
        }
    }
}
