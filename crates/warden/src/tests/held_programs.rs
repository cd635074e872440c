//! Tests of held programs through the loss of either side.

use std::fs;
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::Duration;

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::program::ProcessExit;
use tokio::io::AsyncReadExt;

use super::fixture::{HolderFixture, SCRIPT_IGNORING_SIGTERM, digest, kill_pids};
use super::holder_options;
use crate::process_holders::launch_order::{PreparedLaunch, prepare_launch};
use crate::process_holders::reattach;
use crate::protocol::peer_auth::HolderKey;
use crate::{LaunchRequest, OutputMemory, ProgramLauncher};

const LINE_COUNT: usize = 1_000_000;

fn numbered_lines() -> Vec<u8> {
    (1..=LINE_COUNT).flat_map(|number| format!("{number}\n").into_bytes()).collect()
}

#[test]
fn a_million_lines_survive_the_loss_of_the_service() {
    let (fixture, id) = (HolderFixture::new(), ExecutionId::generate());
    let mut service = fixture.start_service();
    let mut spawned = service.launch(
        fixture
            .shell_launch_request(id, &format!("seq {LINE_COUNT}; seq {LINE_COUNT} >&2; exit 3")),
    );
    for bytes in [0, 1, 100_000, 1_000_000, 3_000_000] {
        let mut prefix = vec![0; bytes];
        service.wait(spawned.stdout.read_exact(&mut prefix)).unwrap();
        drop((service, spawned)); // As after a kill: the sockets are closed without a shutdown order.
        service = fixture.start_service();
        assert!(service.holders.begin_takeover(id, AttemptId::FIRST).is_some());
        spawned = service.complete_takeover(id);
    }
    let expected = digest(&numbered_lines());
    let (mut out, mut err) = (Vec::new(), Vec::new());
    let read_to_end = tokio::io::AsyncReadExt::read_to_end;
    let read_both = async {
        tokio::join!(
            read_to_end(&mut spawned.stdout, &mut out),
            read_to_end(&mut spawned.stderr, &mut err)
        )
    };
    let read_results = service.wait(read_both);
    assert!(read_results.0.is_ok() && read_results.1.is_ok());
    assert_eq!((digest(&out), digest(&err)), (expected, expected));
    assert_eq!(service.wait(spawned.exit).unwrap(), ProcessExit::Code(3));
}

#[test]
fn a_claimed_program_is_not_ended_by_its_previous_owner() {
    let (fixture, id) = (HolderFixture::new(), ExecutionId::generate());
    let service = fixture.start_service();
    let first = service.launch(
        fixture.shell_launch_request(id, "seq 3; until [ -e go ]; do sleep 0.01; done; seq 4 6"),
    );
    service.wait_until(|| !fixture.live_pids(id).is_empty());
    assert!(service.holders.begin_takeover(id, AttemptId::FIRST).is_some());
    service.wait(first.tree.wait_until_taken_over());
    service.wait(async move { drop(first) });
    let mut next = service.complete_takeover(id);
    fs::write(fixture.home.path().join("go"), "").unwrap();
    assert_eq!(service.read(&mut next.stdout), b"1\n2\n3\n4\n5\n6\n");
    assert_eq!(service.wait(next.exit).unwrap(), ProcessExit::Code(0));
}

#[test]
fn a_program_that_ended_unattended_reports_all_its_output() {
    let (fixture, id) = (HolderFixture::new(), ExecutionId::generate());
    let service = fixture.start_service();
    let script = format!(
        "until [ -e go ]; do sleep 0.01; done; seq {LINE_COUNT}; setsid sleep 600 & exit 7"
    );
    let spawned = service.launch(fixture.shell_launch_request(id, &script));
    drop((service, spawned));
    fs::write(fixture.home.path().join("go"), "").unwrap();
    fixture.wait_until(|| fixture.live_pids(id).is_empty());
    let service = fixture.start_service();
    assert!(service.holders.begin_takeover(id, AttemptId::FIRST).is_some(), "it is held");
    let mut spawned = service.complete_takeover(id);
    assert_eq!(digest(&service.read(&mut spawned.stdout)), digest(&numbered_lines()));
    assert_eq!(service.wait(spawned.exit).unwrap(), ProcessExit::Code(7));
}

#[test]
fn unattended_output_beyond_the_cap_does_not_block_a_program() {
    let (fixture, id) = (HolderFixture::new(), ExecutionId::generate());
    let service = fixture.start_service();
    let script = "until [ -e go ]; do sleep 0.01; done; head -c 9000000 /dev/zero; touch done";
    let spawned = service.launch(LaunchRequest {
        max_recorded_bytes: 100_000,
        ..fixture.shell_launch_request(id, script)
    });
    drop((service, spawned));
    fs::write(fixture.home.path().join("go"), "").unwrap();
    fixture.wait_until(|| fixture.home.path().join("done").exists());
    let service = fixture.start_service();
    let mut spawned = service.complete_takeover(id);
    assert_eq!(service.read(&mut spawned.stdout).len(), 100_000);
    assert_eq!(service.wait(spawned.exit).unwrap(), ProcessExit::Code(0));
}

