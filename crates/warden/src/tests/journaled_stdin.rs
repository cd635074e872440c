//! Tests of a journaled standard input that a process holder holds.

use std::cell::RefCell;
use std::fs;
use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::path::PathBuf;
use std::sync::Arc;

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::program::ProcessExit;
use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{SockType, getsockopt, sockopt};

use super::fixture::{HolderFixture, ServiceInstance};
use super::holder_options;
use crate::process_holders::holder_link::HolderLink;
use crate::process_holders::reattach;
use crate::process_holders::{HolderCommand, ProcessHolderOptions, ProcessHolders};
use crate::protocol::frame::{HolderEvent, HolderOrder, MIN_STDIN_JOURNAL_VERSION, SecretValue};
use crate::protocol::packet::{receive_packet, send_packet};
use crate::protocol::peer_auth::HolderKey;
use crate::{
    LaunchRequest, OutputMemory, ProgramLauncher, SpawnedProgram, StdinJournal, StdinJournalError,
    StdinSource,
};

/// Script that copies its input to a file, and then ends.
const COPY_SCRIPT: &str = "cat > got; exit 3";

fn journaled_launch_request(
    fixture: &HolderFixture,
    id: ExecutionId,
    script: &str,
) -> LaunchRequest {
    LaunchRequest { stdin: StdinSource::Journaled, ..fixture.shell_launch_request(id, script) }
}

fn copied_input(fixture: &HolderFixture) -> String {
    fs::read_to_string(fixture.home.path().join("got")).unwrap_or_default()
}

fn take_journal(spawned: &mut SpawnedProgram) -> StdinJournal {
    spawned.stdin_journal.take().unwrap()
}

fn take_over_running(service: &ServiceInstance, id: ExecutionId) -> SpawnedProgram {
    let program_taken_over = service.holders.begin_takeover(id, AttemptId::FIRST).unwrap();
    assert!(program_taken_over.running_time.is_some(), "it runs");
    service.complete_takeover(id)
}

#[test]
fn a_fed_input_survives_services_until_it_is_closed() {
    let (fixture, id) = (HolderFixture::new(), ExecutionId::generate());
    let mut service = fixture.start_service();
    let mut spawned = service.launch(journaled_launch_request(&fixture, id, COPY_SCRIPT));
    let mut expected = String::new();
    for number in 0..3 {
        let mut journal = take_journal(&mut spawned);
        assert_eq!(journal.read_messages().unwrap(), expected.as_bytes());
        let message = format!("{number} {}\n", "x".repeat(200_000));
        service.runtime.block_on(async {
            // Some of it is left to the next service.
            journal.write_message(message.as_bytes()).unwrap();
        });
        expected.push_str(&message);
        drop((service, spawned, journal)); // As after a kill.
        service = fixture.start_service();
        spawned = take_over_running(&service, id);
    }
    let mut journal = take_journal(&mut spawned);
    service.wait(journal.deliver()).unwrap();
    service.wait_until(|| copied_input(&fixture).len() == expected.len());
    service.runtime.block_on(async {
        assert!(journal.clear_if_read().unwrap());
        journal.write_message(b"last\n").unwrap();
    });
    expected.push_str("last\n");
    journal.close();
    assert_eq!(service.wait(spawned.exit).unwrap(), ProcessExit::Code(3));
    assert!(copied_input(&fixture) == expected, "each message is there once");
}

