//! Programs that the process holder holds, and all their processes: their own trees, and the processes that left them.
//!
//! The process holder is the subreaper, so no process escapes it; the label identifies the program of an orphan. An
//! orphan without the label of a held program belongs to no program, and is killed.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use nix::sys::epoll::{Epoll, EpollEvent, EpollFlags};
use nix::sys::signal::Signal;
use nix::unistd::getpid;

use super::FIRST_STREAM_TOKEN;
use super::held_program::HeldProgram;
use crate::process::process_label::label_of;
use crate::process::procfs::{OwnChildren, ancestry, subtree};
use crate::process::signal::{ReapedChild, send_signal};
use crate::protocol::frame::ProgramEnd;

/// Number of rounds until processes that do not die are given up: some seconds.
const MAX_KILL_ROUNDS: u32 = 600;

/// Held programs, by their program number.
pub(super) struct HeldPrograms {
    own_pid: i32,
    programs: BTreeMap<u64, HeldProgram>,
    program_numbers_by_pid: HashMap<i32, u64>,
    /// Children of the process holder: the programs, and the orphans that they left.
    children: OwnChildren,
}

/// Result of killing all processes of a program.
#[derive(Debug, Clone, Copy)]
pub(super) struct KillResult {
    /// Number of killed processes.
    pub(super) killed_count: u64,
    /// Number of processes that do not die.
    pub(super) survivor_count: u64,
}

impl HeldPrograms {
    /// Creates the set without programs.
    pub(super) fn open() -> Self {
        let (programs, program_numbers_by_pid) = (BTreeMap::new(), HashMap::new());
        Self {
            own_pid: getpid().as_raw(),
            programs,
            program_numbers_by_pid,
            children: OwnChildren::open(),
        }
    }

    pub(super) fn get(&self, program_number: u64) -> Option<&HeldProgram> {
        self.programs.get(&program_number)
    }

