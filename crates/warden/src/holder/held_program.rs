//! Held program: its state, its two output streams, and its input if that is journaled.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SpliceFFlags, fcntl, splice};
use nix::sys::stat::fstat;
use nix::unistd::read;

use crate::output::readerless_pipe::create_readerless_pipe;
use crate::output::stream::MAX_MOVE_BYTES;
use crate::protocol::frame::{HolderEvent, MIN_STDIN_JOURNAL_VERSION, ProgramEnd};
use crate::protocol::launch_frame::HoldTerms;

/// Bytes that are read of a stream per turn, so that one flood does not delay the others.
const MAX_PUMP_BYTES: usize = 16 * MAX_MOVE_BYTES;

/// Output stream: the supervisor-side end of the pipe, and the memory file that stores its bytes.
#[derive(Debug)]
pub(super) struct HeldStream {
    pub(super) pipe: OwnedFd,
    pub(super) memory_file: OwnedFd,
    /// True if the pipe has ended.
    pub(super) has_ended: bool,
}

impl HeldStream {
    /// Duplicates the descriptors to high numbers, outside of the range that a child copies.
    pub(super) fn duplicate_fds(
        pipe: &OwnedFd,
        memory_file: &OwnedFd,
        min_fd: i32,
    ) -> io::Result<Self> {
        let (pipe, memory_file) =
            (duplicate_fd_above(pipe, min_fd)?, duplicate_fd_above(memory_file, min_fd)?);
        Ok(Self { pipe, memory_file, has_ended: false })
    }

    /// Moves available bytes into the memory file, and drops those beyond the limit. Used while no supervisor reads.
    pub(super) fn pump(&mut self, max_recorded_bytes: u64) {
        // The read must return to the event loop: one thread serves the signals and all other programs too.
        let mut remaining_bytes = MAX_PUMP_BYTES;
        while remaining_bytes > 0 && !self.has_ended {
            match self.move_chunk(max_recorded_bytes) {
                Ok(0) => self.has_ended = true,
                Ok(moved) => remaining_bytes = remaining_bytes.saturating_sub(moved),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return,
                // The rest of the output is lost, but a lasting error would wake the event loop for ever.
                Err(_broken) => self.has_ended = true,
            }
        }
    }

    fn move_chunk(&self, max_recorded_bytes: u64) -> Result<usize, Errno> {
        let stored_bytes = fstat(&self.memory_file)?.st_size.unsigned_abs();
        match usize::try_from(max_recorded_bytes.saturating_sub(stored_bytes))
            .unwrap_or(MAX_MOVE_BYTES)
            .min(MAX_MOVE_BYTES)
        {
            // Beyond the limit bytes are read and dropped, so that the program never blocks at a full pipe.
            0 => read(&self.pipe, &mut [0; MAX_MOVE_BYTES]),
            // `splice` moves pages between pipe and file without a copy through this process.
            capacity => {
                let flags = SpliceFFlags::SPLICE_F_NONBLOCK;
                splice(&self.pipe, None, &self.memory_file, None, capacity, flags)
            }
        }
    }
}

/// Journaled standard input: the write end of the pipe, and the journal. While they are held, the program sees no end
/// of its input, unless it was closed: then the write end is that of a pipe without a reader.
#[derive(Debug)]
struct HeldStdin {
    pipe: OwnedFd,
    journal: OwnedFd,
}

/// Descriptors that outlive the supervisor.
#[derive(Debug)]
pub(super) struct HeldFds {
    streams: [HeldStream; 2],
    held_stdin: Option<HeldStdin>,
}

