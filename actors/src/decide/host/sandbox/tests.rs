//! Isolation of agents with each sandbox, on each kind of machine.

use super::*;
use Enforcement::{Enforced, Off, Partial, Unavailable, Unneeded};

const RO: Access = Access::ReadOnly;
const RW: Access = Access::ReadWrite;
const LANDLOCK: Option<Isolation> = Some(Isolation::Landlock);
const BUBBLEWRAP: Option<Isolation> = Some(Isolation::Bubblewrap);

fn plain() -> Sandbox {
    Sandbox::default()
}

fn confined() -> Sandbox {
    Sandbox { writable: Some(Vec::new()), ..plain() }
}

fn nested() -> Sandbox {
    Sandbox { has_own_sandbox: true, ..plain() }
}

fn with_hidden_folder() -> Sandbox {
    Sandbox { hidden: vec!["/srv".into()], ..plain() }
}

fn confinement_of(
    access: Access,
    sandbox: &Sandbox,
    (landlock, bubblewrap): (Option<u32>, bool),
) -> Confinement {
    choose_confinement(
        access,
        sandbox,
        SandboxCapabilities { landlock, bubblewrap },
        &BoundaryFacts::default(),
    )
}

#[test]
fn enforcement_depends_on_the_sandbox_and_the_kernel() {
    for (access, sandbox, by_version) in [
        (RO, plain(), [Unavailable, Partial, Enforced, Enforced]),
        (RO, Sandbox { enforce: false, ..plain() }, [Off; 4]),
        (RO, nested(), [Off; 4]),
        (RW, nested(), [Unneeded; 4]),
        (
            RO,
            Sandbox { allows_network: false, ..plain() },
            [Unavailable, Partial, Enforced, Enforced],
        ),
        (RW, plain(), [Unneeded; 4]),
        (RW, confined(), [Unavailable, Partial, Enforced, Enforced]),
        (
            RW,
            Sandbox { allows_network: false, ..plain() },
            [Unavailable, Enforced, Enforced, Enforced],
        ),
    ] {
        let versions = [None, Some(1), Some(3), Some(4)];
        let enforcements =
            versions.map(|version| confinement_of(access, &sandbox, (version, false)).enforcement);
        assert_eq!(enforcements, by_version, "{access:?} {sandbox:?}");
    }
}

#[test]
fn bubblewrap_is_used_if_landlock_leaves_a_gap() {
    let landlock_only = || Sandbox { isolation: LANDLOCK, ..plain() };
    for (access, sandbox, by_version) in [
        (RO, plain(), [BUBBLEWRAP, BUBBLEWRAP, BUBBLEWRAP, LANDLOCK]),
        (
            RO,
            Sandbox { allows_network: false, ..plain() },
            [BUBBLEWRAP, BUBBLEWRAP, BUBBLEWRAP, LANDLOCK],
        ),
        (RO, landlock_only(), [None, LANDLOCK, LANDLOCK, LANDLOCK]),
        (RO, Sandbox { isolation: BUBBLEWRAP, ..plain() }, [BUBBLEWRAP; 4]),
        (RW, plain(), [BUBBLEWRAP; 4]),
        (RW, confined(), [BUBBLEWRAP, BUBBLEWRAP, BUBBLEWRAP, LANDLOCK]),
        (RW, with_hidden_folder(), [BUBBLEWRAP; 4]),
        (RW, Sandbox { protected: vec![".git".into()], ..plain() }, [BUBBLEWRAP; 4]),
        (RW, landlock_only(), [None, LANDLOCK, LANDLOCK, LANDLOCK]),
        (RW, Sandbox { enforce: false, ..with_hidden_folder() }, [None; 4]),
        (RO, nested(), [BUBBLEWRAP; 4]),
        (RO, Sandbox { isolation: LANDLOCK, ..nested() }, [None, None, None, LANDLOCK]),
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
        (RO, with_hidden_folder(), (Partial, LANDLOCK)),
        (RW, with_hidden_folder(), (Unavailable, None)),
        (RW, Sandbox { allows_network: false, ..with_hidden_folder() }, (Partial, LANDLOCK)),
    ] {
        let confinement = confinement_of(access, &sandbox, (Some(4), false));
        assert_eq!(
            (confinement.enforcement, confinement.isolation),
            expected,
            "{access:?} {sandbox:?}"
        );
    }
}

