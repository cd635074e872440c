//! Resource limits of other processes: Landlock does not restrict `prlimit`, so a seccomp filter does.

use std::fs;

#[cfg(target_arch = "x86_64")]
use super::machine_code::{DATA_ADDRESS, i386_call_program, x32_call_program};
use super::{
    BUBBLEWRAP_SETTING, CONFINED_SETTINGS, UNCONFINED_SETTING, hostile_setup,
    with_unprivileged_user,
};
use crate::harness::Setup;
use crate::harness::client::{completed_outcome, task_outcome};
use crate::read_only::skip_without_requirement;

/// Limit that nothing here depends on, `RLIMIT_MSGQUEUE`, and a value for it that no process has.
const LIMIT_RESOURCE: u32 = 12;
const LIMIT_VALUE: u64 = 12_345;

/// Tries to limit the processes that `pids` names with the calls of every architecture that this machine
/// executes, and then does what ordinary programs do with limits and priorities.
const LIMITER_SCRIPT: &str = r#"#!/usr/bin/perl
$| = 1;
my $here = $ENV{PLACE};
my $prlimit = `uname -m` =~ /aarch64/ ? 261 : 302;
open(my $file, '<', "$here/pids");
my ($service, $holder, $other) = split / /, <$file>;
my $new = pack('QQ', 12345, 12345);
sub limits { return syscall($prlimit, int $_[0], 12, $new, 0) >= 0 }
my %pids = (service => $service, 'process holder' => $holder, 'another program' => $other);
for my $name (sort keys %pids) {
    print "limited the $name\n" if limits($pids{$name});
    print "limited the $name by prlimit\n" if system("prlimit --pid $pids{$name} --msgqueue=12345:12345 2>/dev/null") == 0;
}
for my $gate (glob "$here/gate-*") {
    my $status = system($gate);
    print "limited the service by $gate\n" if $status == 0;
}
my $seen = "\0" x 16;
my $child = fork() // die;
if (!$child) { sleep 60; exit }
syscall($prlimit, 0 + $child, 12, 0, $seen) == 0 or print "cannot read limits: $!\n";
limits(0) or print "cannot limit itself: $!\n";
system('ulimit -S -n 64; ulimit -c 0') == 0 or print "ulimit fails\n";
system('prlimit --msgqueue=12345:12345 true') == 0 or print "prlimit fails for a program that it starts\n";
setpriority(0, 0 + $child, 19) or print "cannot change the priority of a child: $!\n";
kill 9, $child;
system('nice -n 1 true') == 0 or print "nice fails\n";
print "done\n";
"#;

/// Returns a program that sets the limit of a process by an interface that ordinary programs do not use.
#[cfg(target_arch = "x86_64")]
fn limiter_program(is_x32: bool, pid: u32) -> Vec<u8> {
    let args = [pid, LIMIT_RESOURCE, DATA_ADDRESS];
    let limit = [LIMIT_VALUE.to_le_bytes(), LIMIT_VALUE.to_le_bytes()].concat();
    match is_x32 {
        true => x32_call_program(302, args, &limit),
        false => i386_call_program(340, args, &limit),
    }
}

async fn expect_unchanged_limits(setup: Setup) {
    let setup = setup
        .with_executable("hostile", LIMITER_SCRIPT)
        .with_executable("gate-32", "")
        .with_executable("gate-x32", "");
    for name in ["hostile", "gate-32", "gate-x32"] {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(setup.test_folder().join(name), mode).unwrap();
    }
    let service = setup.start().await;
    let test_folder = service.setup.test_folder();
    let mut victim = std::process::Command::new("sleep");
    // A process of the service's user beside everything that the service started.
    let owner = fs::metadata(test_folder.join("home")).unwrap();
    let owner = std::os::unix::fs::MetadataExt::uid(&owner);
    std::os::unix::process::CommandExt::uid(&mut victim, owner);
    std::os::unix::process::CommandExt::gid(&mut victim, owner);
    let mut victim = victim.arg("600").spawn().unwrap();
    fs::write(
        test_folder.join("pids"),
        format!("{} {} {}", service.pid(), service.holder_pid(), victim.id()),
    )
    .unwrap();
    #[cfg(target_arch = "x86_64")]
    for (name, is_x32) in [("gate-32", false), ("gate-x32", true)] {
        fs::write(test_folder.join(name), limiter_program(is_x32, victim.id())).unwrap();
    }
    let result = task_outcome(&service.send("hostile", "go").await);
    let limits = fs::read_to_string(format!("/proc/{}/limits", victim.id())).unwrap();
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert_eq!(result, completed_outcome("done\n"));
    assert!(!limits.contains(&LIMIT_VALUE.to_string()), "{limits}");
}

/// Every way to confine an agent, as far as this machine has it.
async fn check_limits_in_all_isolations(create_setup: fn(&str) -> Setup) {
    for settings in ["", CONFINED_SETTINGS, UNCONFINED_SETTING] {
        expect_unchanged_limits(create_setup(settings).without_bubblewrap()).await;
    }
    if !skip_without_requirement("bubblewrap") {
        expect_unchanged_limits(create_setup(BUBBLEWRAP_SETTING)).await;
    }
}

#[tokio::test]
async fn an_agent_changes_no_limit_of_another_process() {
    if !skip_without_requirement("Landlock 6") {
        check_limits_in_all_isolations(hostile_setup).await;
    }
}

#[tokio::test]
async fn an_agent_of_a_plain_user_changes_no_limit() {
    if !skip_without_requirement("Landlock 6") && !skip_without_requirement("root") {
        check_limits_in_all_isolations(|settings| with_unprivileged_user(hostile_setup(settings)))
            .await;
    }
}
