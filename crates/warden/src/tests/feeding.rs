//! Tests of a fed standard input that a process holder holds.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::program::Exit;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{SockType, getsockopt, sockopt};

use super::terms;
use super::world::{Life, World};
use crate::protocol::frame::{FEEDS, HolderEvent, HolderOrder, SecretValue};
use crate::protocol::packet::{receive, send};
use crate::protocol::peer_auth::HolderKey;
use crate::wardens::link::Link;
use crate::wardens::reattach;
use crate::wardens::{HolderCommand, LaunchOptions, ProcessHolders};
use crate::{Launch, OutputMemory, Spawned, Stdin, StdinJournal, StdinJournalError, Warden};

/// Script that copies its input to a file, and then ends.
const COPY: &str = "cat > got; exit 3";

fn fed(world: &World, id: ExecutionId, script: &str) -> Launch {
    Launch { stdin: Stdin::Fed, ..world.shell(id, script) }
}

fn got(world: &World) -> String {
    fs::read_to_string(world.home.path().join("got")).unwrap_or_default()
}

fn journal(spawned: &mut Spawned) -> StdinJournal {
    spawned.stdin_journal.take().unwrap()
}

fn claim(life: &Life, id: ExecutionId) -> Spawned {
    let claimed = life.wardens.claim(id, AttemptId::FIRST).unwrap();
    assert!(claimed.age.is_some(), "it runs");
    life.adopt(id)
}

#[test]
fn a_fed_input_survives_services_until_it_is_closed() {
    let (world, id) = (World::new(), ExecutionId::fresh());
    let mut life = world.life();
    let mut spawned = life.launch(fed(&world, id, COPY));
    let mut sent = String::new();
    for number in 0..3 {
        let mut journal = journal(&mut spawned);
        assert_eq!(journal.sent().unwrap(), sent.as_bytes());
        let message = format!("{number} {}\n", "x".repeat(200_000));
        life.runtime.block_on(async {
            // Some of it is left to the next service.
            journal.write_message(message.as_bytes()).unwrap();
        });
        sent.push_str(&message);
        drop((life, spawned, journal)); // As after a kill.
        life = world.life();
        spawned = claim(&life, id);
    }
    let mut journal = journal(&mut spawned);
    life.wait(journal.deliver()).unwrap();
    life.until(|| got(&world).len() == sent.len());
    life.runtime.block_on(async {
        assert!(journal.shrink().unwrap());
        journal.write_message(b"last\n").unwrap();
    });
    sent.push_str("last\n");
    journal.close();
    assert_eq!(life.wait(spawned.ending).unwrap(), Exit::Code(3));
    assert!(got(&world) == sent, "each message is there once");
}

#[test]
fn the_journal_of_a_closed_input_can_be_read() {
    let (world, id) = (World::new(), ExecutionId::fresh());
    let life = world.life();
    let mut spawned = life.launch(fed(&world, id, "cat > got; touch end; exec sleep 600"));
    let mut first = journal(&mut spawned);
    life.runtime.block_on(async { first.write_message(b"a\n").unwrap() });
    first.close();
    life.until(|| world.home.path().join("end").exists());
    let check = |life: &Life, next: &mut Spawned| {
        let mut second = journal(next);
        assert_eq!((second.sent().unwrap(), second.delivered()), (b"a\n".to_vec(), 2));
        let written = life.runtime.block_on(async { second.write_message(b"b\n") });
        assert!(matches!(written, Err(StdinJournalError::Closed)));
        second.close();
    };
    // The next driver, in this service or the next, understands the output by the messages.
    assert!(life.wardens.claim(id, AttemptId::FIRST).is_some());
    life.wait(async { drop(spawned) });
    let mut next = life.adopt(id);
    check(&life, &mut next);
    drop((life, next));
    let life = world.life();
    let mut last = claim(&life, id);
    let third = journal(&mut last);
    // The refused message was recorded, and will never be delivered.
    assert_eq!((third.sent().unwrap(), third.delivered()), (b"a\nb\n".to_vec(), 2));
}

#[test]
fn the_next_driver_of_a_service_continues_a_journal() {
    let (world, id) = (World::new(), ExecutionId::fresh());
    let life = world.life();
    let mut spawned = life.launch(fed(&world, id, COPY));
    let mut first = journal(&mut spawned);
    life.runtime.block_on(async { first.write_message(b"a\n").unwrap() });
    assert!(life.wardens.claim(id, AttemptId::FIRST).is_some());
    life.wait(async { drop((first, spawned)) });
    let mut spawned = life.adopt(id);
    let mut second = journal(&mut spawned);
    assert_eq!((second.sent().unwrap(), second.delivered()), (b"a\n".to_vec(), 2));
    life.runtime.block_on(async { second.write_message(b"b\n").unwrap() });
    second.close();
    assert_eq!(life.wait(spawned.ending).unwrap(), Exit::Code(3));
    assert_eq!(got(&world), "a\nb\n");
}

