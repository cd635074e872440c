//! Namespace with loopback alone, and the network attempts from within.

use std::fs;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use crate::install::InstallFolders;

/// Variable with the path of the report, which is set only inside the namespace.
const REPORT_VARIABLE: &str = "AGENTS_REPORT";
const INSTALL_FOLDER_VARIABLE: &str = "AGENTS_FOLDER";

/// Unreachable address: the range is reserved for documentation.
const UNREACHABLE_ADDRESS: SocketAddr =
    SocketAddr::new(std::net::IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1)), 443);

/// Script that enables loopback, mounts a private temporary folder, hides the sockets of the machine's services, and
/// makes loopback the name server. Then it runs its arguments.
const NAMESPACE_SCRIPT: &str = r#"
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

/// Returns true if this process is in such a namespace.
pub(crate) fn is_inside() -> bool {
    std::env::var_os(REPORT_VARIABLE).is_some()
}

/// Returns the reason why there can be no namespace here, if there is one.
pub(crate) fn missing_requirement() -> Option<String> {
    let hidden_folder = ["/tmp", "/run"]
        .iter()
        .find(|folder| Path::new(env!("CARGO_TARGET_TMPDIR")).starts_with(folder));
    if let Some(folder) = hidden_folder {
        return Some(format!(
            "the target folder is below {folder}, which agents have for themselves"
        ));
    }
    let output = unshare_command(&resolver_file("try"), Path::new("true")).output();
    match output {
        Err(error) => Some(format!("`unshare` cannot be run: {error}")),
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let stderr = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Some(format!("no namespace without a network can be made: {stderr}"))
        }
    }
}

/// Runs a test of this executable inside; returns its report.
pub(crate) fn run_test_inside(test: &str, folders: &InstallFolders) -> String {
    let report = resolver_file(test).with_extension("report");
    _ = fs::remove_file(&report); // The file may be left over from an earlier run.
    let program = std::env::current_exe().expect("this executable");
    let path = std::env::var("PATH").unwrap_or_default();
    let status = unshare_command(&resolver_file(test), &program)
        .args([test, "--exact", "--nocapture"])
        .env(REPORT_VARIABLE, &report)
        .env(INSTALL_FOLDER_VARIABLE, &folders.agent_folder)
        .env("PATH", format!("{}:{path}", folders.programs_folder.display()))
        .env_remove("TMPDIR")
        .status();
    let status = status.expect("a namespace");
    assert!(status.success(), "{test} failed inside: {status}");
    fs::read_to_string(report).expect("a report from inside")
}

/// Writes the report for the process outside.
pub(crate) fn write_report(text: &str) {
    let file = std::env::var_os(REPORT_VARIABLE).expect("this is inside");
    fs::write(file, text).expect("a report");
}

/// Returns the folder in which the agent was installed.
pub(crate) fn agent_install_folder() -> String {
    std::env::var(INSTALL_FOLDER_VARIABLE).expect("this is inside")
}

/// Returns the number of packets that the kernel has refused since the creation of the namespace: with loopback alone
/// no external address has a route.
pub(crate) fn unroutable_packet_count() -> u64 {
    let ipv4_counters = fs::read_to_string("/proc/net/snmp").unwrap_or_default();
    let mut lines = ipv4_counters.lines().filter_map(|line| line.strip_prefix("Ip: "));
    let (names, values) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    let index = names.split(' ').position(|name| name == "OutNoRoutes").expect("a counter");
    let ipv4: u64 = values.split(' ').nth(index).and_then(|n| n.parse().ok()).expect("a number");
    let ipv6_counters = fs::read_to_string("/proc/net/snmp6").unwrap_or_default();
    let ipv6 = ipv6_counters.lines().find_map(|line| line.strip_prefix("Ip6OutNoRoutes"));
    ipv4 + ipv6.and_then(|number| number.trim().parse::<u64>().ok()).unwrap_or_default()
}

/// Asserts that there is no route out, and that the kernel counts the attempts.
pub(crate) fn assert_no_route() {
    let initial_count = unroutable_packet_count();
    let connection = TcpStream::connect_timeout(&UNREACHABLE_ADDRESS, Duration::from_secs(2));
    assert!(connection.is_err(), "there is a way out of the namespace");
    assert!(unroutable_packet_count() > initial_count, "what is refused is not counted");
}

fn unshare_command(resolver_file: &Path, program: &Path) -> Command {
    let mut command = Command::new("unshare");
    if !nix::unistd::geteuid().is_root() {
        command.args(["--user", "--map-root-user"]);
    }
    command
        .args(["--net", "--mount", "sh", "-c", NAMESPACE_SCRIPT])
        .arg(resolver_file)
        .arg(program);
    command
}

/// Returns the path of a file of this test.
fn resolver_file(test: &str) -> std::path::PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    fs::create_dir_all(folder).expect("a folder for what tests make");
    folder.join(format!("agents-{test}.resolv"))
}
