//! Owners of the service's files, where the service runs as root and so do its agents.

use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::harness::client::{task_id, task_outcome};
use crate::harness::{ServiceProcess, Setup, poll_until};
use crate::read_only::skip_without_requirement;

/// Another user, who would then read the token.
const OTHER_USER_ID: u32 = 65_533;

/// Prints which rights of root worked, and works with files of other users.
const ROOT_SCRIPT: &str = r#"#!/usr/bin/perl
use POSIX ();
my ($here, $tmp) = @ENV{qw(PLACE TMPDIR)};
my $other = 65533;
my %ways = (
    'own the token' => sub { chown($other, -1, "$here/state/algonius/token") },
    'own the token by its group' => sub { chown(-1, $other, "$here/state/algonius/token") },
    'give a file of its own away' => sub { open(my $f, '>', "$tmp/own"); close $f; chown($other, $other, "$tmp/own") },
    'change the mode of a file of another user' => sub { chmod(0644, "$here/foreign") },
    'become another user' => sub { my $pid = fork() // die; if (!$pid) { $! = 0; $< = $> = $other; POSIX::_exit($> == $other ? 0 : 1) } waitpid($pid, 0); $? == 0 },
    'become another group' => sub { my $pid = fork() // die; if (!$pid) { POSIX::_exit(defined POSIX::setgid($other) ? 0 : 1) } waitpid($pid, 0); $? == 0 },
    'signal another user' => sub { open(my $f, '<', "$here/pid"); kill 0, 0 + <$f> },
);
print join(', ', grep { $ways{$_}->() } sort keys %ways), "\n";
open(my $foreign, '<', "$here/foreign") or print "cannot read a file of another user: $!\n";
print <$foreign>;
"#;

fn setup(settings: &str) -> Setup {
    let agent = format!("[agents.root]\ncommand = 'HERE/root'\nenv.PLACE = 'HERE'\n{settings}\n");
    let setup = Setup::new(&agent).with_executable("root", ROOT_SCRIPT).without_bubblewrap();
    fs::write(setup.test_folder().join("pid"), "").unwrap();
    let foreign_file = setup.test_folder().join("foreign");
    fs::write(&foreign_file, "text of another user\n").unwrap();
    fs::set_permissions(&foreign_file, std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .unwrap();
    chown(&foreign_file, Some(OTHER_USER_ID), Some(OTHER_USER_ID)).unwrap();
    setup
}

async fn run_root_agent(service: &ServiceProcess) -> String {
    let mut victim =
        Command::new("sleep").arg("600").uid(OTHER_USER_ID).gid(OTHER_USER_ID).spawn().unwrap();
    fs::write(service.setup.test_folder().join("pid"), victim.id().to_string()).unwrap();
    let task = service.send("root", "go").await;
    victim.kill().unwrap();
    victim.wait().unwrap();
    let (state, text) = task_outcome(&task);
    assert_eq!(state, "completed", "{}", service.fetch_execution(&task_id(&task)).await);
    text
}

/// It reads files of other users, as an agent of root does, and gives no file away.
#[tokio::test]
async fn a_read_only_agent_of_root_changes_no_owner() {
    if skip_without_requirement("Landlock 6") || skip_without_requirement("root") {
        return;
    }
    let service = setup("").start().await;
    assert_eq!(run_root_agent(&service).await, "\ntext of another user\n");
    assert_eq!(fs::metadata(service.setup.token_file()).unwrap().uid(), 0);
}

/// An agent that unpacks archives as root sets owners, and Landlock has no right for owners.
#[tokio::test]
async fn the_service_restores_owners() {
    if skip_without_requirement("Landlock 6") || skip_without_requirement("root") {
        return;
    }
    let confined = "access = 'read-write'\nworking_dir = 'HERE/home'\nsandbox.writable = []";
    let service = setup(confined).start().await;
    let token = service.setup.token_file();
    let expected = "change the mode of a file of another user, give a file of its own away, \
                own the token, own the token by its group\ntext of another user\n";
    assert_eq!(run_root_agent(&service).await, expected);
    let is_owner_restored = async || {
        let metadata = fs::metadata(&token).unwrap();
        ((metadata.uid(), metadata.gid()) == (0, 0)).then_some(())
    };
    poll_until("the owner", is_owner_restored).await;
    assert_eq!(fs::metadata(&token).unwrap().mode() & 0o777, 0o600);
    let message = "a file was opened to other users; its mode and owner are restored";
    poll_until("the log", async || service.stderr_text().contains(message).then_some(())).await;
    let reason = poll_until("the reason", async || {
        let configuration = service.get("/status").await.json()["configuration"].clone();
        (configuration["watched"] == false).then(|| configuration["unwatchedReason"].clone())
    });
    assert_eq!(reason.await, "`token` was opened to other users while the service ran");
}
