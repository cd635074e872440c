//! Facts about processes from `/proc`.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{Read, Seek};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nix::unistd::{Pid, SysconfVar, geteuid, getpid, sysconf};

/// Process name of process holders.
pub(crate) const HOLDER_PROCESS_NAME: &str = "algonius-warden";

/// Greatest number of ancestors of a process that are inspected.
const MAX_ANCESTORS: usize = 1024;

/// Required fields of `/proc/PID/stat`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    /// True if the process is not a zombie.
    pub(crate) is_alive: bool,
    /// Process id of the parent.
    pub(crate) parent_pid: i32,
    /// Processor time of the process and its waited-for children, in ticks.
    pub(crate) cpu_ticks: u64,
    /// Start time in ticks since the boot: together with the id it identifies a process.
    pub(crate) start_ticks: u64,
}

/// Returns the folder of a process in `/proc`.
pub(crate) fn proc_folder(pid: i32) -> PathBuf {
    Path::new("/proc").join(pid.to_string())
}

/// Returns a text of the kernel, with U+FFFD for bytes that are not UTF-8. Users choose some of its names: processes
/// their own, and mounts their folders.
pub(crate) fn read_proc_text(path: impl AsRef<Path>) -> Option<String> {
    fs::read(path).ok().map(|bytes| String::from_utf8_lossy(&bytes).into_owned())
}

/// Returns the text of `/proc/PID/status`; empty if the process has ended.
pub(crate) fn read_status(pid: i32) -> String {
    read_proc_text(proc_folder(pid).join("status")).unwrap_or_default()
}

/// Returns the ids of all processes.
pub(crate) fn list_pids() -> Vec<i32> {
    let Ok(entries) = fs::read_dir("/proc") else { return Vec::new() };
    entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok()).collect()
}

/// Returns true if a process runs as this process's user.
pub(crate) fn runs_as_same_user(pid: i32) -> bool {
    fs::metadata(proc_folder(pid)).is_ok_and(|metadata| metadata.uid() == geteuid().as_raw())
}

/// Returns the facts of a process.
pub(crate) fn read_process_stat(pid: i32) -> Option<ProcessStat> {
    parse_stat(&fs::read(proc_folder(pid).join("stat")).ok()?)
}

/// Returns the age of a process, which does not depend on the wall clock.
pub(crate) fn process_age(pid: i32) -> Option<Duration> {
    let ticks = sysconf(SysconfVar::CLK_TCK).ok()??.unsigned_abs().max(1);
    let started_at = Duration::from_millis(read_process_stat(pid)?.start_ticks * 1000 / ticks);
    let uptime = fs::read_to_string("/proc/uptime").ok()?;
    let uptime_secs = uptime.split(' ').next()?.parse().ok()?;
    Some(Duration::try_from_secs_f64(uptime_secs).ok()?.saturating_sub(started_at))
}

/// Parses the line after the program's name, which may contain blanks and parentheses.
fn parse_stat(line: &[u8]) -> Option<ProcessStat> {
    let end = line.iter().rposition(|byte| *byte == b')')?;
    let rest = std::ffi::OsStr::from_bytes(line.get(end + 1..)?).to_str()?;
    let mut fields = rest.split_ascii_whitespace();
    let state = fields.next()?;
    let parent = fields.next()?.parse().ok()?;
    // The state is field 3 of the line, the parent field 4, the times are fields 14 to 17, and the start is field 22.
    let mut fields = fields.skip(14 - 5);
    let mut number = || fields.next()?.parse::<u64>().ok();
    let cpu_ticks = number()? + number()? + number()? + number()?;
    let start_ticks = fields.nth(22 - 18)?.parse().ok()?;
    Some(ProcessStat {
        is_alive: !matches!(state, "Z" | "X" | "x"),
        parent_pid: parent,
        cpu_ticks,
        start_ticks,
    })
}

/// Returns the children of all threads of a process.
pub(crate) fn child_pids(pid: i32) -> Vec<i32> {
    let Ok(tasks) = fs::read_dir(proc_folder(pid).join("task")) else { return Vec::new() };
    let lists =
        tasks.flatten().filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    lists.flat_map(|list| parse_pids(&list)).collect()
}

/// Children of this process, which has one thread. Their list stays open, because it is read whenever a program ends.
#[derive(Debug)]
pub(crate) struct OwnChildren(Option<File>);