#[test]
fn a_program_that_closes_its_input_is_reported() {
    let (world, id) = (World::new(), ExecutionId::fresh());
    let life = world.life();
    let script = "exec <&-; touch closed; exec sleep 600";
    let mut spawned = life.launch(fed(&world, id, script));
    life.until(|| world.home.path().join("closed").exists());
    let mut first = journal(&mut spawned);
    let written = life.runtime.block_on(async { first.write_message(b"a\n") });
    assert!(matches!(written, Err(StdinJournalError::Closed)));
    drop((life, spawned, first));
    // It runs, and its output is still of interest.
    let life = world.life();
    let mut spawned = claim(&life, id);
    let mut next = journal(&mut spawned);
    let written = life.runtime.block_on(async { next.write_message(b"b\n") });
    assert!(matches!(written, Err(StdinJournalError::Closed)));
}

/// Test that a supervisor of an earlier release gets only the descriptors that it knows, and that the program sees the
/// end of its input when nobody will write to it any more.
#[test]
fn an_earlier_supervisor_gets_no_journal() {
    let (world, id) = (World::new(), ExecutionId::fresh());
    let life = world.life();
    let mut spawned = life.launch(fed(&world, id, COPY));
    let mut journal = journal(&mut spawned);
    life.runtime.block_on(async { journal.write_message(b"a\n").unwrap() });
    drop((life, spawned, journal));
    let folder = fs::File::open(world.runtime_dir()).unwrap().into();
    let key = HolderKey::open(&world.runtime_dir(), world.instance).unwrap();
    let name = world.sockets().pop().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let link = runtime.block_on(async {
        loop {
            // The process holder detects the end of the earlier connection with a delay.
            let Ok(socket) = reattach::open(&folder, &name) else { continue };
            let Ok(socket) = key.meet(socket).await else { continue };
            let link = Link::open(socket, OutputMemory::of(1 << 20)).unwrap();
            let (name, key) = (Vec::new(), SecretValue(Vec::new()));
            let hello = HolderOrder::Hello { version: FEEDS - 1, patience: 20_000, name, key };
            link.order(hello, Vec::new());
            link.order(HolderOrder::List, Vec::new());
            if link.until(|now| now.is_listed).await.is_listed {
                return link;
            }
        }
    });
    let program = link.all().pop().unwrap();
    let exit = runtime.block_on(Arc::clone(&program).ending());
    assert_eq!((exit.unwrap(), got(&world).as_str()), (Exit::Code(3), "a\n"));
    let journal = runtime.block_on(program.stdin_journal(Box::new(|| {}))).unwrap();
    assert!(journal.is_none());
}

#[test]
fn an_earlier_process_holder_gets_no_fed_program() {
    let world = World::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let args = ["tests::feeding::earlier_holder", "--exact", "--nocapture"];
    let args = args.into_iter().map(Into::into).collect();
    let origin = HolderCommand { program: PathBuf::from("/proc/self/exe"), args };
    let options = LaunchOptions { origin, ..terms(&world.runtime_dir(), world.instance) };
    let holders = runtime.block_on(ProcessHolders::start(options)).unwrap();
    let id = ExecutionId::fresh();
    let launched = runtime.block_on(holders.launch(fed(&world, id, COPY)));
    let error = launched.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    let needed = FEEDS;
    assert!(
        matches!(cause, Some(StdinJournalError::HolderTooOld { version, needed: it })
            if *version == FEEDS - 1 && *it == needed),
        "{cause:?}"
    );
    // It refuses every order of a launch that reaches it.
    let other = runtime.block_on(holders.launch(world.shell(id, COPY)));
    assert_eq!(other.map(|_| ()).unwrap_err().raw_os_error(), Some(libc::EPERM));
}

/// Entry point of a process holder of the version before [`FEEDS`], not a test.
#[test]
fn earlier_holder() {
    if !matches!(getsockopt(&io::stdin(), sockopt::SockType), Ok(SockType::SeqPacket)) {
        return;
    }
    let socket = io::stdin().as_fd().try_clone_to_owned().unwrap();
    loop {
        poll(&mut [PollFd::new(socket.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE).unwrap();
        let Some(packet) = receive(&socket).unwrap() else { return };
        let answer = match HolderOrder::decode(&packet.frame) {
            Some(HolderOrder::Hello { .. }) => {
                HolderEvent::Hello { version: FEEDS - 1, pid: std::process::id().into() }
            }
            Some(HolderOrder::Launch { terms, .. }) => {
                HolderEvent::Refused { slot: terms.slot, errno: 1 }
            }
            _ => continue,
        };
        send(&socket, &answer.encode(), &[]).unwrap();
    }
}
