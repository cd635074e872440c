//! Tests of bytes that a process holder stores in memory for the next process instance of the service.

use std::fs::File;
use std::os::fd::OwnedFd;

use algonius_actors::model::id::ExecutionId;

use super::world::{STUBBORN, World};
use crate::OutputMemory;
use crate::protocol::frame::{HolderOrder, SecretValue, VERSION};
use crate::protocol::packet::send;
use crate::protocol::peer_auth::HolderKey;
use crate::wardens::link::Link;
use crate::wardens::reattach;

const SECRET: [u8; 32] = [7; 32];

#[test]
fn a_warden_returns_its_secret_to_each_next_service() {
    let (world, id) = (World::new(), ExecutionId::fresh());
    let life = world.life();
    assert_eq!(life.wardens.kept().count(), 0);
    life.wait(life.wardens.store_secret(SECRET.to_vec()));
    let spawned = life.launch(world.shell(id, STUBBORN));
    life.until(|| world.alive(id).len() == 3);
    drop((life, spawned));
    for _ in 0..2 {
        let life = world.life();
        assert_eq!(life.wardens.kept().collect::<Vec<_>>(), [SECRET.to_vec()]);
        drop(life);
    }
}

/// Test that the replacement of a killed process holder has the secret too.
#[test]
fn a_later_warden_gets_the_secret_too() {
    let world = World::new();
    let life = world.life();
    life.wait(life.wardens.store_secret(SECRET.to_vec()));
    life.kill_warden();
    life.until(|| life.wardens.pids().is_empty());
    let id = ExecutionId::fresh();
    let spawned = life.launch(world.shell(id, STUBBORN));
    life.until(|| world.alive(id).len() == 3);
    drop((life, spawned));
    assert_eq!(world.life().wardens.kept().collect::<Vec<_>>(), [SECRET.to_vec()]);
}

/// Test that a supervisor of the first version receives no event that it does not know, and that an order of a later
/// version disturbs no process holder.
#[test]
fn older_protocol_versions_are_not_sent_the_secret() {
    let (world, id) = (World::new(), ExecutionId::fresh());
    let life = world.life();
    life.wait(life.wardens.store_secret(SECRET.to_vec()));
    let spawned = life.launch(world.shell(id, STUBBORN));
    life.until(|| world.alive(id).len() == 3);
    drop((life, spawned));
    let folder = OwnedFd::from(File::open(world.runtime_dir()).unwrap());
    let name = world.sockets().pop().unwrap();
    let key = HolderKey::open(&world.runtime_dir(), world.instance).unwrap();
    let kept_for = |version: u64| {
        let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            loop {
                // The process holder detects the end of the earlier connection with a delay.
                let socket = reattach::open(&folder, &name).unwrap();
                let Ok(socket) = key.meet(socket).await else { continue };
                _ = send(&socket, &[99, 1, 2], &[]);
                let link = Link::open(socket, OutputMemory::of(1 << 20)).unwrap();
                link.order(
                    HolderOrder::Hello {
                        version,
                        patience: 20_000,
                        name: Vec::new(),
                        key: SecretValue(Vec::new()),
                    },
                    Vec::new(),
                );
                link.order(HolderOrder::List, Vec::new());
                let standing = link.until(|now| now.is_listed).await;
                if standing.is_listed {
                    assert_eq!(link.all().len(), 1);
                    return link.kept().map(<[u8]>::to_vec);
                }
            }
        })
    };
    assert_eq!(kept_for(1), None);
    assert_eq!(kept_for(VERSION), Some(SECRET.to_vec()));
    drop(world.life());
}