/// With Landlock, what a program may change it may also read.
#[test]
fn a_writable_folder_with_secrets_is_no_boundary_of_landlock() {
    let hazards = vec![Hazard::ServiceFiles, Hazard::SecretFiles];
    let facts = BoundaryFacts { has_own_user: false, hazards };
    for (bubblewrap, level, gaps) in [
        (false, BoundaryLevel::None, &[BoundaryGap::ServiceFiles, BoundaryGap::Configuration][..]),
        (true, BoundaryLevel::MountNamespace, &[][..]),
    ] {
        let capabilities = SandboxCapabilities { landlock: Some(7), bubblewrap };
        let confinement = choose_confinement(RO, &confined(), capabilities, &facts);
        assert_eq!(confinement.boundary, Boundary { level, gaps: gaps.to_vec() });
    }
}

#[test]
fn the_boundary_names_every_gap() {
    use BoundaryGap::{
        Configuration, ConfigurationFolder, Processes, ServiceFiles, Signals, Sockets, UserFiles,
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
    let unenforced = || Sandbox { enforce: false, ..plain() };
    let file_gaps = &[ServiceFiles, Configuration, ConfigurationFolder, UserFiles][..];
    let all_gaps = &[file_gaps, &[Processes, Signals]].concat()[..];
    let no_gaps = &[][..];
    for (access, sandbox, version, facts, (level, landlock), bubblewrap_gaps) in [
        (RO, plain(), Some(6), &no_hazards, (BoundaryLevel::Landlock, no_gaps), no_gaps),
        (RO, plain(), Some(5), &no_hazards, (BoundaryLevel::Landlock, &[Signals]), no_gaps),
        (RO, plain(), None, &no_hazards, (BoundaryLevel::None, all_gaps), no_gaps),
        (RO, unenforced(), Some(6), &no_hazards, (BoundaryLevel::None, all_gaps), all_gaps),
        (RO, nested(), Some(6), &no_hazards, (BoundaryLevel::None, file_gaps), &[UserFiles]),
        (RO, nested(), Some(5), &no_hazards, (BoundaryLevel::None, all_gaps), &[UserFiles]),
        (RO, nested(), None, &own_user, (BoundaryLevel::OwnUser, no_gaps), no_gaps),
        (RO, plain(), Some(6), &sockets, (BoundaryLevel::Landlock, &[Sockets]), no_gaps),
        (RO, plain(), Some(6), &allowed, (BoundaryLevel::Landlock, &[Sockets]), &[Sockets]),
        (RW, plain(), Some(6), &no_hazards, (BoundaryLevel::None, file_gaps), &[UserFiles]),
        (
            RW,
            plain(),
            Some(6),
            &changeable_folder,
            (BoundaryLevel::None, file_gaps),
            &[ConfigurationFolder, UserFiles],
        ),
        (RW, confined(), Some(6), &no_hazards, (BoundaryLevel::Landlock, no_gaps), no_gaps),
        (
            RW,
            confined(),
            Some(6),
            &service_files,
            (BoundaryLevel::Landlock, &[Configuration]),
            no_gaps,
        ),
        (RW, plain(), None, &own_user, (BoundaryLevel::OwnUser, no_gaps), no_gaps),
        (RW, unenforced(), Some(6), &own_user, (BoundaryLevel::OwnUser, no_gaps), no_gaps),
    ] {
        let case = format!("{access:?} {sandbox:?} {version:?} {facts:?}");
        let capabilities = SandboxCapabilities { landlock: version, bubblewrap: false };
        let boundary = choose_confinement(access, &sandbox, capabilities, facts).boundary;
        assert_eq!(boundary, Boundary { level, gaps: landlock.to_vec() }, "{case}");
        let capabilities = SandboxCapabilities { landlock: version, bubblewrap: true };
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
        (bubblewrap, ProcessExit::Code(1), "", bwrap_error, true),
        (landlock, ProcessExit::Code(1), "", bwrap_error, false),
        (None, ProcessExit::Code(1), "", bwrap_error, false),
        (bubblewrap, ProcessExit::Code(2), "", bwrap_error, false),
        (bubblewrap, ProcessExit::Signal(9), "", bwrap_error, false),
        (bubblewrap, ProcessExit::Code(1), "answer", bwrap_error, false),
        (bubblewrap, ProcessExit::Code(1), "", "no bwrap: here", false),
    ] {
        assert_eq!(bwrap_failed(isolation, exit, stdout, stderr), expected, "{exit:?} {stderr}");
    }
}
