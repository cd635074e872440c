//! Finds processes by the variables in their environment, and kills them.
//!
//! This reaches what has left the group: daemons and new sessions. It does not reach a program
//! that was started with an empty environment.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, geteuid};

use super::Mark;

/// Rounds until a sweep gives up against something that starts processes faster than they die.
const ROUNDS: u32 = 200;

/// Pause between two rounds, in which the killed ones vanish.
const PAUSE: Duration = Duration::from_millis(5);

/// Kills everything that carries the mark; returns when a round found nothing alive.
pub(super) async fn sweep(mark: Mark) -> usize {
    let mut killed = BTreeSet::new();
    for _ in 0..ROUNDS {
        // `/proc` is files to the runtime, and a process under memory pressure answers slowly.
        let round = tokio::task::spawn_blocking(move || kill_all(mark)).await;
        match round {
            Ok(found) if found.is_empty() => break,
            Ok(found) => killed.extend(found),
            Err(_) => break,
        }
        tokio::time::sleep(PAUSE).await;
    }
    killed.len()
}

/// A process, known by its number and by when it started: the number alone may be given again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Process {
    pid: i32,
    started: u64,
}

/// One round: kills what carries the mark and is alive.
fn kill_all(mark: Mark) -> Vec<Process> {
    let wanted: Vec<Vec<u8>> =
        mark.variables().iter().map(|(name, value)| format!("{name}={value}").into()).collect();
    let spared = own_line();
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    let pids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|pid| !spared.contains(pid)).filter_map(|pid| kill_one(pid, &wanted)).collect()
}

/// Kills a process if it is ours, alive and carries every wanted variable.
fn kill_one(pid: i32, wanted: &[Vec<u8>]) -> Option<Process> {
    let place = folder(pid);
    if fs::metadata(&place).ok()?.uid() != geteuid().as_raw() {
        return None;
    }
    let process = Process { pid, started: stat(&place).filter(|stat| stat.is_alive)?.started };
    let environment = fs::read(place.join("environ")).ok()?;
    if !carries(&environment, wanted) || stat(&place)?.started != process.started {
        return None;
    }
    kill(Pid::from_raw(pid), Signal::SIGKILL).ok()?;
    Some(process)
}

fn carries(environment: &[u8], wanted: &[Vec<u8>]) -> bool {
    wanted.iter().all(|entry| environment.split(|byte| *byte == 0).any(|have| have == entry))
}

/// This process and its ancestors, which nobody sweeps.
fn own_line() -> BTreeSet<i32> {
    let mut line = BTreeSet::from([1]);
    let mut next = Some(Pid::this().as_raw());
    while let Some(pid) = next {
        // Parents are a chain without circles, but each number is read at another moment.
        if !line.insert(pid) {
            break;
        }
        next = stat(&folder(pid)).map(|stat| stat.parent);
    }
    line
}

fn folder(pid: i32) -> PathBuf {
    Path::new("/proc").join(pid.to_string())
}

/// What is needed of `/proc/PID/stat`.
#[derive(Debug, PartialEq, Eq)]
struct Stat {
    is_alive: bool,
    parent: i32,
    started: u64,
}

fn stat(place: &Path) -> Option<Stat> {
    parse(&fs::read(place.join("stat")).ok()?)
}

/// Reads the line from behind the program's name, which may hold blanks and parentheses.
fn parse(line: &[u8]) -> Option<Stat> {
    let end = line.iter().rposition(|byte| *byte == b')')?;
    let rest = std::ffi::OsStr::from_bytes(line.get(end + 1..)?).to_str()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    // The start time is field 22 of the line; the state is field 3, the parent field 4.
    let started = fields.nth(22 - 5)?.parse().ok()?;
    Some(Stat { is_alive: !matches!(state, "Z" | "X" | "x"), parent, started })
}

#[cfg(test)]
mod tests {
    use super::{Stat, carries, kill_one, own_line, parse};

    #[test]
    fn a_name_with_blanks_and_parentheses_does_not_shift_the_fields() {
        let line = b"41 (a) R 9 (b) Z 7 41 41 0 -1 4 0 0 0 0 0 0 0 0 20 0 1 0 9876 1 2 3";
        assert_eq!(parse(line), Some(Stat { is_alive: false, parent: 7, started: 9876 }));
        assert_eq!(parse(b"41 (cut"), None);
    }

    #[test]
    fn a_variable_counts_only_as_a_whole() {
        let environment = b"A=1\0ALGONIUS_ATTEMPT=12\0B=ALGONIUS_TURN=1\0";
        let wanted = |entry: &str| [entry.as_bytes().to_vec()];
        assert!(carries(environment, &wanted("ALGONIUS_ATTEMPT=12")));
        assert!(!carries(environment, &wanted("ALGONIUS_ATTEMPT=1")));
        assert!(!carries(environment, &wanted("ALGONIUS_TURN=1")));
    }

    #[test]
    fn this_process_and_its_parent_are_spared() {
        let line = own_line();
        assert!(line.contains(&nix::unistd::getpid().as_raw()));
        assert!(line.contains(&nix::unistd::getppid().as_raw()));
    }

    #[test]
    fn a_process_without_the_variable_is_left_alone() {
        let mut stranger = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let pid = i32::try_from(stranger.id()).unwrap();
        assert_eq!(kill_one(pid, &[b"ALGONIUS_EXECUTION_ID=none".to_vec()]), None);
        assert_eq!(stranger.try_wait().unwrap(), None);
        stranger.kill().unwrap();
        stranger.wait().unwrap();
    }
}
