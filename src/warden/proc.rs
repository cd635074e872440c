//! What `/proc` tells of processes.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::{Pid, SysconfVar, geteuid, getpid, sysconf};

/// What is needed of `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Stat {
    /// Whether it is more than an entry that waits to be reaped.
    pub(super) is_alive: bool,
    /// Its parent.
    pub(super) parent: i32,
    /// Processor time, its own and of what it waited for, in ticks.
    pub(super) ticks: u64,
    /// When it started, in ticks since the boot: with the number it names a process.
    pub(super) started: u64,
}

/// Where a process is told of.
pub(super) fn folder(pid: i32) -> PathBuf {
    Path::new("/proc").join(pid.to_string())
}

/// Every number under which there is a process.
pub(super) fn pids() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Whether a process runs as this one's user.
pub(super) fn is_ours(pid: i32) -> bool {
    fs::metadata(folder(pid)).is_ok_and(|facts| facts.uid() == geteuid().as_raw())
}

/// The facts of a process.
pub(super) fn stat(pid: i32) -> Option<Stat> {
    parse(&fs::read(folder(pid).join("stat")).ok()?)
}

/// How long a process has lived, which no change of the wall clock touches.
pub(super) fn age(pid: i32) -> Option<Duration> {
    let ticks = sysconf(SysconfVar::CLK_TCK).ok()??.unsigned_abs().max(1);
    let born = Duration::from_millis(stat(pid)?.started * 1000 / ticks);
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let now = uptime.split(' ').next()?.parse().ok()?;
    Some(Duration::try_from_secs_f64(now).ok()?.saturating_sub(born))
}

/// Reads the line from behind the program's name, which may hold blanks and parentheses.
fn parse(line: &[u8]) -> Option<Stat> {
    let end = line.iter().rposition(|byte| *byte == b')')?;
    let rest = std::ffi::OsStr::from_bytes(line.get(end + 1..)?).to_str()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    // The state is field 3 of the line, the parent field 4, the times are fields 14 to 17, and the
    // start is field 22.
    let mut fields = fields.skip(14 - 5);
    let mut number = || fields.next()?.parse::<u64>().ok();
    let ticks = number()? + number()? + number()? + number()?;
    let started = fields.nth(22 - 18)?.parse().ok()?;
    Some(Stat { is_alive: !matches!(state, "Z" | "X" | "x"), parent, ticks, started })
}

/// The children of a process, of all its threads.
pub(super) fn children(pid: i32) -> Vec<i32> {
    let Ok(tasks) = fs::read_dir(folder(pid).join("task")) else { return Vec::new() };
    let lists =
        tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| numbers(&list)).collect()
}

/// The children of this process, which has one thread. Their list stays open, because it is looked at
/// whenever a program ends.
#[derive(Debug)]
pub(super) struct OwnChildren(Option<File>);

impl OwnChildren {
    /// Opens their list; a kernel that keeps none tells of nobody.
    pub(super) fn open() -> Self {
        let me = getpid();
        Self(File::open(format!("/proc/{me}/task/{me}/children")).ok())
    }

    /// Those that there are now.
    pub(super) fn all(&self) -> Vec<i32> {
        let Some(mut file) = self.0.as_ref() else { return Vec::new() };
        let mut list = String::new();
        let read = file.rewind().and_then(|()| file.read_to_string(&mut list));
        read.map(|_| numbers(&list)).unwrap_or_default()
    }
}

fn numbers(list: &str) -> Vec<i32> {
    list.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// A process and all below it.
pub(super) fn subtree(root: i32) -> BTreeSet<i32> {
    let (mut found, mut next) = (BTreeSet::new(), vec![root]);
    while let Some(pid) = next.pop() {
        if found.insert(pid) {
            next.extend(children(pid));
        }
    }
    found
}

/// A process and its ancestors, which nobody sweeps.
pub(super) fn line_of(pid: i32) -> BTreeSet<i32> {
    let mut line = BTreeSet::from([1]);
    let mut next = Some(pid);
    while let Some(pid) = next {
        // Parents are a chain without circles, but each number is read at another moment.
        if !line.insert(pid) {
            break;
        }
        next = stat(pid).map(|stat| stat.parent);
    }
    line
}

/// Whether a process is surely no descendant of another: its whole line could be read.
pub(super) fn is_apart(pid: i32, from: i32) -> bool {
    let mut next = pid;
    // A line longer than this is no line, but numbers that were given again meanwhile.
    for _ in 0..1024 {
        match next {
            next if next == from => return false,
            0 | 1 => return true,
            _ => match stat(next) {
                Some(stat) => next = stat.parent,
                None => return false,
            },
        }
    }
    false
}

/// This process and its ancestors.
pub(super) fn own_line() -> BTreeSet<i32> {
    line_of(Pid::this().as_raw())
}

#[cfg(test)]
mod tests {
    use super::{Stat, children, is_apart, own_line, parse, stat, subtree};

    #[test]
    fn a_name_with_blanks_and_parentheses_does_not_shift_the_fields() {
        let line = b"41 (a) R 9 (b) Z 7 41 41 0 -1 4 0 0 0 0 5 6 7 8 20 0 1 0 9876 1 2 3";
        let told = Stat { is_alive: false, parent: 7, ticks: 26, started: 9876 };
        assert_eq!(parse(line), Some(told));
        assert_eq!(parse(b"41 (cut"), None);
    }

    #[test]
    fn this_process_and_its_parent_are_spared() {
        let line = own_line();
        assert!(line.contains(&nix::unistd::getpid().as_raw()));
        assert!(line.contains(&nix::unistd::getppid().as_raw()));
    }

    #[test]
    fn a_child_is_found_below_its_parent() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (me, pid) = (nix::unistd::getpid().as_raw(), i32::try_from(child.id()).unwrap());
        assert!(children(me).contains(&pid) && subtree(me).contains(&pid));
        assert_eq!(stat(pid).unwrap().parent, me);
        assert!(!is_apart(pid, me) && is_apart(me, pid));
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_apart(pid, me), "whose line is unknown is not let in");
    }
}