#[test]
fn the_journal_of_a_closed_input_can_be_read() {
    let (fixture, id) = (HolderFixture::new(), ExecutionId::generate());
    let service = fixture.start_service();
    let mut spawned = service.launch(journaled_launch_request(
        &fixture,
        id,
        "cat > got; touch end; exec sleep 600",
    ));
    let mut first = take_journal(&mut spawned);
    service.runtime.block_on(async { first.write_message(b"a\n").unwrap() });
    first.close();
    service.wait_until(|| fixture.home.path().join("end").exists());
    let assert_input_is_closed = |service: &ServiceInstance, next: &mut SpawnedProgram| {
        let mut second = take_journal(next);
        assert_eq!(
            (second.read_messages().unwrap(), second.delivered_bytes()),
            (b"a\n".to_vec(), 2)
        );
        let write_result = service.runtime.block_on(async { second.write_message(b"b\n") });
        assert!(matches!(write_result, Err(StdinJournalError::InputClosed)));
        second.close();
    };
    // The next driver, in this service or the next, understands the output by the messages.
    assert!(service.holders.begin_takeover(id, AttemptId::FIRST).is_some());
    service.wait(async { drop(spawned) });
    let mut next = service.complete_takeover(id);
    assert_input_is_closed(&service, &mut next);
    drop((service, next));
    let service = fixture.start_service();
    let mut last = take_over_running(&service, id);
    let third = take_journal(&mut last);
    // The refused message was recorded, and will never be delivered.
    assert_eq!((third.read_messages().unwrap(), third.delivered_bytes()), (b"a\nb\n".to_vec(), 2));
}

#[test]
fn the_next_driver_of_a_service_continues_a_journal() {
    let (fixture, id) = (HolderFixture::new(), ExecutionId::generate());
    let service = fixture.start_service();
    let mut spawned = service.launch(journaled_launch_request(&fixture, id, COPY_SCRIPT));
    let mut first = take_journal(&mut spawned);
    service.runtime.block_on(async { first.write_message(b"a\n").unwrap() });
    assert!(service.holders.begin_takeover(id, AttemptId::FIRST).is_some());
    service.wait(async { drop((first, spawned)) });
    let mut spawned = service.complete_takeover(id);
    let mut second = take_journal(&mut spawned);
    assert_eq!((second.read_messages().unwrap(), second.delivered_bytes()), (b"a\n".to_vec(), 2));
    service.runtime.block_on(async { second.write_message(b"b\n").unwrap() });
    second.close();
    assert_eq!(service.wait(spawned.exit).unwrap(), ProcessExit::Code(3));
    assert_eq!(copied_input(&fixture), "a\nb\n");
}

#[test]
fn a_program_that_closes_its_input_is_reported() {
    let (fixture, id) = (HolderFixture::new(), ExecutionId::generate());
    let service = fixture.start_service();
    let script = "exec <&-; touch closed; exec sleep 600";
    let mut spawned = service.launch(journaled_launch_request(&fixture, id, script));
    service.wait_until(|| fixture.home.path().join("closed").exists());
    let first = RefCell::new(take_journal(&mut spawned));
    // The process holder may close its copy of the pipe a moment after the program has closed its own.
    service.wait_until(|| {
        let write_result = first.borrow_mut().write_message(b"a\n");
        matches!(write_result, Err(StdinJournalError::InputClosed))
    });
    drop((service, spawned, first));
    // It runs, and its output is still of interest.
    let service = fixture.start_service();
    let mut spawned = take_over_running(&service, id);
    let mut next = take_journal(&mut spawned);
    let write_result = service.runtime.block_on(async { next.write_message(b"b\n") });
    assert!(matches!(write_result, Err(StdinJournalError::InputClosed)));
}

