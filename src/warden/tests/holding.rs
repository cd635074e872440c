//! What is held, whoever dies.

use std::fs;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::execution::Stamp;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::program::Exit;
use tokio::io::AsyncReadExt;

use super::world::{STUBBORN, World, digest, kill_all};
use super::{WAIT, terms};
use crate::warden::attach;
use crate::warden::start::{Start, begin};
use crate::warden::{Launch, Warden};

const LINES: usize = 1_000_000;

fn numbered() -> Vec<u8> {
    (1..=LINES).flat_map(|number| format!("{number}\n").into_bytes()).collect()
}

#[test]
fn a_million_lines_are_whole_whenever_the_supervisor_is_lost() {
    let (world, id) = (World::new(), ExecutionId::fresh());
    let mut life = world.life();
    let mut spawned =
        life.launch(world.shell(id, &format!("seq {LINES}; seq {LINES} >&2; exit 3")));
    for bytes in [0, 1, 100_000, 1_000_000, 3_000_000] {
        let mut some = vec![0; bytes];
        life.wait(spawned.stdout.read_exact(&mut some)).unwrap();
        drop((life, spawned)); // As after a kill: its ends are closed, and nobody said farewell.
        life = world.life();
        assert!(life.wardens.claim(id, Stamp::FIRST).is_some());
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
fn a_program_that_another_has_claimed_is_not_ended_by_who_had_it() {
    let (world, id) = (World::new(), ExecutionId::fresh());
    let life = world.life();
    let first =
        life.launch(world.shell(id, "seq 3; until [ -e go ]; do sleep 0.01; done; seq 4 6"));
    life.until(|| !world.alive(id).is_empty());
    assert!(life.wardens.claim(id, Stamp::FIRST).is_some());
    life.wait(first.tree.taken());
    life.wait(async move { drop(first) });
    let mut next = life.adopt(id);
    fs::write(world.home.path().join("go"), "").unwrap();
    assert_eq!(life.read(&mut next.stdout), b"1\n2\n3\n4\n5\n6\n");
    assert_eq!(life.wait(next.ending).unwrap(), Exit::Code(0));
}

#[test]
fn what_ended_while_nobody_was_there_is_told_with_all_it_wrote() {
    let (world, id) = (World::new(), ExecutionId::fresh());
    let life = world.life();
    let script =
        format!("until [ -e go ]; do sleep 0.01; done; seq {LINES}; setsid sleep 600 & exit 7");
    let spawned = life.launch(world.shell(id, &script));
    drop((life, spawned));
    fs::write(world.home.path().join("go"), "").unwrap();
    world.until(|| world.alive(id).is_empty());
    let life = world.life();
    assert!(life.wardens.claim(id, Stamp::FIRST).is_some(), "it is held");
    let mut spawned = life.adopt(id);
    assert_eq!(digest(&life.read(&mut spawned.stdout)), digest(&numbered()));
    assert_eq!(life.wait(spawned.ending).unwrap(), Exit::Code(7));
}

#[test]
fn what_is_written_beyond_the_cap_while_nobody_is_there_stops_nobody() {
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
fn a_program_that_shall_not_outlive_its_supervisor_does_not() {
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
fn everything_ends_when_no_supervisor_comes_in_time() {
    let (mut world, id) = (World::new(), ExecutionId::fresh());
    world.patience = Duration::from_millis(300);
    let life = world.life();
    let spawned = life.launch(world.shell(id, STUBBORN));
    life.until(|| world.alive(id).len() == 3);
    drop((life, spawned));
    world.until(|| world.alive(id).is_empty());
    world.until(|| fs::read_dir(world.runtime_dir()).unwrap().count() == 0);
    assert!(world.life().wardens.claim(id, Stamp::FIRST).is_none());
}

#[test]
fn a_warden_that_is_killed_is_told_of_and_another_takes_its_place() {
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
fn what_nobody_holds_any_more_is_swept_at_the_next_start_and_nothing_else() {
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
fn a_warden_that_was_taken_over_starts_nothing() {
    let (world, id) = (World::new(), ExecutionId::fresh());
    let life = world.life();
    let spawned = life.launch(world.shell(id, STUBBORN));
    drop((life, spawned));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let refused = runtime.block_on(async {
        let folder = OwnedFd::from(fs::File::open(world.runtime_dir()).unwrap());
        let terms = terms(&world.runtime_dir(), world.instance, WAIT);
        let link = attach::all(&folder, &terms).await.pop().unwrap();
        let launch = world.shell(ExecutionId::fresh(), "echo in");
        let Start { program, order, fds, feed: _ } =
            begin(launch, None, world.instance, link.fresh_slot()).unwrap();
        link.add(Arc::clone(&program));
        link.order(order, fds);
        let told = program.until(|now| now.pid.is_some() || now.refused.is_some()).await;
        (told.pid, told.refused)
    });
    assert_eq!(refused, (None, Some(libc::EPERM)));
}

#[test]
fn a_program_cannot_take_its_own_warden_over() {
    let (world, id) = (World::new(), ExecutionId::fresh());
    let life = world.life();
    let name = fs::read_dir(world.runtime_dir()).unwrap().next().unwrap().unwrap();
    // As perl knows a sequenced packet socket: it is told of the end at once, and of nothing else.
    let script = format!(
        "cd run && exec setsid env -i /usr/bin/perl -MSocket -e 'socket(S, AF_UNIX, 5, 0) or die; \
         connect(S, sockaddr_un(\"{}\")) or die $!; my $n = sysread(S, my $b, 99); \
         print \"got \", $n // -1'",
        name.file_name().to_str().unwrap()
    );
    let mut spawned = life.launch(world.shell(id, &script));
    assert_eq!(life.read(&mut spawned.stdout), b"got 0");
}
