//! The descriptors of a program that is about to be started.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::{pipe2, write};

use super::Stdin;
use super::stream::{Ends, PIECE};

/// What standard output holds before anybody takes it, in bytes: as much as everybody may ask for.
const ROOM: i32 = 1 << 20;

/// The program's three streams, and our ends of the two that it writes.
pub(super) struct Streams {
    pub(super) stdin: OwnedFd,
    pub(super) stdout: OwnedFd,
    pub(super) stderr: OwnedFd,
    pub(super) ours: [Ends; 2],
    /// Our end of standard input, where that stays open. It is in no other process.
    pub(super) feed: Option<OwnedFd>,
}

/// Makes the streams; what is read on standard input is whole before anybody can read it, so that
/// no program acts on half of it, unless it is spoken to while it runs.
///
/// # Errors
/// When the process may not open more, or memory runs out.
pub(super) fn streams(input: &Stdin) -> io::Result<Streams> {
    let ((stdout, out), (stderr, err)) = (output()?, output()?);
    widen(&out.pipe);
    let (stdin, feed) = match input {
        Stdin::Whole(input) => (stdin(input)?, None),
        Stdin::Open => {
            let (its, ours) = pipe2(OFlag::O_CLOEXEC)?;
            (its, Some(ours))
        }
    };
    Ok(Streams { stdin, stdout, stderr, ours: [out, err], feed })
}

fn output() -> io::Result<(OwnedFd, Ends)> {
    let (ours, its) = pipe2(OFlag::O_CLOEXEC)?;
    // Of our end only: programs do not expect to be told that there is no room.
    fcntl(&ours, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok((its, Ends { pipe: Arc::new(ours), memory: Arc::new(memory(MFdFlags::empty())?) }))
}

/// Gives a pipe room for a long answer, because some programs end without waiting until the last of it is
/// taken. Of standard output only: what a user's pipes may hold together is bounded (64 MiB by default),
/// and beyond that each of the user's pipes is made with two pages.
fn widen(pipe: &OwnedFd) {
    _ = fcntl(pipe, FcntlArg::F_SETPIPE_SZ(ROOM)); // It is as it was where that is too much.
}

fn stdin(input: &[u8]) -> io::Result<OwnedFd> {
    if input.is_empty() {
        return Ok(File::open("/dev/null")?.into());
    }
    match if input.len() <= PIECE { through_a_pipe(input)? } else { None } {
        Some(pipe) => Ok(pipe),
        None => sealed(input),
    }
}

/// A pipe that holds all of it; `None` when it has too little room, as it may where a user has
/// many pipes.
fn through_a_pipe(input: &[u8]) -> io::Result<Option<OwnedFd>> {
    let (its, ours) = pipe2(OFlag::O_CLOEXEC)?;
    fcntl(&ours, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    match write(&ours, input) {
        Ok(written) => Ok((written == input.len()).then_some(its)),
        Err(Errno::EAGAIN) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// A file in memory that nobody can change any more.
fn sealed(bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(memory(MFdFlags::MFD_ALLOW_SEALING)?);
    file.write_all(bytes)?;
    file.rewind()?;
    fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::all()))?;
    Ok(file.into())
}

/// Bytes for the warden that are too many for a frame.
///
/// # Errors
/// As [`streams`].
pub(super) fn letter(bytes: &[u8]) -> io::Result<OwnedFd> {
    sealed(bytes)
}

fn memory(flags: MFdFlags) -> io::Result<OwnedFd> {
    Ok(memfd_create("algonius", MFdFlags::MFD_CLOEXEC | flags)?)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};

    use nix::fcntl::{FcntlArg, fcntl};

    use super::super::Stdin;
    use super::{ROOM, stdin, streams};

    /// Where a user may have no more in pipes, it has what pipes have.
    #[test]
    fn an_answer_has_room_before_anybody_reads() {
        let [out, err] = streams(&Stdin::Whole(Vec::new())).unwrap().ours;
        let room = |pipe| fcntl(pipe, FcntlArg::F_GETPIPE_SZ).unwrap();
        assert_eq!(room(&out.pipe), ROOM);
        assert!(room(&err.pipe) <= 64 << 10);
    }

    #[test]
    fn input_of_any_length_is_read_whole_and_ends() {
        for length in [0, 1, 65_536, 65_537, 3_000_000] {
            let input = vec![7; length];
            let mut read = Vec::new();
            File::from(stdin(&input).unwrap()).read_to_end(&mut read).unwrap();
            assert_eq!(read.len(), length);
        }
    }

    #[test]
    fn nobody_changes_an_input_that_is_a_file() {
        let mut file = File::from(stdin(&[7; 100_000]).unwrap());
        assert!(file.write_all(b"x").is_err());
        assert!(file.set_len(0).is_err());
    }
}
