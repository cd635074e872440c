//! Tests of held programs through the loss of either side.

use std::fs;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::program::Exit;
use tokio::io::AsyncReadExt;

use super::terms;
use super::world::{STUBBORN, World, digest, kill_all};
use crate::protocol::peer_auth::HolderKey;
use crate::wardens::reattach;
use crate::wardens::start::{Start, start};
use crate::{Launch, OutputMemory, Warden};

const LINES: usize = 1_000_000;

fn numbered() -> Vec<u8> {
    (1..=LINES).flat_map(|number| format!("{number}\n").into_bytes()).collect()
}

#[test]
fn a_million_lines_survive_the_loss_of_the_service() {
    let (world, id) = (World::new(), ExecutionId::fresh());
    let mut life = world.life();
    let mut spawned =
        life.launch(world.shell(id, &format!("seq {LINES}; seq {LINES} >&2; exit 3")));
    for bytes in [0, 1, 100_000, 1_000_000, 3_000_000] {
        let mut some = vec![0; bytes];
        life.wait(spawned.stdout.read_exact(&mut some)).unwrap();
        drop((life, spawned)); // As after a kill: its ends are closed, and nobody said farewell.
        life = world.life();
        assert!(life.wardens.claim(id, AttemptId::FIRST).is_some());
        spawned = life.adopt(id);
    }
    let whole = digest(&numbered());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let reading = tokio::io::AsyncReadExt::read_to_end;
    let both = async {
        tokio::join!(reading(&mut spawned.stdout, &mut out), reading(&mut spawned.stderr, &mut err))
    };
    let read = life.wait(both);
    assert!(read.0.is_ok() && read.1.is_ok());
    assert_eq!((digest(&out), digest(&err)), (whole, whole));
    assert_eq!(life.wait(spawned.ending).unwrap(), Exit::Code(3));
}

#[test]
fn a_claimed_program_is_not_ended_by_its_previous_owner() {
    let (world, id) = (World::new(), ExecutionId::fresh());
    let life = world.life();
    let first =
        life.launch(world.shell(id, "seq 3; until [ -e go ]; do sleep 0.01; done; seq 4 6"));
    life.until(|| !world.alive(id).is_empty());
    assert!(life.wardens.claim(id, AttemptId::FIRST).is_some());
    life.wait(first.tree.taken());
    life.wait(async move { drop(first) });
    let mut next = life.adopt(id);
    fs::write(world.home.path().join("go"), "").unwrap();
    assert_eq!(life.read(&mut next.stdout), b"1\n2\n3\n4\n5\n6\n");
    assert_eq!(life.wait(next.ending).unwrap(), Exit::Code(0));
}

#[test]
fn a_program_that_ended_unattended_reports_all_its_output() {
    let (world, id) = (World::new(), ExecutionId::fresh());
    let life = world.life();
    let script =
        format!("until [ -e go ]; do sleep 0.01; done; seq {LINES}; setsid sleep 600 & exit 7");
    let spawned = life.launch(world.shell(id, &script));
    drop((life, spawned));
    fs::write(world.home.path().join("go"), "").unwrap();
    world.until(|| world.alive(id).is_empty());
    let life = world.life();
    assert!(life.wardens.claim(id, AttemptId::FIRST).is_some(), "it is held");
    let mut spawned = life.adopt(id);
    assert_eq!(digest(&life.read(&mut spawned.stdout)), digest(&numbered()));
    assert_eq!(life.wait(spawned.ending).unwrap(), Exit::Code(7));
}

#[test]
fn unattended_output_beyond_the_cap_does_not_block_a_program() {
    let (world, id) = (World::new(), ExecutionId::fresh());
    let life = world.life();
    let script = "until [ -e go ]; do sleep 0.01; done; head -c 9000000 /dev/zero; touch done";
    let spawned = life.launch(Launch { cap: 100_000, ..world.shell(id, script) });
    drop((life, spawned));
    fs::write(world.home.path().join("go"), "").unwrap();
    world.until(|| world.home.path().join("done").exists());
    let life = world.life();
    let mut spawned = life.adopt(id);
    assert_eq!(life.read(&mut spawned.stdout).len(), 100_000);
    assert_eq!(life.wait(spawned.ending).unwrap(), Exit::Code(0));
}