    pub(super) fn program_mut(&mut self, program_number: u64) -> Option<&mut HeldProgram> {
        self.programs.get_mut(&program_number)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &HeldProgram> {
        self.programs.values()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.programs.is_empty()
    }

    /// Returns the numbers of all programs.
    pub(super) fn program_numbers(&self) -> Vec<u64> {
        self.programs.keys().copied().collect()
    }

    /// Returns the numbers of the programs that are being killed.
    pub(super) fn programs_being_killed(&self) -> Vec<u64> {
        let being_killed =
            self.programs.iter().filter(|(_, program)| program.killed_so_far.is_some());
        being_killed.map(|(program_number, _)| *program_number).collect()
    }

    /// Adds a program that has just started.
    pub(super) fn insert(&mut self, program: HeldProgram) {
        let program_number = program.hold_terms.program_number;
        self.program_numbers_by_pid.insert(program.pid, program_number);
        self.programs.insert(program_number, program);
    }

    /// Removes a program. One that runs is killed.
    pub(super) fn release(&mut self, program_number: u64) {
        if let Some(program) = self.programs.remove(&program_number)
            && program.end.is_none()
        {
            self.program_numbers_by_pid.remove(&program.pid);
            // Without its entry no order could end the program any more.
            self.kill_subtree(program.pid);
        }
    }

    /// Closes the journaled standard input of a program, if it has one.
    pub(super) fn close_stdin(&mut self, program_number: u64) {
        self.programs.get_mut(&program_number).into_iter().for_each(HeldProgram::close_stdin);
    }

    /// Starts or stops moving the output of a program.
    pub(super) fn set_streams_watched(&self, program_number: u64, is_watched: bool, epoll: &Epoll) {
        let Some(program) = self.programs.get(&program_number) else { return };
        for (stream, token) in program.streams.iter().zip(FIRST_STREAM_TOKEN + program_number * 2..)
        {
            // The only possible failure is removing a pipe that is not watched, which is harmless.
            _ = if is_watched && !stream.has_ended {
                epoll.add(&stream.pipe, EpollEvent::new(EpollFlags::EPOLLIN, token))
            } else {
                epoll.delete(&stream.pipe)
            };
        }
    }

    /// Moves available output of a stream, whose number is twice its program number, or one more.
    pub(super) fn pump(&mut self, stream_number: u64, epoll: &Epoll) {
        let Some(program) = self.programs.get_mut(&(stream_number / 2)) else { return };
        let [out, err] = &mut program.streams;
        let stream = if stream_number.is_multiple_of(2) { out } else { err };
        stream.pump(program.hold_terms.max_recorded_bytes);
        if stream.has_ended {
            _ = epoll.delete(&stream.pipe);
        }
    }

    /// Records the end of a child. Returns the program number and the end if the child is a program, and not an orphan
    /// of one.
    pub(super) fn record_end(&mut self, child: &ReapedChild) -> Option<(u64, ProgramEnd)> {
        // Before anything else: the kernel may reuse the number for the next child as soon as this one is reaped.
        let program_number = self.program_numbers_by_pid.remove(&child.pid)?;
        // Descendants that outlive their program are children of this subreaper by now.
        let has_survivors = !self.kill_strays_and_find_orphans(program_number).is_empty();
        let program = self.programs.get_mut(&program_number)?;
        // A wrapper does not wait for the processes that it wraps, so its usage does not contain theirs.
        let (cpu_micros, peak_memory_kib) = if program.has_wrapper_process {
            (0, 0)
        } else {
            (child.cpu_micros, child.peak_memory_kib)
        };
        let status = u64::from(child.status.cast_unsigned());
        let end = ProgramEnd { status, has_survivors, cpu_micros, peak_memory_kib };
        program.end = Some(end);
        program.is_cleanup_done = !has_survivors;
        Some((program_number, end))
    }

    /// Sends SIGTERM to all processes of a program. A wrapper gets no signal: it would exit at once, and everything
    /// with it, before the program could finish its output.
    pub(super) fn terminate(&self, program_number: u64) {
        let wrapper = self
            .programs
            .get(&program_number)
            .filter(|program| program.has_wrapper_process)
            .map(|program| program.pid);
        for pid in self
            .kill_strays_and_find_processes(program_number)
            .into_iter()
            .filter(|pid| Some(*pid) != wrapper)
        {
            self.signal_descendant(pid, Signal::SIGTERM);
        }
    }

    /// Kills the present processes of a program. Returns the result once none is left.
    pub(super) fn run_kill_round(&mut self, program_number: u64) -> Option<KillResult> {
        let processes = self.kill_strays_and_find_processes(program_number);
        let killed =
            processes.iter().filter(|pid| self.signal_descendant(**pid, Signal::SIGKILL)).count();
        let program = self.programs.get_mut(&program_number)?;
        let killed_count = program.killed_so_far.unwrap_or_default() + killed as u64;
        program.kill_rounds += 1;
        // The program itself has to be reaped too, so that its end is reported before this event. A process of another
        // user, or one that waits in the kernel for ever, is given up: it must not delay the rest.
        let is_last_round = processes.is_empty() || program.kill_rounds > MAX_KILL_ROUNDS;
        let is_cleanup_done = is_last_round && program.end.is_some();
        (program.killed_so_far, program.is_cleanup_done) =
            ((!is_cleanup_done).then_some(killed_count), is_cleanup_done);
        is_cleanup_done
            .then_some(KillResult { killed_count, survivor_count: processes.len() as u64 })
    }

    /// Returns every process of a program; orphans of no program are killed on the way. A zombie counts until it is
    /// reaped, so that the killing is finished only after no trace of the program remains.
    fn kill_strays_and_find_processes(&self, program_number: u64) -> BTreeSet<i32> {
        let mut pids = self.kill_strays_and_find_orphans(program_number);
        if let Some(program) =
            self.programs.get(&program_number).filter(|program| program.end.is_none())
        {
            pids.extend(subtree(program.pid));
        }
        pids
    }

    /// Returns the orphans of a program, with all their descendants. Orphans of no program are killed on the way.
    fn kill_strays_and_find_orphans(&self, program_number: u64) -> BTreeSet<i32> {
        let mut processes = BTreeSet::new();
        let orphans = self
            .children
            .pids()
            .into_iter()
            .filter(|pid| !self.program_numbers_by_pid.contains_key(pid));
        for orphan in orphans {
            match self.program_of_orphan(orphan) {
                Some(owner) if owner == program_number => processes.extend(subtree(orphan)),
                Some(_) => {}
                None => self.kill_subtree(orphan),
            }
        }
        processes
    }

    fn program_of_orphan(&self, pid: i32) -> Option<u64> {
        let label = label_of(pid)?.0;
        self.programs
            .iter()
            .find(|(_, program)| program.hold_terms.process_label == label)
            .map(|(program_number, _)| *program_number)
    }

    /// Kills a process and all its descendants.
    fn kill_subtree(&self, root: i32) {
        for pid in subtree(root) {
            self.signal_descendant(pid, Signal::SIGKILL);
        }
    }

    /// Signals a process only if it is a descendant of this one.
    fn signal_descendant(&self, pid: i32, signal: Signal) -> bool {
        pid != self.own_pid && send_signal(pid, signal, || ancestry(pid).contains(&self.own_pid))
    }
}
