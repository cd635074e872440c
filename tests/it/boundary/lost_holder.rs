//! Processes whose process holder is lost: they do not live on, and what lives on proves nothing.

use std::fs;

use crate::harness::client::{completed_outcome, task_outcome};
use crate::harness::processes::{is_alive, kill9, pids_and_labels};
use crate::harness::{ServiceProcess, Setup, fake_agent_config, poll_until};
use crate::read_only::skip_without_requirement;

/// Starts a process without the label and without the environment of its agent, and waits.
const PARENT_SCRIPT: &str = r#"#!/usr/bin/perl
my $here = $ENV{PLACE};
my $prlimit = `uname -m` =~ /aarch64/ ? 261 : 302;
my $child = fork() // die;
if (!$child) {
    require POSIX;
    POSIX::setsid();
    my $unlimited = pack('QQ', ~0, ~0);
    syscall($prlimit, 0, 10, $unlimited, 0) == 0 or die "label: $!";
    %ENV = ();
    exec('/usr/bin/perl', "$here/escaped", $here);
}
sleep 600;
"#;

/// Reports its number, and asks every process holder for what it holds, in the name of a service.
const ESCAPED_SCRIPT: &str = r#"
use Socket;
my $here = shift;
open(my $log, '>>', "$here/log"); $log->autoflush(1);
open(my $pid, '>', "$here/pid.new"); print {$pid} $$; close $pid;
rename "$here/pid.new", "$here/pid";
my %names = (1 => 'hello', 6 => 'a program', 7 => 'the end of the list', 8 => 'the key');
my $begin = time;
until (-e "$here/stop" || time - $begin > 120) {
    for my $place (glob "$here/run/algonius/w-*.sock") {
        socket(my $socket, PF_UNIX, SOCK_SEQPACKET, 0) or next;
        connect($socket, pack_sockaddr_un($place)) or next;
        send($socket, pack('CQ<Q<Q<', 1, 2, 600000, 0), 0);
        send($socket, "\x06", 0);
        while (1) {
            my $ready = '';
            vec($ready, fileno($socket), 1) = 1;
            select($ready, undef, undef, 0.2) or last;
            defined(recv($socket, my $answer, 70000, 0)) && length $answer or last;
            my $name = $names{ord $answer} or next;
            print {$log} "got $name\n";
        }
    }
    open(my $round, '>>', "$here/rounds"); print {$round} '.'; close $round;
    select(undef, undef, undef, 0.01);
}
"#;

/// A confined agent that escapes from its process holder when that is lost, and agents of other callers.
fn setup() -> Setup {
    let agents = format!(
        "[agents.parent]\ncommand = 'HERE/parent'\nenv.PLACE = 'HERE'\nsandbox.writable = ['HERE']\n\
         [agents.victim]\ncommand = 'sh'\nsandbox.writable = ['HERE']\n\
         args = ['-c', 'read word; echo start >> HERE/victim; \
         until [ -e HERE/go ]; do sleep 0.05; done; echo \"$word\"']\n{}",
        fake_agent_config("one", "echo", "")
    );
    let setup = Setup::new(&agents)
        .with_executable("parent", PARENT_SCRIPT)
        .with_executable("escaped", ESCAPED_SCRIPT);
    for name in ["parent", "escaped"] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(setup.test_folder().join(name), mode).unwrap();
    }
    setup.without_bubblewrap()
}

/// The number of the process that carries nothing of its agent.
async fn start_escaped_process(service: &ServiceProcess) -> i32 {
    service.start_task("parent", "x").await;
    let read_pid = async || service.setup.read_file("pid").parse().ok();
    let pid = poll_until("the process", read_pid).await;
    let has_label = pids_and_labels()
        .into_iter()
        .any(|(labelled_pid, label)| labelled_pid == pid && label < 1 << 62);
    assert!(is_alive(pid) && !has_label, "it carries a label");
    pid
}

async fn expect_no_survivor(setup: Setup) {
    let service = setup.start().await;
    let pid = start_escaped_process(&service).await;
    kill9(service.holder_pid());
    // A request may still reach the process holder that has just been killed.
    let is_answered = async || {
        (task_outcome(&service.send("one", "again").await) == completed_outcome("again"))
            .then_some(())
    };
    poll_until("an answer", is_answered).await;
    assert!(!is_alive(pid), "it lives below {}", parent_pid(pid));
    let stderr = service.stderr_text();
    assert!(stderr.contains("terminated processes of a lost process holder"), "{stderr}");
}

fn parent_pid(pid: i32) -> i32 {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    line.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().parse().unwrap()
}

#[tokio::test]
async fn processes_of_a_lost_process_holder_end() {
    if !skip_without_requirement("Landlock 6") {
        expect_no_survivor(setup()).await;
    }
}

#[tokio::test]
async fn processes_of_a_lost_holder_end_for_a_plain_user() {
    if !skip_without_requirement("Landlock 6") && !skip_without_requirement("root") {
        expect_no_survivor(setup().with_unprivileged_user()).await;
    }
}

/// The process falls to init instead of the service, so its ancestors name no process holder. Meanwhile no
/// service is connected to the process holder of the victim.
async fn expect_escaped_process_refused(setup: Setup) {
    let mut service = setup.start().await;
    let first_holder_pid = service.holder_pid();
    let pid = start_escaped_process(&service).await;
    service.kill9().await;
    service.start_again().await;
    let victim = service.start_task("victim", "input of another caller").await;
    service.setup.wait_for_file_text("victim", "start\n").await;
    kill9(first_holder_pid);
    poll_until("another parent", async || (parent_pid(pid) != first_holder_pid).then_some(()))
        .await;
    service.kill9().await;
    let wait_for_rounds = async |count: usize| {
        let initial_count = service.setup.read_file("rounds").len();
        let have_rounds_passed = async || {
            (service.setup.read_file("rounds").len() > initial_count + count).then_some(())
        };
        poll_until("some rounds", have_rounds_passed).await;
    };
    wait_for_rounds(5).await;
    assert!(is_alive(pid));
    assert_eq!(service.setup.read_file("log"), "", "a process holder answered");
    service.start_again().await;
    service.setup.open_gate("go");
    let victim_outcome = task_outcome(&service.wait_for_task_end("victim", &victim).await);
    assert_eq!(victim_outcome, completed_outcome("input of another caller\n"));
    service.setup.open_gate("stop");
    assert_eq!(service.setup.read_file("log"), "", "a process holder answered");
}

#[tokio::test]
async fn only_a_service_with_the_key_is_admitted() {
    if !skip_without_requirement("Landlock 6") {
        expect_escaped_process_refused(setup()).await;
    }
}

#[tokio::test]
async fn only_a_service_with_the_key_of_a_user_is_admitted() {
    if !skip_without_requirement("Landlock 6") && !skip_without_requirement("root") {
        expect_escaped_process_refused(setup().with_unprivileged_user()).await;
    }
}
