//! A read-only agent changes nothing where it works, by whatever way it tries.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::PathBuf;

use algonius_actors::model::host::host_capabilities::CapabilityState;
use algonius_skips::{skip, skip_without};
use algonius_warden::confinement::landlock;
use nix::unistd::Uid;
use serde_json::{Value, json};

use crate::harness::client::{task_id, task_outcome, task_state};
use crate::harness::{ServiceProcess, Setup};

/// Tries every way to change the folder in which it works, and prints how many worked, by name. Then
/// it uses what is its own.
const INTRUDER_SCRIPT: &str = r#"#!/usr/bin/perl
use Fcntl;
$| = 1;
my ($here, $tmp) = ($ENV{PLACE}, $ENV{TMPDIR});
my $write = sub { open(my $f, '>', $_[0]) or return 0; print {$f} 'x'; close $f };
my %ways = (
    write => sub { $write->('kept') },
    append => sub { open(my $f, '>>', 'kept') },
    'read and write' => sub { sysopen(my $f, 'kept', O_RDWR) },
    'empty while reading' => sub { sysopen(my $f, 'kept', O_RDONLY | O_TRUNC) },
    truncate => sub { truncate('kept', 0) },
    make => sub { $write->('new') },
    rename => sub { rename('kept', 'other') },
    'rename out' => sub { rename('kept', "$tmp/kept") },
    'rename in' => sub { $write->("$tmp/mine"); rename("$tmp/mine", 'mine') },
    link => sub { link('kept', 'linked') },
    'link out' => sub { link('kept', "$tmp/linked") && truncate("$tmp/linked", 0) },
    symlink => sub { symlink('kept', 'sym') },
    mkdir => sub { mkdir('folder') },
    rmdir => sub { rmdir('empty') },
    unlink => sub { unlink('kept') },
    fifo => sub { system('mkfifo fifo 2>/dev/null') == 0 },
    'through a link of its own' => sub { symlink("$here/site", "$tmp/way"); $write->("$tmp/way/kept") },
    'through a link to it' => sub { $write->("$here/way/kept") },
    'through the process' => sub { $write->('/proc/self/cwd/kept') },
    'through another process' => sub { $write->('/proc/' . getppid() . "/root$here/site/kept") },
    'through a descriptor' => sub { open(my $d, '<', 'kept'); $write->('/proc/self/fd/' . fileno $d) },
    'by a grandchild' => sub { system('sh -c "sh -c \"echo x > kept\"" 2>/dev/null') == 0 },
    'by another session' => sub { system('setsid -w env -i sh -c "echo x > kept" 2>/dev/null') == 0 },
    'by a mount' => sub { system("(mount --bind $tmp empty && umount empty) 2>/dev/null") == 0 },
    'beside its folder' => sub { $write->("$here/beside") },
    'its home' => sub { $write->("$ENV{HOME}/state") },
);
my @worked = grep { $ways{$_}->() } sort keys %ways;
print 'changed: ', join(', ', @worked), "\n";
open(my $read, '<', 'kept') or print "cannot read: $!\n";
print 'read: ', <$read>, "\n";
for my $own ("$tmp/own", '/dev/null', '/dev/stdout') { $write->($own) or print "$own: $!\n" }
mkdir("$tmp/folder") && rename("$tmp/own", "$tmp/folder/own") or print "temporary: $!\n";
"#;

/// A folder to work in, with links to it, and an intruder in it.
pub(crate) fn setup_with_intruder(settings: &str) -> Setup {
    let agent = format!(
        "[agents.reader]\ncommand = 'HERE/intruder'\nworking_dir = 'HERE/site'\n\
         env.PLACE = 'HERE'\n{settings}\n"
    );
    let setup = Setup::new(&agent).with_executable("intruder", INTRUDER_SCRIPT);
    fs::create_dir_all(setup.test_folder().join("site/empty")).unwrap();
    fs::write(setup.test_folder().join("site/kept"), "as it was").unwrap();
    symlink(setup.test_folder().join("site"), setup.test_folder().join("way")).unwrap();
    setup
}

/// Everything in the folder in which the agent works, with its text.
fn workspace_files(setup: &Setup) -> Vec<(String, String)> {
    let entries = fs::read_dir(setup.test_folder().join("site")).unwrap().flatten();
    // A pipe would be waited for.
    let read_if_file = |path: PathBuf| {
        if path.is_file() { fs::read_to_string(path).unwrap_or_default() } else { String::new() }
    };
    let mut files: Vec<_> = entries
        .map(|entry| (entry.file_name().to_string_lossy().into_owned(), read_if_file(entry.path())))
        .collect();
    files.sort();
    files
}

