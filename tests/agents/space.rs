//! A namespace with loopback alone, and what was asked of the world from within.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::install::Folders;

/// Says in the environment where the report goes; whoever has it is inside.
const REPORT: &str = "AGENTS_REPORT";
const FOLDER: &str = "AGENTS_FOLDER";

/// Nobody can be reached here: the range is for examples.
const NOWHERE: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 443);

/// Brings loopback up, gives a temporary folder that nobody else writes to, hides the sockets of the
/// machine's services, and makes loopback the name server. Then runs what follows.
const ENTRANCE: &str = r#"
set -e
ip link set lo up
names=$(readlink -f /etc/resolv.conf || true)
printf 'nameserver 127.0.0.1\noptions timeout:1 attempts:1\n' > "$0"
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t tmpfs -o mode=0755 tmpfs /run
case "$names" in /run/*) mkdir -p "${names%/*}"; : > "$names" ;; esac
if [ -e "$names" ]; then mount --bind "$0" "$names"; fi
exec "$@"
"#;

/// Whether this process is in such a namespace.
pub(crate) fn is_inside() -> bool {
    std::env::var_os(REPORT).is_some()
}

/// Why there can be none here, when there cannot.
pub(crate) fn missing() -> Option<String> {
    let hidden = ["/tmp", "/run"]
        .iter()
        .find(|place| Path::new(env!("CARGO_TARGET_TMPDIR")).starts_with(place));
    if let Some(place) = hidden {
        return Some(format!(
            "the target folder is below {place}, which agents have for themselves"
        ));
    }
    let output = unshare(&scratch("try"), Path::new("true")).output();
    match output {
        Err(error) => Some(format!("`unshare` cannot be run: {error}")),
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let why = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Some(format!("no namespace without a network can be made: {why}"))
        }
    }
}

/// Runs a test of this executable inside; what it reported.
pub(crate) fn enter(test: &str, folders: &Folders) -> String {
    let report = scratch(test).with_extension("report");
    _ = fs::remove_file(&report); // Of an earlier run.
    let this = std::env::current_exe().expect("this executable");
    let path = std::env::var("PATH").unwrap_or_default();
    let status = unshare(&scratch(test), &this)
        .args([test, "--exact", "--nocapture"])
        .env(REPORT, &report)
        .env(FOLDER, &folders.agent)
        .env("PATH", format!("{}:{path}", folders.programs.display()))
        .env_remove("TMPDIR")
        .status();
    let status = status.expect("a namespace");
    assert!(status.success(), "{test} failed inside: {status}");
    fs::read_to_string(report).expect("a report from inside")
}

/// Leaves the report for who waits outside.
pub(crate) fn report(text: &str) {
    let place = std::env::var_os(REPORT).expect("this is inside");
    fs::write(place, text).expect("a report");
}

/// Where the agent was installed.
pub(crate) fn folder() -> String {
    std::env::var(FOLDER).expect("this is inside")
}

/// How many packets the kernel refused since the namespace was made, because they were for somewhere
/// else: with loopback alone no such address has a route.
pub(crate) fn refused() -> u64 {
    let four = fs::read_to_string("/proc/net/snmp").unwrap_or_default();
    let mut lines = four.lines().filter_map(|line| line.strip_prefix("Ip: "));
    let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let at = names.split(' ').position(|name| name == "OutNoRoutes").expect("a counter");
    let four: u64 = values.split(' ').nth(at).and_then(|n| n.parse().ok()).expect("a number");
    let six = fs::read_to_string("/proc/net/snmp6").unwrap_or_default();
    let six = six.lines().find_map(|line| line.strip_prefix("Ip6OutNoRoutes"));
    four + six.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or_default()
}

/// Asserts that there is no way out, and that the kernel counts who tries.
pub(crate) fn is_closed() {
    let before = refused();
    let reached = TcpStream::connect_timeout(&NOWHERE, Duration::from_secs(2));
    assert!(reached.is_err(), "there is a way out of the namespace");
    assert!(refused() > before, "what is refused is not counted");
}

fn unshare(names: &Path, program: &Path) -> Command {
    let mut command = Command::new("unshare");
    if !nix::unistd::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command.args(["--net", "--mount", "sh", "-c", ENTRANCE]).arg(names).arg(program);
    command
}

/// A file that is this test's own.
fn scratch(test: &str) -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    fs::create_dir_all(folder).expect("a folder for what tests make");
    folder.join(format!("agents-{test}.resolv"))
}
