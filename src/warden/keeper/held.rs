//! A program that is held: what is known of it, and its two streams.

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, SpliceFFlags, fcntl, splice};
use nix::sys::stat::fstat;
use nix::unistd::read;

use super::super::frame::{End, Terms};
use super::super::stream::PIECE;

/// Bytes that are read of a stream in one turn, so that no flood keeps the others waiting.
const TURN: usize = 16 * PIECE;

/// One output stream: our end of the pipe, and the memory file into which it goes.
#[derive(Debug)]
pub(super) struct Stream {
    pub(super) pipe: OwnedFd,
    pub(super) memory: OwnedFd,
    /// Whether the pipe has ended.
    pub(super) is_dry: bool,
}

impl Stream {
    /// Takes the ends, at numbers where they are in nobody's way.
    pub(super) fn hold(pipe: &OwnedFd, memory: &OwnedFd, above: i32) -> io::Result<Self> {
        let (pipe, memory) = (move_up(pipe, above)?, move_up(memory, above)?);
        Ok(Self { pipe, memory, is_dry: false })
    }

    /// Moves what is there into the memory file; beyond the cap, away. For the time in which
    /// nobody reads.
    pub(super) fn pump(&mut self, cap: u64) {
        let mut left = TURN;
        while left > 0 && !self.is_dry {
            match self.step(cap) {
                Ok(0) => self.is_dry = true,
                Ok(moved) => left = left.saturating_sub(moved),
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return,
                Err(_broken) => self.is_dry = true,
            }
        }
    }

    fn step(&self, cap: u64) -> Result<usize, Errno> {
        let held = fstat(&self.memory)?.st_size.unsigned_abs();
        match usize::try_from(cap.saturating_sub(held)).unwrap_or(PIECE).min(PIECE) {
            0 => read(&self.pipe, &mut [0; PIECE]),
            room => {
                let flags = SpliceFFlags::SPLICE_F_NONBLOCK;
                splice(&self.pipe, None, &self.memory, None, room, flags)
            }
        }
    }
}

/// What is known of a program.
#[derive(Debug)]
pub(super) struct Held {
    pub(super) terms: Terms,
    pub(super) pid: i32,
    /// Whether its first process only waits for the others, which end with it.
    pub(super) is_wrapped: bool,
    pub(super) end: Option<End>,
    pub(super) streams: [Stream; 2],
    /// While it is being killed, and how many were.
    pub(super) clearing: Option<u64>,
    /// How often it was looked for what does not die.
    pub(super) rounds: u32,
    /// Whether nothing of it lives.
    pub(super) is_cleared: bool,
}

impl Held {
    /// One that has just begun.
    pub(super) fn new(terms: Terms, pid: i32, streams: [Stream; 2]) -> Self {
        let (end, clearing, rounds) = (None, None, 0);
        Self { terms, pid, is_wrapped: false, end, streams, clearing, rounds, is_cleared: false }
    }

    /// The descriptors by which another supervisor reads on.
    pub(super) fn fds(&self) -> [i32; 4] {
        let [out, err] = &self.streams;
        [&out.pipe, &err.pipe, &out.memory, &err.memory].map(AsRawFd::as_raw_fd)
    }
}

#[expect(unsafe_code, reason = "the system gives a number for what is owned")]
fn move_up(fd: &OwnedFd, above: i32) -> io::Result<OwnedFd> {
    let moved = fcntl(fd, FcntlArg::F_DUPFD_CLOEXEC(above))?;
    // SAFETY: the kernel has just opened it for this process, and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(moved) })
}