#[test]
fn a_program_bound_to_its_service_ends_with_it() {
    let (fixture, id, other) =
        (HolderFixture::new(), ExecutionId::generate(), ExecutionId::generate());
    let service = fixture.start_service();
    let spawned = (
        service.launch(LaunchRequest {
            ends_with_supervisor: true,
            ..fixture.shell_launch_request(id, SCRIPT_IGNORING_SIGTERM)
        }),
        service.launch(fixture.shell_launch_request(other, SCRIPT_IGNORING_SIGTERM)),
    );
    service.wait_until(|| fixture.live_pids(id).len() + fixture.live_pids(other).len() == 6);
    drop((service, spawned));
    fixture.wait_until(|| fixture.live_pids(id).is_empty());
    assert_eq!(fixture.live_pids(other).len(), 3);
    let service = fixture.start_service();
    let end = service.wait(service.complete_takeover(id).exit).unwrap();
    assert_eq!(end, ProcessExit::Signal(9));
    let spawned = service.complete_takeover(other);
    service.wait(async { drop(spawned) }); // Lets it go, which ends it.
    service.wait_until(|| fixture.live_pids(other).is_empty());
}

#[test]
fn all_programs_end_if_no_service_returns_in_time() {
    let (mut fixture, id) = (HolderFixture::new(), ExecutionId::generate());
    fixture.reattach_grace = Duration::from_millis(300);
    let service = fixture.start_service();
    let spawned = service.launch(fixture.shell_launch_request(id, SCRIPT_IGNORING_SIGTERM));
    service.wait_until(|| fixture.live_pids(id).len() == 3);
    drop((service, spawned));
    fixture.wait_until(|| fixture.live_pids(id).is_empty());
    fixture.wait_until(|| fixture.socket_names().is_empty());
    assert!(fixture.start_service().holders.begin_takeover(id, AttemptId::FIRST).is_none());
}

#[test]
fn a_killed_process_holder_is_reported_and_replaced() {
    let (fixture, id) = (HolderFixture::new(), ExecutionId::generate());
    let service = fixture.start_service();
    let spawned = service.launch(fixture.shell_launch_request(id, SCRIPT_IGNORING_SIGTERM));
    service.wait_until(|| fixture.live_pids(id).len() == 3);
    service.kill_process_holders();
    let lost = service.wait(spawned.exit).unwrap_err();
    assert_eq!(lost.kind(), ErrorKind::ConnectionAborted);
    assert!(service.wait(spawned.tree.kill_all_processes()) > 0);
    assert!(fixture.live_pids(id).is_empty());
    let mut next =
        service.launch(fixture.shell_launch_request(ExecutionId::generate(), "echo again"));
    assert_eq!(service.read(&mut next.stdout), b"again\n");
}

#[test]
fn orphans_are_swept_at_the_next_start_and_nothing_else() {
    let (fixture, other) = (HolderFixture::new(), HolderFixture::new());
    let (id, other_id) = (ExecutionId::generate(), ExecutionId::generate());
    let (service, other_service) = (fixture.start_service(), other.start_service());
    let spawned = (
        service.launch(fixture.shell_launch_request(id, SCRIPT_IGNORING_SIGTERM)),
        other_service.launch(other.shell_launch_request(other_id, SCRIPT_IGNORING_SIGTERM)),
    );
    service.wait_until(|| fixture.live_pids(id).len() + other.live_pids(other_id).len() == 6);
    let holder_pids = service.holders.pids();
    drop(service);
    kill_pids(&holder_pids); // Both are dead.
    assert_eq!(fixture.live_pids(id).len(), 3);
    let service = fixture.start_service();
    assert_eq!((fixture.live_pids(id).len(), other.live_pids(other_id).len()), (0, 3));
    drop((service, other_service, spawned));
}

#[test]
fn a_replaced_warden_starts_no_program() {
    let (fixture, id) = (HolderFixture::new(), ExecutionId::generate());
    let service = fixture.start_service();
    let spawned = service.launch(fixture.shell_launch_request(id, SCRIPT_IGNORING_SIGTERM));
    drop((service, spawned));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    let pid_and_errno = runtime.block_on(async {
        let folder = OwnedFd::from(fs::File::open(fixture.runtime_dir()).unwrap());
        let options = holder_options(&fixture.runtime_dir(), fixture.data_dir_id);
        let key = HolderKey::read_or_create(&fixture.runtime_dir(), fixture.data_dir_id).unwrap();
        let link = reattach::reattach_holders(&folder, &options, &key).await.pop().unwrap();
        let launch = fixture.shell_launch_request(ExecutionId::generate(), "echo in");
        let PreparedLaunch { program, order, fds, stdin_pipe: _ } = prepare_launch(
            launch,
            (None, OutputMemory::with_limit(1 << 30).new_account()),
            fixture.data_dir_id,
            link.allocate_program_number(),
        )
        .unwrap();
        link.add_program(Arc::clone(&program));
        link.send_order(order, fds);
        let state = program
            .wait_until_or_lost(|state| state.pid.is_some() || state.launch_errno.is_some())
            .await;
        (state.pid, state.launch_errno)
    });
    assert_eq!(pid_and_errno, (None, Some(libc::EPERM)));
}

#[test]
fn a_program_cannot_take_over_its_own_warden() {
    let (fixture, id) = (HolderFixture::new(), ExecutionId::generate());
    let service = fixture.start_service();
    let name = fixture.socket_names().pop().unwrap();
    // A sequenced packet socket in perl: it receives the end at once, and nothing else.
    let script = format!(
        "cd run && exec setsid env -i /usr/bin/perl -MSocket -e 'socket(S, AF_UNIX, 5, 0) or die; \
         connect(S, sockaddr_un(\"{name}\")) or die $!; my $n = sysread(S, my $b, 99); \
         print \"got \", $n // -1'"
    );
    let mut spawned = service.launch(fixture.shell_launch_request(id, &script));
    assert_eq!(service.read(&mut spawned.stdout), b"got 0");
}
