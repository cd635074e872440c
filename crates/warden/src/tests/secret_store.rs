//! Tests of bytes that a process holder stores in memory for the next process instance of the service.

use std::fs::File;
use std::os::fd::OwnedFd;

use algonius_actors::model::id::ExecutionId;

use super::fixture::{HolderFixture, SCRIPT_IGNORING_SIGTERM};
use crate::OutputMemory;
use crate::process_holders::holder_link::HolderLink;
use crate::process_holders::reattach;
use crate::protocol::frame::{FRAME_VERSION, HolderOrder, SecretValue};
use crate::protocol::packet::send_packet;
use crate::protocol::peer_auth::HolderKey;

const SECRET: [u8; 32] = [7; 32];

#[test]
fn a_warden_returns_its_secret_to_each_next_service() {
    let (fixture, id) = (HolderFixture::new(), ExecutionId::generate());
    let service = fixture.start_service();
    assert_eq!(service.holders.secrets_from_earlier_holders().count(), 0);
    service.wait(service.holders.store_secret(SECRET.to_vec()));
    let spawned = service.launch(fixture.shell_launch_request(id, SCRIPT_IGNORING_SIGTERM));
    service.wait_until(|| fixture.live_pids(id).len() == 3);
    drop((service, spawned));
    for _ in 0..2 {
        let service = fixture.start_service();
        assert_eq!(
            service.holders.secrets_from_earlier_holders().collect::<Vec<_>>(),
            [SECRET.to_vec()]
        );
        drop(service);
    }
}

/// Test that the replacement of a killed process holder has the secret too.
#[test]
fn a_later_warden_gets_the_secret_too() {
    let fixture = HolderFixture::new();
    let service = fixture.start_service();
    service.wait(service.holders.store_secret(SECRET.to_vec()));
    service.kill_process_holders();
    service.wait_until(|| service.holders.pids().is_empty());
    let id = ExecutionId::generate();
    let spawned = service.launch(fixture.shell_launch_request(id, SCRIPT_IGNORING_SIGTERM));
    service.wait_until(|| fixture.live_pids(id).len() == 3);
    drop((service, spawned));
    assert_eq!(
        fixture.start_service().holders.secrets_from_earlier_holders().collect::<Vec<_>>(),
        [SECRET.to_vec()]
    );
}

/// Test that a supervisor of the first version receives no event that it does not know, and that an order of a later
/// version disturbs no process holder.
#[test]
fn older_protocol_versions_are_not_sent_the_secret() {
    let (fixture, id) = (HolderFixture::new(), ExecutionId::generate());
    let service = fixture.start_service();
    service.wait(service.holders.store_secret(SECRET.to_vec()));
    let spawned = service.launch(fixture.shell_launch_request(id, SCRIPT_IGNORING_SIGTERM));
    service.wait_until(|| fixture.live_pids(id).len() == 3);
    drop((service, spawned));
    let folder = OwnedFd::from(File::open(fixture.runtime_dir()).unwrap());
    let name = fixture.socket_names().pop().unwrap();
    let key = HolderKey::read_or_create(&fixture.runtime_dir(), fixture.data_dir_id).unwrap();
    let secret_for_version = |version: u64| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            loop {
                // The process holder detects the end of the earlier connection with a delay.
                let socket = reattach::connect_trusted_socket(&folder, &name).unwrap();
                let Ok(socket) = key.authenticate(socket).await else { continue };
                _ = send_packet(&socket, &[99, 1, 2], &[]);
                let link = HolderLink::open(socket, OutputMemory::with_limit(1 << 20)).unwrap();
                link.send_order(
                    HolderOrder::Hello {
                        version,
                        reattach_grace_ms: 20_000,
                        socket_name: Vec::new(),
                        key: SecretValue(Vec::new()),
                    },
                    Vec::new(),
                );
                link.send_order(HolderOrder::List, Vec::new());
                let state = link.wait_until_or_lost(|state| state.has_listed_programs).await;
                if state.has_listed_programs {
                    assert_eq!(link.programs().len(), 1);
                    return link.stored_secret().map(<[u8]>::to_vec);
                }
            }
        })
    };
    assert_eq!(secret_for_version(1), None);
    assert_eq!(secret_for_version(FRAME_VERSION), Some(SECRET.to_vec()));
    drop(fixture.start_service());
}
