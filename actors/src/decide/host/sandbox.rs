//! Isolation of an agent on this machine: the mechanism, how far it enforces the sandbox, and the boundary
//! to the service.

use crate::model::agent::Access;
use crate::model::host::boundary::{Boundary, BoundaryGap, BoundaryLevel};
use crate::model::host::sandbox::{Capabilities, Confinement, Enforcement, Isolation, Sandbox};
use crate::model::program::Exit;

/// First version of Landlock that distinguishes truncation of a file from reading.
const LANDLOCK_TRUNCATE_VERSION: u32 = 3;
/// First version with rules for TCP.
const LANDLOCK_NETWORK_VERSION: u32 = 4;
/// First version that keeps signals and abstract sockets inside the domain.
const LANDLOCK_SCOPE_VERSION: u32 = 6;

/// Facts about an agent and its surroundings that decide which boundary can hold.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct BoundaryFacts {
    /// True if the agent runs as another user than the service.
    pub own_user: bool,
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
pub fn isolate(
    access: Access,
    sandbox: &Sandbox,
    means: Capabilities,
    facts: &BoundaryFacts,
) -> Confinement {
    if !sandbox.enforce {
        let off = if sandbox.restricts(access) { Enforcement::Off } else { Enforcement::Unneeded };
        return Confinement { enforcement: off, isolation: None, boundary: unconfined(facts) };
    }
    let chosen = choose(access, sandbox, means, facts);
    // The restrictions of the program's own sandbox are not known here.
    match sandbox.nested && access == Access::ReadOnly {
        true => Confinement { enforcement: Enforcement::Off, ..chosen },
        false => chosen,
    }
}

/// Chooses the isolation of an agent that the system is to isolate.
fn choose(
    access: Access,
    sandbox: &Sandbox,
    means: Capabilities,
    facts: &BoundaryFacts,
) -> Confinement {
    // Before version 6 every domain refuses the mounts that a nested sandbox needs.
    let version =
        means.landlock.filter(|version| !sandbox.nested || *version >= LANDLOCK_SCOPE_VERSION);
    let landlock = with_landlock(access, sandbox, version, facts);
    let is_enough = !landlock.enforcement.is_incomplete() && landlock.boundary.gaps.is_empty();
    let is_asked = sandbox.isolation == Some(Isolation::Bubblewrap);
    let may_wrap = means.bubblewrap && sandbox.isolation != Some(Isolation::Landlock);
    if may_wrap && (is_asked || !is_enough) {
        with_bubblewrap(access, sandbox, facts)
    } else {
        landlock
    }
}