#[test]
fn a_program_bound_to_its_service_ends_with_it() {
    let (world, id, other) = (World::new(), ExecutionId::fresh(), ExecutionId::fresh());
    let life = world.life();
    let spawned = (
        life.launch(Launch { dies_alone: true, ..world.shell(id, STUBBORN) }),
        life.launch(world.shell(other, STUBBORN)),
    );
    life.until(|| world.alive(id).len() + world.alive(other).len() == 6);
    drop((life, spawned));
    world.until(|| world.alive(id).is_empty());
    assert_eq!(world.alive(other).len(), 3);
    let life = world.life();
    let end = life.wait(life.adopt(id).ending).unwrap();
    assert_eq!(end, Exit::Signal(9));
    let spawned = life.adopt(other);
    life.wait(async { drop(spawned) }); // Lets it go, which ends it.
    life.until(|| world.alive(other).is_empty());
}

#[test]
fn all_programs_end_if_no_service_returns_in_time() {
    let (mut world, id) = (World::new(), ExecutionId::fresh());
    world.patience = Duration::from_millis(300);
    let life = world.life();
    let spawned = life.launch(world.shell(id, STUBBORN));
    life.until(|| world.alive(id).len() == 3);
    drop((life, spawned));
    world.until(|| world.alive(id).is_empty());
    world.until(|| world.sockets().is_empty());
    assert!(world.life().wardens.claim(id, AttemptId::FIRST).is_none());
}

#[test]
fn a_killed_process_holder_is_reported_and_replaced() {
    let (world, id) = (World::new(), ExecutionId::fresh());
    let life = world.life();
    let spawned = life.launch(world.shell(id, STUBBORN));
    life.until(|| world.alive(id).len() == 3);
    life.kill_warden();
    let lost = life.wait(spawned.ending).unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::ConnectionAborted);
    assert!(life.wait(spawned.tree.sweep()) > 0);
    assert!(world.alive(id).is_empty());
    let mut next = life.launch(world.shell(ExecutionId::fresh(), "echo again"));
    assert_eq!(life.read(&mut next.stdout), b"again\n");
}

#[test]
fn orphans_are_swept_at_the_next_start_and_nothing_else() {
    let (world, other) = (World::new(), World::new());
    let (id, theirs) = (ExecutionId::fresh(), ExecutionId::fresh());
    let (life, their_life) = (world.life(), other.life());
    let spawned =
        (life.launch(world.shell(id, STUBBORN)), their_life.launch(other.shell(theirs, STUBBORN)));
    life.until(|| world.alive(id).len() + other.alive(theirs).len() == 6);
    let warden = life.wardens.pids();
    drop(life);
    kill_all(&warden); // Both are dead.
    assert_eq!(world.alive(id).len(), 3);
    let life = world.life();
    assert_eq!((world.alive(id).len(), other.alive(theirs).len()), (0, 3));
    drop((life, their_life, spawned));
}

#[test]
fn a_replaced_warden_starts_no_program() {
    let (world, id) = (World::new(), ExecutionId::fresh());
    let life = world.life();
    let spawned = life.launch(world.shell(id, STUBBORN));
    drop((life, spawned));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let refused = runtime.block_on(async {
        let folder = OwnedFd::from(fs::File::open(world.runtime_dir()).unwrap());
        let terms = terms(&world.runtime_dir(), world.instance);
        let key = HolderKey::open(&world.runtime_dir(), world.instance).unwrap();
        let link = reattach::all(&folder, &terms, &key).await.pop().unwrap();
        let launch = world.shell(ExecutionId::fresh(), "echo in");
        let Start { program, order, fds, feed: _ } = start(
            launch,
            (None, OutputMemory::of(1 << 30).account()),
            world.instance,
            link.fresh_slot(),
        )
        .unwrap();
        link.add(Arc::clone(&program));
        link.order(order, fds);
        let told = program.until(|now| now.pid.is_some() || now.refused.is_some()).await;
        (told.pid, told.refused)
    });
    assert_eq!(refused, (None, Some(libc::EPERM)));
}

#[test]
fn a_program_cannot_take_over_its_own_warden() {
    let (world, id) = (World::new(), ExecutionId::fresh());
    let life = world.life();
    let name = world.sockets().pop().unwrap();
    // A sequenced packet socket in perl: it receives the end at once, and nothing else.
    let script = format!(
        "cd run && exec setsid env -i /usr/bin/perl -MSocket -e 'socket(S, AF_UNIX, 5, 0) or die; \
         connect(S, sockaddr_un(\"{name}\")) or die $!; my $n = sysread(S, my $b, 99); \
         print \"got \", $n // -1'"
    );
    let mut spawned = life.launch(world.shell(id, &script));
    assert_eq!(life.read(&mut spawned.stdout), b"got 0");
}