fn initial_files() -> Vec<(String, String)> {
    [("empty", ""), ("kept", "as it was")].map(|(a, b)| (a.to_owned(), b.to_owned())).to_vec()
}

/// Returns whether this machine lacks what a test needs; records the skip then.
pub(crate) fn skip_without_requirement(requirement: &str) -> bool {
    let is_skipped = match requirement {
        "root" => !Uid::effective().is_root(),
        "bubblewrap" => {
            algonius_supervisor::host_capabilities().unwrap().bubblewrap != CapabilityState::Usable
        }
        requirement => {
            let needed_version: u32 = requirement.trim_start_matches("Landlock ").parse().unwrap();
            landlock::abi_version().is_none_or(|version| version < needed_version)
        }
    };
    match requirement {
        _ if !is_skipped => {}
        "bubblewrap" => skip_without("bwrap"),
        requirement => skip(&format!("needs {requirement}")),
    }
    is_skipped
}

pub(crate) async fn start_and_expect_no_changes(setup: Setup) -> ServiceProcess {
    let service = setup.start().await;
    let task = service.send("reader", "go").await;
    let answer = "changed: \nread: as it was\nx";
    assert_eq!(task_outcome(&task), ("completed".to_owned(), answer.to_owned()), "{task}");
    assert_eq!(workspace_files(&service.setup), initial_files());
    assert_eq!(service.fetch_agent_status("reader").await["enforcement"], "enforced");
    service
}

/// The same of a user without rights, who owns what is in the folder.
pub(crate) fn as_unprivileged_owner(setup: Setup) -> Setup {
    let setup = setup.with_unprivileged_user();
    let owner = Some(Uid::from_raw(65_532).as_raw());
    for entry in ["site/kept", "site/empty", "intruder"] {
        std::os::unix::fs::chown(setup.test_folder().join(entry), owner, owner).unwrap();
    }
    setup
}

#[tokio::test]
async fn a_read_only_agent_cannot_change_its_workspace_in_any_way() {
    if !skip_without_requirement("Landlock 3") {
        start_and_expect_no_changes(setup_with_intruder("")).await;
    }
}

#[tokio::test]
async fn an_unprivileged_service_confines_read_only_agents_too() {
    if !skip_without_requirement("Landlock 3") && !skip_without_requirement("root") {
        start_and_expect_no_changes(as_unprivileged_owner(setup_with_intruder(""))).await;
    }
}

/// The intruder without a sandbox, to see that each way is one.
#[tokio::test]
async fn without_enforcement_a_read_only_agent_can_write() {
    let service =
        setup_with_intruder("sandbox.enforce = false\nenv.TMPDIR = 'HERE/run'").start().await;
    let task = service.send("reader", "go").await;
    let (task_state, answer) = task_outcome(&task);
    assert_eq!(task_state, "completed");
    assert_ne!(workspace_files(&service.setup), initial_files());
    for operation in
        ["append", "by a grandchild", "empty while reading", "mkdir", "rename", "truncate"]
    {
        assert!(answer.contains(operation), "{operation} did not work: {answer}");
    }
    expect_not_enforced(&service, "off").await;
}

/// What is said where nothing holds a read-only agent.
async fn expect_not_enforced(service: &ServiceProcess, enforcement: &str) {
    assert_eq!(service.fetch_agent_status("reader").await["enforcement"], enforcement);
    let card = service.get("/agents/reader/.well-known/agent-card.json").await.json();
    let description = card["description"].as_str().unwrap();
    assert!(description.ends_with("but nothing enforces this here."), "{description}");
    let agents = service.get("/api/v1/agents").await.json();
    assert_eq!(agents["agents"][0]["enforcement"], enforcement);
    let status_text = service.run_command(&["status"], "").await.stdout;
    assert!(status_text.contains(&format!("is not refused: {enforcement}")), "{status_text}");
    assert!(service.stderr_text().contains("sandbox not enforced for agent"));
}

#[tokio::test]
async fn writable_paths_are_writable_and_the_rest_of_home_is_not() {
    if skip_without_requirement("Landlock 3") {
        return;
    }
    let script = "echo x > $HOME/.state/file && echo x > $HOME/.file && ! echo x > $HOME/other";
    let agent = format!(
        "[agents.reader]\ncommand = 'sh'\nargs = ['-c', '{script}']\nworking_dir = 'HERE/state'\n\
         sandbox.writable = ['~/.state', '~/.file']\n"
    );
    let setup = Setup::new(&agent);
    fs::create_dir(setup.test_folder().join("home/.state")).unwrap();
    fs::write(setup.test_folder().join("home/.file"), "").unwrap();
    let service = setup.start().await;
    assert_eq!(task_state(&service.send("reader", "go").await), "completed");
    assert_eq!(service.setup.read_file("home/.file"), "x\n");
    assert!(!service.setup.test_folder().join("home/other").exists());
}