/// Confinement by bubblewrap: it hides the service's files and puts other processes in another namespace.
fn with_bubblewrap(access: Access, sandbox: &Sandbox, facts: &BoundaryFacts) -> Confinement {
    let enforcement =
        if sandbox.restricts(access) { Enforcement::Enforced } else { Enforcement::Unneeded };
    let level = if facts.own_user { BoundaryLevel::OwnUser } else { BoundaryLevel::MountNamespace };
    let mut gaps = Vec::new();
    if !facts.own_user {
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
        return Confinement { enforcement, isolation: None, boundary: unconfined(facts) };
    };
    let isolation = (enforcement != Enforcement::Unavailable).then_some(Isolation::Landlock);
    if facts.own_user {
        return Confinement { enforcement, isolation, boundary: unconfined(facts) };
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
fn unconfined(facts: &BoundaryFacts) -> Boundary {
    if facts.own_user {
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
    let (guards_files, guards_network) = (sandbox.guards_files(access), !sandbox.network);
    let lacks_files = guards_files && version < LANDLOCK_TRUNCATE_VERSION;
    let lacks_network = guards_network && version < LANDLOCK_NETWORK_VERSION;
    let lacks_some = lacks_files || lacks_network || sandbox.needs_bubblewrap();
    match (lacks_some, guards_files || guards_network && !lacks_network) {
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
    const LOCK: Option<Isolation> = Some(Isolation::Landlock);
    const WRAP: Option<Isolation> = Some(Isolation::Bubblewrap);

    fn usual() -> Sandbox {
        Sandbox::default()
    }

    fn confined() -> Sandbox {
        Sandbox { writable: Some(Vec::new()), ..usual() }
    }

    fn nested() -> Sandbox {
        Sandbox { nested: true, ..usual() }
    }

    fn hidden() -> Sandbox {
        Sandbox { hidden: vec!["/srv".into()], ..usual() }
    }

    fn isolated(
        access: Access,
        sandbox: &Sandbox,
        (landlock, bubblewrap): (Option<u32>, bool),
    ) -> Confinement {
        isolate(access, sandbox, Capabilities { landlock, bubblewrap }, &BoundaryFacts::default())
    }

    #[test]
    fn enforcement_depends_on_the_sandbox_and_the_kernel() {
        for (access, sandbox, by_version) in [
            (READS, usual(), [Unavailable, Partial, Enforced, Enforced]),
            (READS, Sandbox { enforce: false, ..usual() }, [Off; 4]),
            (READS, nested(), [Off; 4]),
            (WRITES, nested(), [Unneeded; 4]),
            (
                READS,
                Sandbox { network: false, ..usual() },
                [Unavailable, Partial, Partial, Enforced],
            ),
            (WRITES, usual(), [Unneeded; 4]),
            (WRITES, confined(), [Unavailable, Partial, Enforced, Enforced]),
            (
                WRITES,
                Sandbox { network: false, ..usual() },
                [Unavailable, Unavailable, Unavailable, Enforced],
            ),
        ] {
            let versions = [None, Some(1), Some(3), Some(4)];
            let found = versions.map(|it| isolated(access, &sandbox, (it, false)).enforcement);
            assert_eq!(found, by_version, "{access:?} {sandbox:?}");
        }
    }

    #[test]
    fn bubblewrap_is_used_if_landlock_leaves_a_gap() {
        let alone = || Sandbox { isolation: LOCK, ..usual() };
        for (access, sandbox, by_version) in [
            (READS, usual(), [WRAP, WRAP, WRAP, LOCK]),
            (READS, Sandbox { network: false, ..usual() }, [WRAP, WRAP, WRAP, LOCK]),
            (READS, alone(), [None, LOCK, LOCK, LOCK]),
            (READS, Sandbox { isolation: WRAP, ..usual() }, [WRAP; 4]),
            (WRITES, usual(), [WRAP; 4]),
            (WRITES, confined(), [WRAP, WRAP, WRAP, LOCK]),
            (WRITES, hidden(), [WRAP; 4]),
            (WRITES, Sandbox { protected: vec![".git".into()], ..usual() }, [WRAP; 4]),
            (WRITES, alone(), [None, LOCK, LOCK, LOCK]),
            (WRITES, Sandbox { enforce: false, ..hidden() }, [None; 4]),
            (READS, nested(), [WRAP; 4]),
            (READS, Sandbox { isolation: LOCK, ..nested() }, [None, None, None, LOCK]),
        ] {
            let versions = [None, Some(1), Some(4), Some(6)];
            let found = versions.map(|it| isolated(access, &sandbox, (it, true)).isolation);
            assert_eq!(found, by_version, "{access:?} {sandbox:?}");
        }
    }

    #[test]
    fn landlock_alone_enforces_only_a_part() {
        for (access, sandbox, expected) in [
            (READS, hidden(), (Partial, LOCK)),
            (WRITES, hidden(), (Unavailable, None)),
            (WRITES, Sandbox { network: false, ..hidden() }, (Partial, LOCK)),
        ] {
            let found = isolated(access, &sandbox, (Some(4), false));
            assert_eq!((found.enforcement, found.isolation), expected, "{access:?} {sandbox:?}");
        }
    }

    #[test]
    fn the_boundary_names_every_gap() {
        use BoundaryGap::{
            Configuration, ConfigurationFolder, Processes, ServiceFiles, Signals, Sockets,
            UserFiles,
        };
        let with =
            |hazards: &[Hazard]| BoundaryFacts { own_user: false, hazards: hazards.to_vec() };
        let (nothing, sockets) = (with(&[]), with(&[Hazard::Sockets]));
        let (covering, given) = (with(&[Hazard::ServiceFiles]), with(&[Hazard::AllowedSockets]));
        let adding = with(&[Hazard::ServiceFiles, Hazard::ConfigurationFolder]);
        let own =
            BoundaryFacts { own_user: true, ..with(&[Hazard::ServiceFiles, Hazard::Sockets]) };
        let off = || Sandbox { enforce: false, ..usual() };
        let some = &[ServiceFiles, Configuration, ConfigurationFolder, UserFiles][..];
        let all = &[some, &[Processes, Signals]].concat()[..];
        let none = &[][..];
        for (access, sandbox, version, facts, (level, landlock), wrapped) in [
            (READS, usual(), Some(6), &nothing, (BoundaryLevel::Landlock, none), none),
            (READS, usual(), Some(5), &nothing, (BoundaryLevel::Landlock, &[Signals]), none),
            (READS, usual(), None, &nothing, (BoundaryLevel::None, all), none),
            (READS, off(), Some(6), &nothing, (BoundaryLevel::None, all), all),
            (READS, nested(), Some(6), &nothing, (BoundaryLevel::None, some), &[UserFiles]),
            (READS, nested(), Some(5), &nothing, (BoundaryLevel::None, all), &[UserFiles]),
            (READS, nested(), None, &own, (BoundaryLevel::OwnUser, none), none),
            (READS, usual(), Some(6), &sockets, (BoundaryLevel::Landlock, &[Sockets]), none),
            (READS, usual(), Some(6), &given, (BoundaryLevel::Landlock, &[Sockets]), &[Sockets]),
            (WRITES, usual(), Some(6), &nothing, (BoundaryLevel::None, some), &[UserFiles]),
            (
                WRITES,
                usual(),
                Some(6),
                &adding,
                (BoundaryLevel::None, some),
                &[ConfigurationFolder, UserFiles],
            ),
            (WRITES, confined(), Some(6), &nothing, (BoundaryLevel::Landlock, none), none),
            (
                WRITES,
                confined(),
                Some(6),
                &covering,
                (BoundaryLevel::Landlock, &[Configuration]),
                none,
            ),
            (WRITES, usual(), None, &own, (BoundaryLevel::OwnUser, none), none),
            (WRITES, off(), Some(6), &own, (BoundaryLevel::OwnUser, none), none),
        ] {
            let case = format!("{access:?} {sandbox:?} {version:?} {facts:?}");
            let means = Capabilities { landlock: version, bubblewrap: false };
            let found = isolate(access, &sandbox, means, facts).boundary;
            assert_eq!(found, Boundary { level, gaps: landlock.to_vec() }, "{case}");
            let means = Capabilities { landlock: version, bubblewrap: true };
            assert_eq!(isolate(access, &sandbox, means, facts).boundary.gaps, wrapped, "{case}");
        }
    }

    #[test]
    fn only_output_of_a_failed_wrapper_is_attributed_to_it() {
        let (wrap, lock) = (Some(Isolation::Bubblewrap), Some(Isolation::Landlock));
        let said = "bwrap: execvp /x: No such file or directory\n";
        for (isolation, exit, stdout, stderr, expected) in [
            (wrap, Exit::Code(1), "", said, true),
            (lock, Exit::Code(1), "", said, false),
            (None, Exit::Code(1), "", said, false),
            (wrap, Exit::Code(2), "", said, false),
            (wrap, Exit::Signal(9), "", said, false),
            (wrap, Exit::Code(1), "answer", said, false),
            (wrap, Exit::Code(1), "", "no bwrap: here", false),
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
