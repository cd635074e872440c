//! Resource limits of other processes: Landlock does not restrict `prlimit`, so a seccomp filter does.

use std::fs;

use super::{BUBBLEWRAP_SETTING, CONFINED, UNCONFINED, setup, with_unprivileged_user};
use crate::harness::Setup;
use crate::harness::client::{completed_with, outcome};
use crate::read_only::skips;

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

/// A program of nothing but machine code: it sets the limit of a process by the gate for 32-bit programs, or
/// by the x32 interface, and ends with the error number.
#[cfg(target_arch = "x86_64")]
fn limiter_program(is_x32: bool, pid: i32) -> Vec<u8> {
    const LOAD_ADDRESS: u32 = 0x40_0000;
    const CODE_OFFSET: u32 = 64 + 56;
    const DATA_OFFSET: u32 = 256;
    let load = |register: u8, value: u32| [&[register][..], &value.to_le_bytes()].concat();
    let pid = pid.unsigned_abs();
    // Registers: 0xb8 eax, 0xbb ebx, 0xb9 ecx, 0xba edx, 0xbe esi, 0xbf edi.
    let call = if is_x32 {
        let arguments = [
            load(0xb8, 0x4000_0000 + 302),
            load(0xbf, pid),
            load(0xbe, LIMIT_RESOURCE),
            load(0xba, LOAD_ADDRESS + DATA_OFFSET),
        ];
        [arguments.concat(), vec![0x45, 0x31, 0xd2, 0x0f, 0x05]].concat()
    } else {
        let arguments = [
            load(0xb8, 340),
            load(0xbb, pid),
            load(0xb9, LIMIT_RESOURCE),
            load(0xba, LOAD_ADDRESS + DATA_OFFSET),
        ];
        [arguments.concat(), vec![0x31, 0xf6, 0xcd, 0x80]].concat()
    };
    // neg eax; mov edi, eax; mov eax, exit; syscall
    let exit_code = [vec![0xf7, 0xd8, 0x89, 0xc7], load(0xb8, 60), vec![0x0f, 0x05]].concat();
    let mut file = b"\x7fELF\x02\x01\x01".to_vec();
    file.resize(16, 0);
    file.extend([2, 0, 62, 0, 1, 0, 0, 0]); // An executable for x86-64.
    for offset in [u64::from(LOAD_ADDRESS + CODE_OFFSET), 64, 0] {
        file.extend(offset.to_le_bytes());
    }
    file.extend([0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 64, 0, 0, 0, 0, 0]);
    file.extend([1, 0, 0, 0, 5, 0, 0, 0]); // One segment, to be loaded and executed.
    for field in [0, u64::from(LOAD_ADDRESS), u64::from(LOAD_ADDRESS), 0x1000, 0x1000, 0x1000] {
        file.extend(u64::to_le_bytes(field));
    }
    file.extend(call);
    file.extend(exit_code);
    file.resize(DATA_OFFSET as usize, 0);
    file.extend([LIMIT_VALUE.to_le_bytes(), LIMIT_VALUE.to_le_bytes()].concat());
    file.resize(0x1000, 0);
    file
}

async fn expect_no_limit(setup: Setup) {
    let setup = setup
        .executable("hostile", LIMITER_SCRIPT)
        .executable("gate-32", "")
        .executable("gate-x32", "");
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
        format!("{} {} {}", service.pid(), service.warden_pid(), victim.id()),
    )
    .unwrap();
    #[cfg(target_arch = "x86_64")]
    for (name, is_x32) in [("gate-32", false), ("gate-x32", true)] {
        fs::write(test_folder.join(name), limiter_program(is_x32, victim.id().cast_signed()))
            .unwrap();
    }
    let result = outcome(&service.send("hostile", "go").await);
    let limits = fs::read_to_string(format!("/proc/{}/limits", victim.id())).unwrap();
    victim.kill().unwrap();
    victim.wait().unwrap();
    assert_eq!(result, completed_with("done\n"));
    assert!(!limits.contains(&LIMIT_VALUE.to_string()), "{limits}");
}

/// Every way to confine an agent, as far as this machine has it.
async fn expect_no_limit_under_every_isolation(create_setup: fn(&str) -> Setup) {
    for settings in ["", CONFINED, UNCONFINED] {
        expect_no_limit(create_setup(settings).without_bubblewrap()).await;
    }
    if !skips("bubblewrap") {
        expect_no_limit(create_setup(BUBBLEWRAP_SETTING)).await;
    }
}

#[tokio::test]
async fn an_agent_changes_no_limit_of_another_process() {
    if !skips("Landlock 6") {
        expect_no_limit_under_every_isolation(setup).await;
    }
}

#[tokio::test]
async fn an_agent_of_a_plain_user_changes_no_limit() {
    if !skips("Landlock 6") && !skips("root") {
        expect_no_limit_under_every_isolation(|settings| with_unprivileged_user(setup(settings)))
            .await;
    }
}