/// Test that a supervisor of an earlier release gets only the descriptors that it knows, and that the program sees the
/// end of its input when nobody will write to it any more.
#[test]
fn an_earlier_supervisor_gets_no_journal() {
    let (fixture, id) = (HolderFixture::new(), ExecutionId::generate());
    let service = fixture.start_service();
    let mut spawned = service.launch(journaled_launch_request(&fixture, id, COPY_SCRIPT));
    let mut journal = take_journal(&mut spawned);
    service.runtime.block_on(async { journal.write_message(b"a\n").unwrap() });
    drop((service, spawned, journal));
    let folder = fs::File::open(fixture.runtime_dir()).unwrap().into();
    let key = HolderKey::read_or_create(&fixture.runtime_dir(), fixture.data_dir_id).unwrap();
    let name = fixture.socket_names().pop().unwrap();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let link = runtime.block_on(async {
        loop {
            // The process holder detects the end of the earlier connection with a delay.
            let Ok(socket) = reattach::connect_trusted_socket(&folder, &name) else { continue };
            let Ok(socket) = key.authenticate(socket).await else { continue };
            let link = HolderLink::open(socket, OutputMemory::with_limit(1 << 20)).unwrap();
            let (no_socket_name, no_key) = (Vec::new(), SecretValue(Vec::new()));
            let hello = HolderOrder::Hello {
                version: MIN_STDIN_JOURNAL_VERSION - 1,
                reattach_grace_ms: 20_000,
                socket_name: no_socket_name,
                key: no_key,
            };
            link.send_order(hello, Vec::new());
            link.send_order(HolderOrder::List, Vec::new());
            if link.wait_until_or_lost(|state| state.has_listed_programs).await.has_listed_programs
            {
                return link;
            }
        }
    });
    let program = link.programs().pop().unwrap();
    let exit = runtime.block_on(Arc::clone(&program).wait_for_exit());
    assert_eq!((exit.unwrap(), copied_input(&fixture).as_str()), (ProcessExit::Code(3), "a\n"));
    let journal = runtime.block_on(program.attach_stdin_journal(Box::new(|| {}))).unwrap();
    assert!(journal.is_none());
}

#[test]
fn an_earlier_process_holder_gets_no_fed_program() {
    let fixture = HolderFixture::new();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let args = ["tests::journaled_stdin::earlier_holder", "--exact", "--nocapture"];
    let args = args.into_iter().map(Into::into).collect();
    let command = HolderCommand { program: PathBuf::from("/proc/self/exe"), args };
    let options = ProcessHolderOptions {
        command,
        ..holder_options(&fixture.runtime_dir(), fixture.data_dir_id)
    };
    let holders = runtime.block_on(ProcessHolders::start(options)).unwrap();
    let id = ExecutionId::generate();
    let launched =
        runtime.block_on(holders.launch(journaled_launch_request(&fixture, id, COPY_SCRIPT)));
    let error = launched.map(|_| ()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Unsupported);
    let cause = error.get_ref().and_then(|cause| cause.downcast_ref());
    let required_version = MIN_STDIN_JOURNAL_VERSION;
    assert!(
        matches!(cause, Some(StdinJournalError::HolderTooOld { version, needed: it })
            if *version == MIN_STDIN_JOURNAL_VERSION - 1 && *it == required_version),
        "{cause:?}"
    );
    // It refuses every order of a launch that reaches it.
    let other = runtime.block_on(holders.launch(fixture.shell_launch_request(id, COPY_SCRIPT)));
    assert_eq!(other.map(|_| ()).unwrap_err().raw_os_error(), Some(libc::EPERM));
}

/// Entry point of a process holder of the version before [`MIN_STDIN_JOURNAL_VERSION`], not a test.
#[test]
fn earlier_holder() {
    if !matches!(getsockopt(&io::stdin(), sockopt::SockType), Ok(SockType::SeqPacket)) {
        return;
    }
    let socket = io::stdin().as_fd().try_clone_to_owned().unwrap();
    loop {
        poll(&mut [PollFd::new(socket.as_fd(), PollFlags::POLLIN)], PollTimeout::NONE).unwrap();
        let Some(packet) = receive_packet(&socket).unwrap() else { return };
        let answer = match HolderOrder::decode(&packet.frame) {
            Some(HolderOrder::Hello { .. }) => HolderEvent::Hello {
                version: MIN_STDIN_JOURNAL_VERSION - 1,
                pid: std::process::id().into(),
            },
            Some(HolderOrder::Launch { hold_terms, .. }) => {
                HolderEvent::LaunchFailed { program_number: hold_terms.program_number, errno: 1 }
            }
            _ => continue,
        };
        send_packet(&socket, &answer.encode(), &[]).unwrap();
    }
}
