//! Finds processes by their label, or by the variables in their environment, and kills them: the last resort for
//! processes that no process holder holds any more.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use uuid::Uuid;

use super::process_label::{ProcessLabel, label_of};
use super::procfs::{list_pids, own_ancestry, proc_folder, read_process_stat, runs_as_same_user};
use super::signal::{reap, send_signal};
use crate::INSTANCE_VARIABLE;

/// Maximum number of rounds of a kill, because a program may fork faster than its processes die.
const MAX_KILL_ROUNDS: u32 = 200;

/// Pause between two rounds, in which the killed processes disappear.
const KILL_ROUND_PAUSE: Duration = Duration::from_millis(5);

/// Owner of the processes.
#[derive(Debug, Clone)]
enum ProcessOwner {
    /// Processes of one attempt.
    Attempt(ProcessLabel),
    /// Processes of one data directory, except those with one of these labels.
    Instance(Uuid, BTreeSet<ProcessLabel>),
}

impl ProcessOwner {
    fn owns(&self, pid: i32) -> bool {
        let label = label_of(pid);
        match self {
            Self::Attempt(attempt_label) => label == Some(*attempt_label),
            Self::Instance(_, spared) if label.is_some_and(|label| spared.contains(&label)) => {
                false
            }
            Self::Instance(data_dir_id, _) => {
                label.is_some_and(|label| label.belongs_to(*data_dir_id))
                    || has_instance_variable(pid, *data_dir_id)
            }
        }
    }
}

/// Kills every process that carries a label; returns their number.
pub(crate) async fn kill_labelled(label: ProcessLabel) -> usize {
    kill_until_none(ProcessOwner::Attempt(label)).await
}

/// Kills every process that a data directory ever started and that is not held; returns their number.
pub(crate) async fn kill_unheld(data_dir_id: Uuid, held: BTreeSet<ProcessLabel>) -> usize {
    kill_until_none(ProcessOwner::Instance(data_dir_id, held)).await
}

/// Returns when a round found no living process. Spares this process and its ancestors.
async fn kill_until_none(owner: ProcessOwner) -> usize {
    let mut killed = BTreeSet::new();
    for _ in 0..MAX_KILL_ROUNDS {
        let owner = owner.clone();
        // Tokio treats `/proc` as files, and a process under memory pressure answers slowly.
        let round = tokio::task::spawn_blocking(move || run_kill_round(&owner)).await;
        match round {
            Ok(found) if found.is_empty() => break,
            Ok(found) => killed.extend(found),
            Err(_) => break,
        }
        tokio::time::sleep(KILL_ROUND_PAUSE).await;
    }
    killed.len()
}

/// Runs one round: kills the living processes of the owner. Each is returned with its start time, because a process id
/// may be reused.
fn run_kill_round(owner: &ProcessOwner) -> Vec<(i32, u64)> {
    let spared = own_ancestry();
    let candidates =
        list_pids().into_iter().filter(|pid| !spared.contains(pid) && runs_as_same_user(*pid));
    candidates.filter_map(|pid| kill_if_owned(pid, owner)).collect()
}

fn kill_if_owned(pid: i32, owner: &ProcessOwner) -> Option<(i32, u64)> {
    let process_stat = read_process_stat(pid).filter(|_| owner.owns(pid))?;
    if process_stat.is_alive {
        return send_signal(pid, Signal::SIGKILL, || owner.owns(pid))
            .then_some((pid, process_stat.start_ticks));
    }
    // If the process holder is gone too, this process has become its parent.
    if process_stat.parent_pid == Pid::this().as_raw() {
        _ = reap(Some(Pid::from_raw(pid)));
    }
    None
}

/// Returns true if the environment names the data directory. A process that runs as another user in between may have
/// lost its label.
fn has_instance_variable(pid: i32, data_dir_id: Uuid) -> bool {
    let expected = format!("{INSTANCE_VARIABLE}={data_dir_id}");
    let environment = fs::read(proc_folder(pid).join("environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|entry| entry == expected.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::{ProcessOwner, kill_if_owned};
    use crate::process::process_label::ProcessLabel;
    use algonius_actors::model::execution::AttemptId;
    use algonius_actors::model::id::ExecutionId;
    use std::collections::BTreeSet;
    use std::process::{Child, Command};
    use uuid::Uuid;

    fn spawn_sleep(variable: &str) -> (Child, i32) {
        let child = Command::new("sleep").arg("60").env("ALGONIUS_INSTANCE_ID", variable).spawn();
        let child = child.unwrap();
        let pid = child.id().try_into().unwrap();
        (child, pid)
    }

    #[test]
    fn only_processes_with_the_label_are_killed() {
        let data_dir_id = Uuid::new_v4();
        let (mut child, pid) = spawn_sleep(&Uuid::new_v4().to_string());
        let label =
            ProcessLabel::for_attempt(data_dir_id, ExecutionId::generate(), AttemptId::FIRST);
        assert_eq!(kill_if_owned(pid, &ProcessOwner::Attempt(label)), None);
        assert_eq!(kill_if_owned(pid, &ProcessOwner::Instance(data_dir_id, BTreeSet::new())), None);
        assert_eq!(child.try_wait().unwrap(), None);
        child.kill().unwrap();
        child.wait().unwrap();
    }
}
