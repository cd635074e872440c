//! Isolation of agents with each sandbox, on each kind of machine.

use super::*;
use BoundaryLevel as Level;
use Enforcement::{Enforced, Off, Partial, Unavailable, Unneeded};

const RO: Access = Access::ReadOnly;
const RW: Access = Access::ReadWrite;
const LANDLOCK: Option<Isolation> = Some(Isolation::Landlock);
const BUBBLEWRAP: Option<Isolation> = Some(Isolation::Bubblewrap);

fn default_sandbox() -> Sandbox {
    Sandbox::default()
}

fn confined_sandbox() -> Sandbox {
    Sandbox { writable: Some(Vec::new()), ..default_sandbox() }
}

fn outer_sandbox() -> Sandbox {
    Sandbox { has_inner_sandbox: true, ..default_sandbox() }
}

fn hidden_folder_sandbox() -> Sandbox {
    Sandbox { hidden: vec!["/srv".into()], ..default_sandbox() }
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
    for (access, sandbox, expected_by_version) in [
        (RO, default_sandbox(), [Unavailable, Partial, Enforced, Enforced]),
        (RO, Sandbox { is_enforced: false, ..default_sandbox() }, [Off; 4]),
        (RO, outer_sandbox(), [Off; 4]),
        (RW, outer_sandbox(), [Unneeded; 4]),
        (
            RO,
            Sandbox { allows_network: false, ..default_sandbox() },
            [Unavailable, Partial, Enforced, Enforced],
        ),
        (RW, default_sandbox(), [Unneeded; 4]),
        (RW, confined_sandbox(), [Unavailable, Partial, Enforced, Enforced]),
        (
            RW,
            Sandbox { allows_network: false, ..default_sandbox() },
            [Unavailable, Enforced, Enforced, Enforced],
        ),
    ] {
        let landlock_versions = [None, Some(1), Some(3), Some(4)];
        let enforcements = landlock_versions
            .map(|version| confinement_of(access, &sandbox, (version, false)).enforcement);
        assert_eq!(enforcements, expected_by_version, "{access:?} {sandbox:?}");
    }
}

#[test]
fn bubblewrap_is_used_if_landlock_leaves_a_gap() {
    let landlock_only = || Sandbox { isolation: LANDLOCK, ..default_sandbox() };
    for (access, sandbox, expected_by_version) in [
        (RO, default_sandbox(), [BUBBLEWRAP, BUBBLEWRAP, BUBBLEWRAP, LANDLOCK]),
        (
            RO,
            Sandbox { allows_network: false, ..default_sandbox() },
            [BUBBLEWRAP, BUBBLEWRAP, BUBBLEWRAP, LANDLOCK],
        ),
        (RO, landlock_only(), [None, LANDLOCK, LANDLOCK, LANDLOCK]),
        (RO, Sandbox { isolation: BUBBLEWRAP, ..default_sandbox() }, [BUBBLEWRAP; 4]),
        (RW, default_sandbox(), [BUBBLEWRAP; 4]),
        (RW, confined_sandbox(), [BUBBLEWRAP, BUBBLEWRAP, BUBBLEWRAP, LANDLOCK]),
        (RW, hidden_folder_sandbox(), [BUBBLEWRAP; 4]),
        (RW, Sandbox { protected: vec![".git".into()], ..default_sandbox() }, [BUBBLEWRAP; 4]),
        (RW, landlock_only(), [None, LANDLOCK, LANDLOCK, LANDLOCK]),
        (RW, Sandbox { is_enforced: false, ..hidden_folder_sandbox() }, [None; 4]),
        (RO, outer_sandbox(), [BUBBLEWRAP; 4]),
        (RO, Sandbox { isolation: LANDLOCK, ..outer_sandbox() }, [None, None, None, LANDLOCK]),
    ] {
        let landlock_versions = [None, Some(1), Some(4), Some(6)];
        let isolations = landlock_versions
            .map(|version| confinement_of(access, &sandbox, (version, true)).isolation);
        assert_eq!(isolations, expected_by_version, "{access:?} {sandbox:?}");
    }
}