#[tokio::test]
async fn a_failure_after_a_denied_access_is_explained() {
    if skip_without_requirement("Landlock 3") {
        return;
    }
    let service = ServiceProcess::start("[agents.reader]\ncommand = 'mkdir'\nargs = ['x']\n").await;
    let task = service.send("reader", "go").await;
    assert_eq!(task_outcome(&task), ("failed".to_owned(), "agent-exit".to_owned()));
    let record = service.fetch_execution(&task_id(&task)).await;
    let event_data = record["events"].as_array().unwrap().iter().map(|event| &event["data"]);
    let warnings: Vec<_> = event_data.filter(|data| data["kind"] == "warning").collect();
    assert!(warnings[0]["message"].as_str().unwrap().contains("sandbox.writable"), "{warnings:?}");
}

#[tokio::test]
async fn a_read_write_agent_can_be_confined_to_its_folder() {
    if skip_without_requirement("Landlock 3") {
        return;
    }
    let agent = "[agents.writer]\ncommand = 'HERE/writer'\naccess = 'read-write'\n\
                 working_dir = 'HERE/home'\nsandbox = { writable = [], network = false }\n";
    let script = r#"#!/usr/bin/perl
use IO::Socket::INET;
open(my $in, '>', 'inside') or print "inside: $!\n";
open(my $out, '>', '../outside') and print "outside\n";
IO::Socket::INET->new(PeerAddr => "127.0.0.1:$ENV{PORT}") and print "connected\n";
IO::Socket::INET->new(Listen => 1, LocalAddr => '127.0.0.1') and print "listens\n";
print "$!\n";
"#;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let agent = format!("{agent}env.PORT = '{port}'\n");
    let service = Setup::new(&agent).with_executable("writer", script).start().await;
    let task = service.send("writer", "go").await;
    assert_eq!(task_outcome(&task).1, "Permission denied\n");
    assert!(service.setup.test_folder().join("home/inside").exists());
    assert_eq!(service.fetch_agent_status("writer").await["enforcement"], "enforced");
}

/// Runs what follows on a kernel that knows no Landlock.
pub(crate) const WITHOUT_LANDLOCK_SCRIPT: &str = r#"
my ($prctl, $code) = `uname -m` =~ /x86_64/ ? (157, 444) : (167, 444);
my @steps = ([0x20, 0, 0, 0], [0x15, 0, 1, $code], [6, 0, 0, 0x00050026], [6, 0, 0, 0x7fff0000]);
my $filter = join '', map { pack 'SCCL', @$_ } @steps;
my $program = pack 'S x6 P', scalar(@steps), $filter;
syscall($prctl, 38, 1, 0, 0, 0) == 0 && syscall($prctl, 22, 2, $program) == 0 or die $!;
exec @ARGV;
"#;

#[tokio::test]
async fn a_kernel_without_enforcement_is_reported() {
    let setup = setup_with_intruder("env.TMPDIR = 'HERE/run'").with_launcher(&[
        "perl",
        "-e",
        WITHOUT_LANDLOCK_SCRIPT,
    ]);
    let service = setup.without_bubblewrap().start().await;
    assert_eq!(task_state(&service.send("reader", "go").await), "completed");
    expect_not_enforced(&service, "unavailable").await;
}

#[tokio::test]
async fn a_sandbox_that_cannot_be_enforced_stops_the_start() {
    for settings in ["sandbox.required = true", "sandbox.network = false"] {
        let setup = setup_with_intruder(settings)
            .with_launcher(&["perl", "-e", WITHOUT_LANDLOCK_SCRIPT])
            .without_bubblewrap();
        let config = setup.write_config().display().to_string();
        let output =
            setup.run_command(&["serve", "--config", &config, "--listen", "127.0.0.1:0"], "").await;
        assert_eq!(output.exit_code, Some(1), "{output:?}");
        let expected_error = "this system cannot hold the agent `reader` to its sandbox \
                    (no Landlock, bubblewrap unusable)";
        assert!(output.stderr.contains(expected_error), "{output:?}");
    }
}

#[tokio::test]
async fn sandbox_errors_are_reported() {
    let setup = setup_with_intruder(
        "sandbox = { enforce = false, network = false, writable = ['HERE/nowhere'] }",
    );
    let config = setup.write_config().display().to_string();
    let output = setup.run_command(&["check", &config, "--json"], "").await;
    assert_eq!(output.exit_code, Some(4), "{output:?}");
    let report: Value = serde_json::from_str(&output.stdout).unwrap_or(json!(output.stderr));
    for expected_message in
        ["leaves nothing to require or to refuse", "there is no such file or folder"]
    {
        assert!(report.to_string().contains(expected_message), "{report}");
    }
}
