//! Ends the processes that the service inherits when its process holder is lost.
//!
//! The kernel kills a process holder when memory runs out, or an operator does. The service is the next subreaper, so
//! the programs and their descendants become children of the service. The driver of each program ends the processes
//! with its label. A process without a label would live on, confined but unknown, and with ancestors that show no
//! agent.

use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::{Pid, getsid};
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use uuid::Uuid;

use super::process_label::label_of;
use super::procfs::{list_pids, read_process_stat, read_status};
use super::signal::{reap, send_signal};

/// Pause between two checks.
const CHECK_PAUSE: Duration = Duration::from_millis(5);

/// Number of checks for the end of a process holder whose connection is lost. It is killed after that.
const MAX_EXIT_CHECKS: u32 = 200;

/// Number of rounds until processes that do not die are given up.
const MAX_KILL_ROUNDS: u32 = 400;

/// Waits until a process holder has ended, and ends the processes that it left.
pub(crate) async fn clean_up_lost_holder(holder_pid: Option<u32>, data_dir_id: Uuid) {
    let holder_pid = holder_pid.and_then(|pid| i32::try_from(pid).ok());
    if let Some(holder_pid) = holder_pid {
        // The connection closes before the kernel reparents the children to this process.
        for _ in 0..MAX_EXIT_CHECKS {
            if !is_alive(holder_pid) {
                break;
            }
            sleep(CHECK_PAUSE).await;
        }
        send_signal(holder_pid, Signal::SIGKILL, || is_child(holder_pid));
        while is_child(holder_pid) && is_alive(holder_pid) {
            sleep(CHECK_PAUSE).await;
        }
    }
    kill_inherited(data_dir_id).await;
}

/// Kills the processes that a lost process holder left to this process, repeatedly until none is left.
async fn kill_inherited(data_dir_id: Uuid) {
    let mut killed = 0_usize;
    for _ in 0..MAX_KILL_ROUNDS {
        // Tokio treats `/proc` as files, and a process under memory pressure answers slowly.
        let round = spawn_blocking(move || run_kill_round(data_dir_id)).await;
        match round {
            Ok(Some(round_killed)) => killed += round_killed,
            Ok(None) | Err(_) => break,
        }
        sleep(CHECK_PAUSE).await;
    }
    if killed > 0 {
        tracing::error!(killed, "terminated processes of a lost process holder");
    }
}

/// Runs one round: returns the number of killed processes, or `None` if none is left. Children of a killed process
/// become children of this process too, for the next round.
fn run_kill_round(data_dir_id: Uuid) -> Option<usize> {
    let inherited: Vec<_> =
        list_pids().into_iter().filter(|pid| is_inherited(*pid, data_dir_id)).collect();
    let kill =
        |pid: &&i32| is_alive(**pid) && send_signal(**pid, Signal::SIGKILL, || is_child(**pid));
    let killed = inherited.iter().filter(kill).count();
    for pid in &inherited {
        _ = reap(Some(Pid::from_raw(*pid))); // The process may need until the next round to die.
    }
    (!inherited.is_empty()).then_some(killed)
}

/// Returns true if a process holder started this child. Such a process has left the session of this process and cannot
/// return to it, and a confined one has a seccomp filter that it cannot remove. Programs that share this process with
/// the service, and their children, have neither.
fn is_inherited(pid: i32, data_dir_id: Uuid) -> bool {
    is_child(pid)
        && getsid(Some(Pid::from_raw(pid))).ok() != getsid(None).ok()
        && (seccomp_filter_count(pid) > seccomp_filter_count(Pid::this().as_raw())
            || label_of(pid).is_some_and(|label| label.belongs_to(data_dir_id)))
}

fn is_child(pid: i32) -> bool {
    read_process_stat(pid).is_some_and(|stat| stat.parent_pid == Pid::this().as_raw())
}

fn is_alive(pid: i32) -> bool {
    read_process_stat(pid).is_some_and(|stat| stat.is_alive)
}

/// Returns the number of seccomp filters of a process; before Linux 5.9, 1 if it has any.
fn seccomp_filter_count(pid: i32) -> u32 {
    let status = read_status(pid);
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name))?;
        line.trim().parse().ok()
    };
    field("Seccomp_filters:").or_else(|| field("Seccomp:")).unwrap_or_default()
}
