//! Sockets of the service: only the next process of the service can use them, and only with its own process
//! holders.

use std::fs;

use crate::harness::client::{completed_outcome, task_outcome};
use crate::harness::{Setup, poll_until};

/// Repeatedly tries to send a request to every process holder, and records which ones answered.
const SPEAKER_SCRIPT: &str = r#"#!/usr/bin/perl
use Socket;
my $here = $ENV{PLACE};
open(my $log, '>>', "$here/log"); select($log); $| = 1;
print "start\n";
until (-e "$here/go") {
    for my $place (glob "$here/run/algonius/w-*.sock") {
        socket(my $socket, PF_UNIX, SOCK_SEQPACKET, 0) or next;
        connect($socket, pack_sockaddr_un($place)) or next;
        send($socket, "\x06", 0);
        my $ready = '';
        vec($ready, fileno($socket), 1) = 1;
        select($ready, undef, undef, 0.2) or next;
        print "spoke\n" if defined(recv($socket, my $answer, 100, 0)) && length $answer;
    }
    open(my $round, '>>', "$here/rounds") or next;
    print {$round} '.';
    select(undef, undef, undef, 0.01);
}
print STDOUT "over\n";
"#;

/// Listens at the address of a process holder, and reports to the service that it holds nothing.
const FAKE_HOLDER_SCRIPT: &str = r#"#!/usr/bin/perl
use Socket;
my $here = $ENV{PLACE};
my ($real) = glob "$here/run/algonius/w-*.sock";
(my $fake = $real) =~ s/[0-9a-f]{32}\.sock$/ffffffffffffffffffffffffffffffff.sock/;
socket(my $socket, PF_UNIX, SOCK_SEQPACKET, 0) or die "socket: $!";
bind($socket, pack_sockaddr_un($fake)) && listen($socket, 9) or die "bind: $!";
open(my $log, '>>', "$here/log"); $log->autoflush(1);
print {$log} "start\n";
until (-e "$here/go") {
    my $ready = '';
    vec($ready, fileno($socket), 1) = 1;
    select($ready, undef, undef, 0.05) or next;
    accept(my $visitor, $socket) or next;
    recv($visitor, my $frame, 1000, 0);
    print {$log} "was spoken to\n" if length $frame;
    send($visitor, "\x07", 0);
}
print "over\n";
"#;

/// An agent that nothing confines, so that it reaches the folder of the sockets.
fn unconfined_agent_config(id: &str) -> String {
    format!(
        "[agents.{id}]\ncommand = 'HERE/{id}'\nenv.PLACE = 'HERE'\nsandbox.enforce = false\n\
         env.NAME = '{id}'\n"
    )
}

/// The program runs under the first process holder, and also tries the holder of the second service process.
#[tokio::test]
async fn an_agent_cannot_take_over_a_process_holder() {
    let agents =
        format!("{}{}", unconfined_agent_config("speaker"), unconfined_agent_config("other"));
    let other_script = "#!/bin/sh\necho start >> \"$PLACE/log\"\nuntil [ -e \"$PLACE/go\" ]; do sleep 0.05; done\n";
    let setup = Setup::new(&agents)
        .with_executable("speaker", SPEAKER_SCRIPT)
        .with_executable("other", other_script);
    let mut service = setup.start().await;
    let id = service.start_task("speaker", "x").await;
    service.setup.wait_for_file_text("log", "start\n").await;
    service.kill9().await;
    service.start_again().await;
    service.start_task("other", "x").await;
    service.setup.wait_for_file_text("log", "start\nstart\n").await;
    service.kill9().await;
    // No process serves the two holders now, so the agent can use their sockets alone.
    let entries = fs::read_dir(service.setup.test_folder().join("run/algonius")).unwrap().flatten();
    let names = entries.map(|entry| entry.file_name().into_string().unwrap());
    let names: Vec<_> = names.filter(|name| name.ends_with(".sock")).collect();
    assert_eq!(names.len(), 2, "{names:?}");
    let initial_round_count = service.setup.read_file("rounds").len();
    let have_rounds_passed =
        async || (service.setup.read_file("rounds").len() > initial_round_count + 5).then_some(());
    poll_until("some rounds", have_rounds_passed).await;
    service.start_again().await;
    service.setup.open_gate("go");
    assert_eq!(
        task_outcome(&service.wait_for_task_end("speaker", &id).await),
        completed_outcome("over\n")
    );
    assert_eq!(service.setup.read_file("log"), "start\nstart\n");
}

#[tokio::test]
async fn the_service_does_not_trust_a_socket_of_an_agent() {
    let setup = Setup::new(&unconfined_agent_config("pretender"))
        .with_executable("pretender", FAKE_HOLDER_SCRIPT);
    let mut service = setup.start().await;
    let id = service.start_task("pretender", "x").await;
    service.setup.wait_for_file_text("log", "start\n").await;
    service.kill9().await;
    service.start_again().await;
    service.setup.open_gate("go");
    assert_eq!(
        task_outcome(&service.wait_for_task_end("pretender", &id).await),
        completed_outcome("over\n")
    );
    assert_eq!(service.setup.read_file("log"), "start\n", "the service spoke to an agent");
    let stderr = service.stderr_text();
    assert!(stderr.contains("refused a socket that belongs to an agent"), "{stderr}");
}
