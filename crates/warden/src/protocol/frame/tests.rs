//! Frames survive a round trip, and earlier ones are read.

use super::{HolderEvent, HolderOrder, ProgramEnd, SecretValue};
use crate::confinement::network_access::NetworkAccess;
use crate::confinement::root_capabilities::RootCapabilities;
use crate::protocol::launch_frame::{HoldTerms, LaunchFlags, LaunchSpec};

fn sample_hold_terms() -> HoldTerms {
    HoldTerms {
        program_number: 3,
        process_label: 1 << 61,
        metadata: vec![0, 255],
        max_recorded_bytes: 9,
        ends_with_supervisor: true,
    }
}

fn launch_order(flags: LaunchFlags) -> HolderOrder {
    HolderOrder::Launch { hold_terms: sample_hold_terms(), spec: None, flags }
}

#[test]
fn every_order_survives_a_round_trip() {
    let spec = LaunchSpec {
        program: b"/bin/cat".to_vec(),
        args: vec![b"cat".to_vec(), vec![0xfe]],
        env: vec![b"A=1".to_vec()],
        working_dir: b"/".to_vec(),
        limits: vec![(7, 1024), (4, 0)],
        root_capabilities: RootCapabilities::ReadOnly,
        user: Some((1000, 1001)),
    };
    assert_eq!(LaunchSpec::decode(&spec.encode()).as_ref(), Some(&spec));
    let no_flags = LaunchFlags::default();
    let orders = [
        HolderOrder::Hello {
            version: 1,
            reattach_grace_ms: 60_000,
            socket_name: b"x.sock".to_vec(),
            key: SecretValue(vec![7; 32]),
        },
        HolderOrder::Launch { hold_terms: sample_hold_terms(), spec: Some(spec), flags: no_flags },
        launch_order(LaunchFlags { is_confined: true, ..no_flags }),
        launch_order(LaunchFlags { has_wrapper_process: true, ..no_flags }),
        launch_order(LaunchFlags { has_control_group: true, ..no_flags }),
        launch_order(LaunchFlags { has_stdin_journal: true, ..no_flags }),
        launch_order(LaunchFlags { network: NetworkAccess::EmptyNamespace, ..no_flags }),
        launch_order(LaunchFlags { network: NetworkAccess::Refused, ..no_flags }),
        HolderOrder::Terminate { program_number: 1 },
        HolderOrder::Kill { program_number: 2 },
        HolderOrder::Release { program_number: 3 },
        HolderOrder::CloseStdin { program_number: 4 },
        HolderOrder::List,
        HolderOrder::Shutdown,
        HolderOrder::StoreSecret { secret: SecretValue(vec![0, 255]) },
        HolderOrder::Challenge { supervisor_nonce: vec![1; 32] },
        HolderOrder::Authenticate { proof: vec![2; 32] },
    ];
    for order in orders {
        assert_eq!(HolderOrder::decode(&order.encode()), Some(order));
    }
    assert_eq!(HolderOrder::decode(&[99]), None);
}

#[test]
fn a_secret_is_not_shown() {
    let order = HolderOrder::StoreSecret { secret: SecretValue(vec![104, 117, 115, 104]) };
    assert_eq!(format!("{order:?}"), "StoreSecret { secret: Secret }");
}

#[test]
fn every_event_survives_a_round_trip() {
    let end = ProgramEnd { status: 256, has_survivors: true, cpu_micros: 5, peak_memory_kib: 6 };
    let events = [
        HolderEvent::Hello { version: 1, pid: 4 },
        HolderEvent::Launched { program_number: 1, pid: 4 },
        HolderEvent::LaunchFailed { program_number: 1, errno: 2 },
        HolderEvent::Ended { program_number: 1, end },
        HolderEvent::KillFinished { program_number: 1, killed_count: 3, survivor_count: 1 },
        HolderEvent::ProgramListed {
            hold_terms: sample_hold_terms(),
            pid: 4,
            end: Some(end),
            has_stdin_journal: false,
        },
        HolderEvent::ProgramListed {
            hold_terms: sample_hold_terms(),
            pid: 4,
            end: Some(end),
            has_stdin_journal: true,
        },
        HolderEvent::ProgramListed {
            hold_terms: sample_hold_terms(),
            pid: 4,
            end: None,
            has_stdin_journal: true,
        },
        HolderEvent::ListFinished,
        HolderEvent::StoredSecret { secret: SecretValue(vec![1, 2]) },
        HolderEvent::ChallengeResponse { holder_nonce: vec![1; 32], proof: vec![2; 32] },
    ];
    for event in events {
        assert_eq!(HolderEvent::decode(&event.encode()), Some(event));
    }
    assert_eq!(HolderEvent::decode(&[]), None);
}

#[test]
fn a_program_of_an_earlier_holder_is_not_fed() {
    let listed_event = HolderEvent::ProgramListed {
        hold_terms: sample_hold_terms(),
        pid: 4,
        end: None,
        has_stdin_journal: false,
    };
    let frame = listed_event.encode();
    let (earlier_frame, _flag_bytes) = frame.split_at(frame.len() - 8);
    assert_eq!(HolderEvent::decode(earlier_frame), Some(listed_event));
}
