//! Finds processes by their label, or by the variables in their environment, and kills them: the
//! last net, for what no warden holds any more.

use std::collections::BTreeSet;
use std::fs;
use std::time::Duration;

use nix::sys::signal::Signal;
use nix::unistd::Pid;
use uuid::Uuid;

use super::INSTANCE;
use super::label::{Label, label_of};
use super::proc::{folder, is_ours, own_line, pids, stat};
use super::signal::{reap, send};

/// Rounds until a sweep gives up against something that starts processes faster than they die.
const ROUNDS: u32 = 200;

/// Pause between two rounds, in which the killed ones vanish.
const PAUSE: Duration = Duration::from_millis(5);

/// Whose processes.
#[derive(Debug, Clone)]
enum Mark {
    /// Those of one attempt.
    Attempt(Label),
    /// Those of one data directory, but for what carries one of these.
    Instance(Uuid, BTreeSet<Label>),
}

impl Mark {
    fn is_on(&self, pid: i32) -> bool {
        let label = label_of(pid);
        match self {
            Self::Attempt(wanted) => label == Some(*wanted),
            Self::Instance(_, spared) if label.is_some_and(|label| spared.contains(&label)) => {
                false
            }
            Self::Instance(instance, _) => {
                label.is_some_and(|label| label.is_of(*instance)) || is_marked(pid, *instance)
            }
        }
    }
}

/// Kills everything that carries a label; how many that were.
pub(super) async fn of_label(label: Label) -> usize {
    sweep(Mark::Attempt(label)).await
}

/// Kills everything that a data directory ever started and that is not held; how many that were.
pub(super) async fn of_instance(instance: Uuid, held: BTreeSet<Label>) -> usize {
    sweep(Mark::Instance(instance, held)).await
}

/// Returns when a round found nothing alive. Spares this process and its ancestors.
async fn sweep(mark: Mark) -> usize {
    let mut killed = BTreeSet::new();
    for _ in 0..ROUNDS {
        let mark = mark.clone();
        // `/proc` is files to the runtime, and a process under memory pressure answers slowly.
        let round = tokio::task::spawn_blocking(move || kill_all(&mark)).await;
        match round {
            Ok(found) if found.is_empty() => break,
            Ok(found) => killed.extend(found),
            Err(_) => break,
        }
        tokio::time::sleep(PAUSE).await;
    }
    killed.len()
}

/// One round: kills what carries the mark and is alive. Each with its start, since a number may
/// be given again.
fn kill_all(mark: &Mark) -> Vec<(i32, u64)> {
    let spared = own_line();
    let others = pids().into_iter().filter(|pid| !spared.contains(pid) && is_ours(*pid));
    others.filter_map(|pid| kill_one(pid, mark)).collect()
}

fn kill_one(pid: i32, mark: &Mark) -> Option<(i32, u64)> {
    let found = stat(pid).filter(|_| mark.is_on(pid))?;
    if found.is_alive {
        return send(pid, Signal::SIGKILL, || mark.is_on(pid)).then_some((pid, found.started));
    }
    // Where its warden is gone too, this process has become its parent.
    if found.parent == Pid::this().as_raw() {
        _ = reap(Some(Pid::from_raw(pid)));
    }
    None
}

/// Whether its environment names the data directory. Some programs shed their labels' bearer: those
/// that run as another user in between.
fn is_marked(pid: i32, instance: Uuid) -> bool {
    let wanted = format!("{INSTANCE}={instance}");
    let environment = fs::read(folder(pid).join("environ")).unwrap_or_default();
    environment.split(|byte| *byte == 0).any(|have| have == wanted.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::{Mark, kill_one};
    use crate::warden::label::Label;
    use algonius_actors::model::execution::Stamp;
    use algonius_actors::model::id::ExecutionId;
    use std::collections::BTreeSet;
    use std::process::{Child, Command};
    use uuid::Uuid;

    fn sleeper(variable: &str) -> (Child, i32) {
        let child = Command::new("sleep").arg("60").env("ALGONIUS_INSTANCE_ID", variable).spawn();
        let child = child.unwrap();
        let pid = child.id().try_into().unwrap();
        (child, pid)
    }

    #[test]
    fn a_stranger_is_left_alone_and_a_marked_one_is_not() {
        let mine = Uuid::new_v4();
        let (mut stranger, pid) = sleeper(&Uuid::new_v4().to_string());
        let label = Label::of(mine, ExecutionId::fresh(), Stamp::FIRST);
        assert_eq!(kill_one(pid, &Mark::Attempt(label)), None);
        assert_eq!(kill_one(pid, &Mark::Instance(mine, BTreeSet::new())), None);
        assert_eq!(stranger.try_wait().unwrap(), None);
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
}