impl HeldFds {
    /// Duplicates the received descriptors to high numbers.
    pub(super) fn duplicate_fds(
        [out, err, out_memory, err_memory]: &[OwnedFd; 4],
        held_stdin: Option<&[OwnedFd; 2]>,
        min_fd: i32,
    ) -> io::Result<Self> {
        let hold_stream = |pipe, memory_file| HeldStream::duplicate_fds(pipe, memory_file, min_fd);
        let streams = [hold_stream(out, out_memory)?, hold_stream(err, err_memory)?];
        let hold_stdin = |[pipe, journal]: &[OwnedFd; 2]| {
            io::Result::Ok(HeldStdin {
                pipe: duplicate_fd_above(pipe, min_fd)?,
                journal: duplicate_fd_above(journal, min_fd)?,
            })
        };
        Ok(Self { streams, held_stdin: held_stdin.map(hold_stdin).transpose()? })
    }
}

/// State of a held program.
#[derive(Debug)]
pub(super) struct HeldProgram {
    pub(super) hold_terms: HoldTerms,
    pub(super) pid: i32,
    /// True if its first process only waits for the others, which end with it.
    pub(super) has_wrapper_process: bool,
    pub(super) end: Option<ProgramEnd>,
    pub(super) streams: [HeldStream; 2],
    /// Journaled standard input.
    held_stdin: Option<HeldStdin>,
    /// Number of killed processes while the program is being killed.
    pub(super) killed_so_far: Option<u64>,
    /// Number of rounds of killing.
    pub(super) kill_rounds: u32,
    /// True if no process of the program is alive.
    pub(super) is_cleanup_done: bool,
}

impl HeldProgram {
    /// Returns the state of a program that has just started.
    pub(super) fn new(
        hold_terms: HoldTerms,
        pid: i32,
        HeldFds { streams, held_stdin }: HeldFds,
    ) -> Self {
        let (has_wrapper_process, is_cleanup_done) = (false, false);
        let (end, killed_so_far, kill_rounds) = (None, None, 0);
        Self {
            hold_terms,
            pid,
            has_wrapper_process,
            end,
            streams,
            held_stdin,
            killed_so_far,
            kill_rounds,
            is_cleanup_done,
        }
    }

    /// Returns the descriptors with which another supervisor continues reading, and writing if the input is journaled.
    pub(super) fn reattach_fds(&self) -> Vec<i32> {
        let [out, err] = &self.streams;
        let output = [&out.pipe, &err.pipe, &out.memory_file, &err.memory_file];
        let input =
            self.held_stdin.iter().flat_map(|held_stdin| [&held_stdin.pipe, &held_stdin.journal]);
        output.into_iter().chain(input).map(AsRawFd::as_raw_fd).collect()
    }

    /// Returns the entry of the program in the list for a supervisor of this frame version.
    pub(super) fn prepare_list_entry(&mut self, version: u64) -> HolderEvent {
        if version < MIN_STDIN_JOURNAL_VERSION {
            // Such a supervisor writes no input, and the program would wait for its end for ever.
            self.held_stdin = None;
        }
        let (hold_terms, pid) = (self.hold_terms.clone(), self.pid.unsigned_abs().into());
        HolderEvent::ProgramListed {
            hold_terms,
            pid,
            end: self.end,
            has_stdin_journal: self.held_stdin.is_some(),
        }
    }

    /// Closes a journaled input, so that the program sees its end once the supervisor has dropped its own write end.
    /// The journal stays for the next supervisor, which cannot understand the output without the messages in it.
    pub(super) fn close_stdin(&mut self) {
        let Some(HeldStdin { pipe, journal }) = self.held_stdin.take() else { return };
        // The number of the pipe is outside of the range that a child copies.
        let replacement = create_readerless_pipe()
            .and_then(|unread| duplicate_fd_above(&unread, pipe.as_raw_fd()));
        self.held_stdin = replacement.ok().map(|pipe| HeldStdin { pipe, journal });
    }
}

/// Duplicates a descriptor to a number from this one on.
#[expect(unsafe_code, reason = "the system gives a number for what is owned")]
fn duplicate_fd_above(fd: &OwnedFd, min_fd: i32) -> io::Result<OwnedFd> {
    let duplicate = fcntl(fd, FcntlArg::F_DUPFD_CLOEXEC(min_fd))?;
    // SAFETY: the kernel has just opened it for this process, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(duplicate) })
}