#[test]
fn landlock_alone_enforces_only_a_part() {
    for (access, sandbox, expected) in [
        (RO, hidden_folder_sandbox(), (Partial, LANDLOCK)),
        (RW, hidden_folder_sandbox(), (Unavailable, None)),
        (RW, Sandbox { allows_network: false, ..hidden_folder_sandbox() }, (Partial, LANDLOCK)),
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
    let hazards = vec![
        BoundaryHazard::TrustedFilesInWritableFolder,
        BoundaryHazard::SecretFilesInWritableFolder,
    ];
    let facts = BoundaryFacts { has_own_user: false, hazards };
    for (bubblewrap, level, gaps) in [
        (false, Level::None, &[BoundaryGap::ServiceFiles, BoundaryGap::Configuration][..]),
        (true, Level::MountNamespace, &[][..]),
    ] {
        let capabilities = SandboxCapabilities { landlock: Some(7), bubblewrap };
        let confinement = choose_confinement(RO, &confined_sandbox(), capabilities, &facts);
        assert_eq!(confinement.boundary, Boundary { level, gaps: gaps.to_vec() });
    }
}

#[test]
fn the_boundary_names_every_gap() {
    use BoundaryGap::{
        Configuration, ConfigurationFolder, Processes, ServiceFiles, Signals, Sockets, UserFiles,
    };
    use Level::{Landlock, OwnUser};
    let facts_with = |hazards: &[BoundaryHazard]| BoundaryFacts {
        has_own_user: false,
        hazards: hazards.to_vec(),
    };
    let (no_hazards, sockets) = (facts_with(&[]), facts_with(&[BoundaryHazard::EscapeSockets]));
    let (trusted_files, allowed_sockets) = (
        facts_with(&[BoundaryHazard::TrustedFilesInWritableFolder]),
        facts_with(&[BoundaryHazard::AllowedEscapeSockets]),
    );
    let changeable_folder = facts_with(&[
        BoundaryHazard::TrustedFilesInWritableFolder,
        BoundaryHazard::ConfigurationFolder,
    ]);
    let own_user = BoundaryFacts {
        has_own_user: true,
        ..facts_with(&[BoundaryHazard::TrustedFilesInWritableFolder, BoundaryHazard::EscapeSockets])
    };
    let unenforced = || Sandbox { is_enforced: false, ..default_sandbox() };
    let file_gaps = &[ServiceFiles, Configuration, ConfigurationFolder, UserFiles][..];
    let all_gaps = &[file_gaps, &[Processes, Signals]].concat()[..];
    let no_gaps = &[][..];
    for (access, sandbox, version, facts, (level, landlock_gaps), bubblewrap_gaps) in [
        (RO, default_sandbox(), Some(6), &no_hazards, (Landlock, no_gaps), no_gaps),
        (RO, default_sandbox(), Some(5), &no_hazards, (Landlock, &[Signals]), no_gaps),
        (RO, default_sandbox(), None, &no_hazards, (Level::None, all_gaps), no_gaps),
        (RO, unenforced(), Some(6), &no_hazards, (Level::None, all_gaps), all_gaps),
        (RO, outer_sandbox(), Some(6), &no_hazards, (Level::None, file_gaps), &[UserFiles]),
        (RO, outer_sandbox(), Some(5), &no_hazards, (Level::None, all_gaps), &[UserFiles]),
        (RO, outer_sandbox(), None, &own_user, (OwnUser, no_gaps), no_gaps),
        (RO, default_sandbox(), Some(6), &sockets, (Landlock, &[Sockets]), no_gaps),
        (RO, default_sandbox(), Some(6), &allowed_sockets, (Landlock, &[Sockets]), &[Sockets]),
        (RW, default_sandbox(), Some(6), &no_hazards, (Level::None, file_gaps), &[UserFiles]),
        (
            RW,
            default_sandbox(),
            Some(6),
            &changeable_folder,
            (Level::None, file_gaps),
            &[ConfigurationFolder, UserFiles],
        ),
        (RW, confined_sandbox(), Some(6), &no_hazards, (Landlock, no_gaps), no_gaps),
        (RW, confined_sandbox(), Some(6), &trusted_files, (Landlock, &[Configuration]), no_gaps),
        (RW, default_sandbox(), None, &own_user, (OwnUser, no_gaps), no_gaps),
        (RW, unenforced(), Some(6), &own_user, (OwnUser, no_gaps), no_gaps),
    ] {
        let case = format!("{access:?} {sandbox:?} {version:?} {facts:?}");
        let capabilities = SandboxCapabilities { landlock: version, bubblewrap: false };
        let boundary = choose_confinement(access, &sandbox, capabilities, facts).boundary;
        assert_eq!(boundary, Boundary { level, gaps: landlock_gaps.to_vec() }, "{case}");
        let capabilities = SandboxCapabilities { landlock: version, bubblewrap: true };
        assert_eq!(
            choose_confinement(access, &sandbox, capabilities, facts).boundary.gaps,
            bubblewrap_gaps,
            "{case}"
        );
    }
}

#[test]
fn gaps_of_an_own_user_depend_on_the_files_that_landlock_hides() {
    use BoundaryGap::{OtherAgents, ServiceFiles};
    use BoundaryHazard::{
        SecretFilesInWritableFolder, SecretFilesReadableByOwnUser, SharedOwnUser,
    };
    let (secrets, shared) = (&[SecretFilesReadableByOwnUser][..], &[SharedOwnUser][..]);
    let both_in_writable = &[SecretFilesInWritableFolder, secrets[0], SharedOwnUser][..];
    let no_gaps = &[][..];
    for (access, sandbox, landlock, hazards, gaps) in [
        (RO, default_sandbox(), Some(6), secrets, no_gaps),
        (RW, default_sandbox(), Some(6), secrets, &[ServiceFiles]),
        (RO, default_sandbox(), None, secrets, &[ServiceFiles]),
        (RO, default_sandbox(), Some(6), shared, no_gaps),
        (RO, default_sandbox(), Some(5), shared, &[OtherAgents]),
        (RW, default_sandbox(), Some(6), shared, &[OtherAgents]),
        (RO, default_sandbox(), Some(6), both_in_writable, &[ServiceFiles, OtherAgents]),
        (RW, confined_sandbox(), Some(6), &[SecretFilesInWritableFolder], no_gaps),
    ] {
        let facts = BoundaryFacts { has_own_user: true, hazards: hazards.to_vec() };
        let confinement = |bubblewrap| {
            let capabilities = SandboxCapabilities { landlock, bubblewrap };
            choose_confinement(access, &sandbox, capabilities, &facts)
        };
        let case = format!("{access:?} {sandbox:?} {landlock:?} {hazards:?}");
        let expected = Boundary { level: Level::OwnUser, gaps: gaps.to_vec() };
        assert_eq!(confinement(false).boundary, expected, "{case}");
        let closed = Boundary { level: Level::OwnUser, gaps: Vec::new() };
        assert_eq!(confinement(true).boundary, closed, "{case}");
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