impl OwnChildren {
    /// Opens the list; a kernel without such lists yields no children.
    pub(crate) fn open() -> Self {
        let own_pid = getpid();
        Self(File::open(format!("/proc/{own_pid}/task/{own_pid}/children")).ok())
    }

    /// Returns the present children.
    pub(crate) fn pids(&self) -> Vec<i32> {
        let Some(mut file) = self.0.as_ref() else { return Vec::new() };
        let mut list = String::new();
        let read = file.rewind().and_then(|()| file.read_to_string(&mut list));
        read.map(|_| parse_pids(&list)).unwrap_or_default()
    }
}

fn parse_pids(list: &str) -> Vec<i32> {
    list.split_ascii_whitespace().filter_map(|number| number.parse().ok()).collect()
}

/// Returns a process and all its descendants.
pub(crate) fn subtree(root: i32) -> BTreeSet<i32> {
    let (mut pids, mut pending) = (BTreeSet::new(), vec![root]);
    while let Some(pid) = pending.pop() {
        if pids.insert(pid) {
            pending.extend(child_pids(pid));
        }
    }
    pids
}

/// Returns a process and its ancestors, which the clean-up of leftovers never kills.
pub(crate) fn ancestry(pid: i32) -> BTreeSet<i32> {
    let mut ancestors = BTreeSet::from([1]);
    let mut next = Some(pid);
    while let Some(pid) = next {
        // Parents form a chain without cycles, but each id is read at another moment.
        if !ancestors.insert(pid) {
            break;
        }
        next = read_process_stat(pid).map(|stat| stat.parent_pid);
    }
    ancestors
}

/// Returns true if a process that uses a socket of the service certainly belongs to no agent: none of its ancestors is
/// a process holder, except those that are also ancestors of this process. A process counts as an agent's if one of its
/// ancestors cannot be read.
pub(crate) fn has_no_agent_ancestor(pid: i32) -> bool {
    let mut own_ancestors = own_ancestry();
    own_ancestors.remove(&Pid::this().as_raw());
    let Some(mut ancestor) = read_process_stat(pid).map(|stat| stat.parent_pid) else {
        return false;
    };
    // A longer chain is inconsistent: process ids were reused meanwhile.
    for _ in 0..MAX_ANCESTORS {
        if matches!(ancestor, 0 | 1) {
            return true;
        }
        if is_holder(ancestor) && !own_ancestors.contains(&ancestor) {
            return false;
        }
        let Some(stat) = read_process_stat(ancestor) else { return false };
        ancestor = stat.parent_pid;
    }
    false
}

/// Returns true if a process is a process holder, by its name, which its children cannot change.
fn is_holder(pid: i32) -> bool {
    fs::read_to_string(proc_folder(pid).join("comm"))
        .is_ok_and(|name| name.trim_end() == HOLDER_PROCESS_NAME)
}

/// Returns this process and its ancestors.
pub(crate) fn own_ancestry() -> BTreeSet<i32> {
    ancestry(Pid::this().as_raw())
}

#[cfg(test)]
mod tests {
    use super::{
        ProcessStat, child_pids, has_no_agent_ancestor, own_ancestry, parse_stat,
        read_process_stat, subtree,
    };

    #[test]
    fn a_process_name_with_parentheses_shifts_no_field() {
        let line = b"41 (a) R 9 (b) Z 7 41 41 0 -1 4 0 0 0 0 5 6 7 8 20 0 1 0 9876 1 2 3";
        let expected =
            ProcessStat { is_alive: false, parent_pid: 7, cpu_ticks: 26, start_ticks: 9876 };
        assert_eq!(parse_stat(line), Some(expected));
        assert_eq!(parse_stat(b"41 (cut"), None);
    }

    #[test]
    fn this_process_and_its_parent_are_not_killed() {
        let ancestors = own_ancestry();
        assert!(ancestors.contains(&nix::unistd::getpid().as_raw()));
        assert!(ancestors.contains(&nix::unistd::getppid().as_raw()));
    }

    #[test]
    fn a_child_is_found_below_its_parent() {
        let mut child = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let (own_pid, pid) = (nix::unistd::getpid().as_raw(), i32::try_from(child.id()).unwrap());
        assert!(child_pids(own_pid).contains(&pid) && subtree(own_pid).contains(&pid));
        assert_eq!(read_process_stat(pid).unwrap().parent_pid, own_pid);
        assert!(
            has_no_agent_ancestor(pid) && has_no_agent_ancestor(nix::unistd::getppid().as_raw())
        );
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!has_no_agent_ancestor(pid), "a process whose ancestors are unknown is not let in");
    }
}
