//! The system calls of the real service and its process holder, as strace sees them.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use algonius_gauge::load::{StopCondition, run_load};
use algonius_gauge::service::Service;
use tempfile::TempDir;
use tokio::time::{Instant, sleep};

use super::is_available_or_skip;

/// Agents whose programs start none themselves; one is asked for its version before.
const CONFIG: &str = "[server]\nlisten = \"127.0.0.1:0\"\n\
    [agents.cat]\ncommand = \"cat\"\n\
    [agents.versioned]\ncommand = \"cat\"\nprogram_version.args = [\"--version\"]\n\
    [agents.writing]\ncommand = \"cat\"\naccess = \"read-write\"\nworking_dir = \"/tmp\"\n";

/// Calls that make a process or a thread, and those that take connections and set them up.
const TRACED_CALLS: &str = "trace=clone,clone3,fork,vfork,accept,accept4,setsockopt,exit_group";

/// How long the trace may take to end.
const TRACE_TIMEOUT: Duration = Duration::from_secs(20);

/// What was traced.
struct SyscallTrace {
    lines: Vec<String>,
    /// The service and its process holder.
    service_pids: [u32; 2],
    request_count: usize,
}

/// Runs a service under strace, has it work, and gives what was seen; nothing without strace.
async fn trace_service() -> Option<SyscallTrace> {
    if !is_available_or_skip("strace") {
        return None;
    }
    let folder = tempfile::tempdir().unwrap();
    let (script, trace) = write_traced_script(&folder);
    let service = Service::start_with_config(script.to_str().unwrap(), CONFIG).await;
    let service_pids = service.pids();
    let agents = ["cat", "versioned", "writing"];
    for agent in agents {
        run_load(
            service.address,
            &service.json_rpc_load_request(agent, 64),
            1,
            StopCondition::Completed(3),
        )
        .await;
    }
    drop(service);
    let lines = read_trace(&trace, service_pids[0]).await;
    Some(SyscallTrace { lines, service_pids, request_count: 3 * agents.len() })
}

/// A program that is the service under strace: the tracer stands aside, so that the process that is
/// started is the service itself.
fn write_traced_script(folder: &TempDir) -> (PathBuf, PathBuf) {
    let (script, trace) = (folder.path().join("traced"), folder.path().join("trace"));
    let script_text = format!(
        "#!/bin/sh\nexec strace -DD -f -qq -e {TRACED_CALLS} -o '{}' '{}' \"$@\"\n",
        trace.display(),
        env!("CARGO_BIN_EXE_algonius")
    );
    fs::write(&script, script_text).unwrap();
    fs::set_permissions(&script, fs::Permissions::from_mode(0o755)).unwrap();
    (script, trace)
}

/// The lines of a trace, once this process has ended in it.
async fn read_trace(trace: &Path, pid: u32) -> Vec<String> {
    let started_at = Instant::now();
    loop {
        let text = fs::read_to_string(trace).unwrap_or_default();
        let lines: Vec<_> = text.lines().map(str::to_owned).collect();
        let is_of_process =
            |line: &&String| line.split_whitespace().next() == Some(&pid.to_string());
        if lines.iter().filter(is_of_process).any(|line| line.contains("exit_group")) {
            return lines;
        }
        assert!(started_at.elapsed() < TRACE_TIMEOUT, "the trace has no end:\n{text}");
        sleep(Duration::from_millis(20)).await; // The tracer writes at its own pace.
    }
}

/// The calls by which the service and its process holder made processes; a wrapper may make its own as it likes.
fn process_creations(lines: &[String], service_pids: [u32; 2]) -> Vec<&str> {
    let (mut service_thread_ids, mut creations) =
        (service_pids.map(|id| id.to_string()).to_vec(), Vec::new());
    let mut unfinished_clones = BTreeMap::new();
    for line in lines {
        let (id, call) = line.split_once(' ').unwrap();
        let is_call = ["clone(", "clone3(", "fork(", "vfork("].iter().any(|it| call.contains(it));
        let is_resumed = call.contains("clone3 resumed>") || call.contains("clone resumed>");
        if !(is_call || is_resumed) || !service_thread_ids.iter().any(|known| known == id) {
            continue;
        }
        let is_thread = match is_call {
            true => call.contains("CLONE_THREAD"),
            false => unfinished_clones.remove(id).unwrap_or(false),
        };
        unfinished_clones.insert(id, is_thread);
        if is_thread && let Some((_, thread)) = call.rsplit_once(" = ") {
            service_thread_ids.push(thread.trim().to_owned());
        }
        if is_call && !is_thread {
            creations.push(line.as_str());
        }
    }
    creations
}

fn is_vfork_like(creation: &str) -> bool {
    let shares_memory = creation.contains("CLONE_VM") && creation.contains("CLONE_VFORK");
    shares_memory || creation.contains(" vfork(")
}

#[tokio::test(flavor = "multi_thread")]
async fn no_process_is_created_by_fork() {
    let Some(SyscallTrace { lines, service_pids, request_count }) = trace_service().await else {
        return;
    };
    let creations = process_creations(&lines, service_pids);
    assert!(creations.len() > request_count, "{creations:#?}");
    let fork_creations: Vec<_> =
        creations.iter().filter(|creation| !is_vfork_like(creation)).collect();
    assert!(fork_creations.is_empty(), "made by fork: {fork_creations:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_accepted_connection_sets_tcp_nodelay() {
    let Some(SyscallTrace { lines, .. }) = trace_service().await else { return };
    let mut accepted_count = 0;
    for (index, line) in lines.iter().enumerate() {
        let Some(socket) = accepted_socket(line) else { continue };
        accepted_count += 1;
        let expected_call = format!("setsockopt({socket}, SOL_TCP, TCP_NODELAY, [1]");
        let later_lines =
            lines.iter().skip(index + 1).take_while(|line| accepted_socket(line) != Some(socket));
        assert!(
            later_lines.into_iter().any(|line| line.contains(&expected_call)),
            "{line}: TCP_NODELAY is not set"
        );
    }
    assert!(accepted_count >= 3, "{lines:#?}");
}

/// The socket of a connection that a line takes. Those of the process holder are no TCP.
fn accepted_socket(line: &str) -> Option<&str> {
    let is_accept = line.contains("accept4(") || line.contains("accept4 resumed>");
    let is_tcp = line.contains("AF_INET");
    let socket = line.rsplit_once(" = ").map(|(_, socket)| socket.trim());
    socket.filter(|socket| is_accept && is_tcp && socket.parse::<u32>().is_ok())
}
