//! Descriptors of a program that is about to start.

use std::fs::File;
use std::io::{self, Seek, Write};
use std::os::fd::OwnedFd;
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{FcntlArg, OFlag, SealFlag, fcntl};
use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::unistd::{pipe2, write};

use super::stdin_journal::StdinFds;
use super::stream::{MAX_MOVE_BYTES, StreamFds};
use crate::StdinSource;

/// Capacity of the standard output pipe in bytes: the most that an unprivileged process may request.
const STDOUT_PIPE_BYTES: i32 = 1 << 20;

/// Three streams of the program, and the supervisor's ends of its two outputs.
pub(crate) struct ProgramStreams {
    pub(crate) stdin: OwnedFd,
    pub(crate) stdout: OwnedFd,
    pub(crate) stderr: OwnedFd,
    pub(crate) output_fds: [StreamFds; 2],
    /// Supervisor's end of standard input, if that stays open. No other process has it.
    pub(crate) stdin_pipe: Option<OwnedFd>,
    /// Same end with its journal, if the process holder is to hold both.
    pub(crate) journaled_stdin: Option<StdinFds>,
}

/// Creates the streams. Input is written completely before the program starts, so that no program acts on a part of it,
/// unless the program gets messages while it runs.
///
/// # Errors
/// Fails if the process may not open more files, or memory runs out.
pub(crate) fn create_streams(input: &StdinSource) -> io::Result<ProgramStreams> {
    let ((stdout, stdout_fds), (stderr, stderr_fds)) =
        (create_output_pipe()?, create_output_pipe()?);
    enlarge_output_pipe(&stdout_fds.pipe);
    let (stdin, stdin_pipe, journaled_stdin) = match input {
        StdinSource::Bytes(input) => (create_stdin(input)?, None, None),
        StdinSource::Piped => {
            let (program_end, supervisor_end) = pipe2(OFlag::O_CLOEXEC)?;
            (program_end, Some(supervisor_end), None)
        }
        StdinSource::Journaled => {
            let (program_end, supervisor_end) = create_journaled_stdin()?;
            (program_end, None, Some(supervisor_end))
        }
    };
    Ok(ProgramStreams {
        stdin,
        stdout,
        stderr,
        output_fds: [stdout_fds, stderr_fds],
        stdin_pipe,
        journaled_stdin,
    })
}

/// Returns the program's end of a journaled input, and the supervisor's ends. The pipe is not widened: the pipes of a
/// user together are limited, and a session holds its pipe for a long time.
///
/// # Errors
/// Same as [`create_streams`].
pub(crate) fn create_journaled_stdin() -> io::Result<(OwnedFd, StdinFds)> {
    let (program_end, supervisor_end) = pipe2(OFlag::O_CLOEXEC)?;
    // Only the supervisor's end is non-blocking: programs do not expect `EAGAIN` on their input.
    fcntl(&supervisor_end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    let journal = Arc::new(create_memory_file(MFdFlags::empty())?);
    Ok((program_end, StdinFds { pipe: Arc::new(supervisor_end), journal }))
}

fn create_output_pipe() -> io::Result<(OwnedFd, StreamFds)> {
    let (supervisor_end, program_end) = pipe2(OFlag::O_CLOEXEC)?;
    // Only the supervisor's end is non-blocking: programs do not expect `EAGAIN` on their output.
    fcntl(&supervisor_end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    Ok((
        program_end,
        StreamFds {
            pipe: Arc::new(supervisor_end),
            memory_file: Arc::new(create_memory_file(MFdFlags::empty())?),
        },
    ))
}

/// Enlarges a pipe for a long answer, because some programs exit before the last of it is read. Only standard output:
/// the pipes of a user together are limited (64 MiB by default), and beyond that each new pipe of the user has two
/// pages.
fn enlarge_output_pipe(pipe: &OwnedFd) {
    // The capacity stays unchanged if that exceeds the limit.
    _ = fcntl(pipe, FcntlArg::F_SETPIPE_SZ(STDOUT_PIPE_BYTES));
}

fn create_stdin(input: &[u8]) -> io::Result<OwnedFd> {
    if input.is_empty() {
        return Ok(File::open("/dev/null")?.into());
    }
    match if input.len() <= MAX_MOVE_BYTES { create_filled_pipe(input)? } else { None } {
        Some(pipe) => Ok(pipe),
        None => create_sealed_memory_file(input),
    }
}

/// Returns a pipe with the whole input, or `None` if the pipe has too little room, as it may if the user has many
/// pipes.
fn create_filled_pipe(input: &[u8]) -> io::Result<Option<OwnedFd>> {
    let (program_end, supervisor_end) = pipe2(OFlag::O_CLOEXEC)?;
    fcntl(&supervisor_end, FcntlArg::F_SETFL(OFlag::O_NONBLOCK))?;
    match write(&supervisor_end, input) {
        Ok(written) => Ok((written == input.len()).then_some(program_end)),
        Err(Errno::EAGAIN) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Returns a sealed memory file.
fn create_sealed_memory_file(bytes: &[u8]) -> io::Result<OwnedFd> {
    let mut file = File::from(create_memory_file(MFdFlags::MFD_ALLOW_SEALING)?);
    file.write_all(bytes)?;
    file.rewind()?;
    fcntl(&file, FcntlArg::F_ADD_SEALS(SealFlag::all()))?;
    Ok(file.into())
}

/// Returns a memory file with a spec that is too long for a frame.
///
/// # Errors
/// Same as [`create_streams`].
pub(crate) fn create_spec_file(bytes: &[u8]) -> io::Result<OwnedFd> {
    create_sealed_memory_file(bytes)
}

fn create_memory_file(flags: MFdFlags) -> io::Result<OwnedFd> {
    Ok(memfd_create("algonius", MFdFlags::MFD_CLOEXEC | flags)?)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::io::{Read, Write};

    use nix::fcntl::{FcntlArg, fcntl};

    use super::{STDOUT_PIPE_BYTES, create_stdin, create_streams};
    use crate::StdinSource;

    /// Test that needs root or free pipe memory of the user.
    #[test]
    fn an_output_pipe_is_large_from_the_start() {
        let [out, err] = create_streams(&StdinSource::Bytes(Vec::new())).unwrap().output_fds;
        let pipe_bytes = |pipe| fcntl(pipe, FcntlArg::F_GETPIPE_SZ).unwrap();
        assert_eq!(pipe_bytes(&out.pipe), STDOUT_PIPE_BYTES);
        assert!(pipe_bytes(&err.pipe) <= 64 << 10);
    }

    #[test]
    fn input_of_any_length_is_read_to_its_end() {
        for length in [0, 1, 65_536, 65_537, 3_000_000] {
            let input = vec![7; length];
            let mut read = Vec::new();
            File::from(create_stdin(&input).unwrap()).read_to_end(&mut read).unwrap();
            assert_eq!(read.len(), length);
        }
    }

    #[test]
    fn an_input_file_cannot_be_changed() {
        let mut file = File::from(create_stdin(&[7; 100_000]).unwrap());
        assert!(file.write_all(b"x").is_err());
        assert!(file.set_len(0).is_err());
    }
}
