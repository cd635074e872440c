//! Memory file of a journal: complete messages, and an offset that counts the delivered bytes.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use nix::errno::Errno;
use nix::fcntl::{SpliceFFlags, splice};
use nix::sys::signal::{SigSet, SigmaskHow, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use nix::sys::stat::fstat;
use nix::sys::uio::{pread, pwrite};
use nix::unistd::{Whence, ftruncate, lseek};

use super::StdinJournalError;

/// Bytes per move, and per read in the search for a torn message.
pub(super) const MAX_MOVE_BYTES: usize = 64 * 1024;

/// First byte of a message that is not complete.
const UNCOMMITTED_BYTE: u8 = 0;

/// Memory file that only one process at a time writes to.
pub(super) struct JournalFile(Arc<OwnedFd>);

impl JournalFile {
    /// Repairs the file that a killed writer left; returns it with its size and its offset.
    pub(super) fn open_repaired(file: Arc<OwnedFd>) -> Result<(Self, u64, u64), StdinJournalError> {
        let size = fstat(&file)?.st_size.unsigned_abs();
        let delivered = lseek(&file, 0, Whence::SeekCur)?.unsigned_abs();
        let file = Self(file);
        if delivered > size {
            if size > 0 {
                return Err(StdinJournalError::JournalCorrupt { size, delivered });
            }
            // The writer was killed while it emptied the file.
            file.clear()?;
            return Ok((file, 0, 0));
        }
        let complete_size = file.find_uncommitted_message(delivered)?.unwrap_or(size);
        if complete_size < size {
            file.truncate(complete_size)?;
        }
        Ok((file, complete_size, delivered))
    }

    /// Appends a message at the end of the complete ones. A kill leaves it complete or uncommitted.
    pub(super) fn append(&self, message: &[u8], end: u64) -> Result<(), StdinJournalError> {
        let Some((first, rest)) = message.split_first() else {
            return Err(StdinJournalError::InvalidMessage);
        };
        if message.contains(&UNCOMMITTED_BYTE) {
            return Err(StdinJournalError::InvalidMessage);
        }
        // The first byte commits the message: one byte cannot be torn.
        let write_result = self.write_at(rest, end + 1);
        if let Err(error) =
            write_result.and_then(|()| self.write_at(std::slice::from_ref(first), end))
        {
            // A shorter message that follows must not be continued by the rest of this one.
            self.truncate(end)?;
            return Err(error.into());
        }
        Ok(())
    }

    /// Drops an incomplete message from its start. Unread input is not changed: the rest of the page, which becomes
    /// zero, was never moved.
    fn truncate(&self, end: u64) -> io::Result<()> {
        Ok(ftruncate(&self.0, file_offset(end)?)?)
    }

    /// Empties the file, whose bytes must all be read.
    pub(super) fn clear(&self) -> Result<(), StdinJournalError> {
        // In this order: a file that is empty before its offset is recognized, and repaired by the next writer. With
        // the offset at 0 first, the next writer would deliver everything again.
        ftruncate(&self.0, 0)?;
        lseek(&self.0, 0, Whence::SeekSet)?;
        Ok(())
    }

    /// Returns the start of the message that a killed writer did not complete.
    fn find_uncommitted_message(&self, start: u64) -> io::Result<Option<u64>> {
        let (mut buffer, mut offset) = (vec![0; MAX_MOVE_BYTES], start);
        loop {
            let read = self.read_at(&mut buffer, offset)?;
            if let Some(position) =
                buffer.iter().take(read).position(|byte| *byte == UNCOMMITTED_BYTE)
            {
                return Ok(Some(offset + position as u64));
            }
            if read < MAX_MOVE_BYTES {
                return Ok(None);
            }
            offset += read as u64;
        }
    }

    /// Moves bytes from the offset into the pipe, without waiting and without SIGPIPE.
    pub(super) fn move_to(&self, pipe: &OwnedFd, limit: usize) -> Result<usize, Errno> {
        // An embedding program may have the default action of SIGPIPE, which ends the process.
        let mut sigpipe_mask = SigSet::empty();
        sigpipe_mask.add(Signal::SIGPIPE);
        let previous_mask = sigpipe_mask.thread_swap_mask(SigmaskHow::SIG_BLOCK)?;
        let moved = splice(&self.0, None, pipe, None, limit, SpliceFFlags::SPLICE_F_NONBLOCK);
        if moved == Err(Errno::EPIPE) && !previous_mask.contains(Signal::SIGPIPE) {
            // Takes the signal before it is unblocked.
            let signals = SignalFd::with_flags(&sigpipe_mask, SfdFlags::SFD_NONBLOCK);
            _ = signals.and_then(|signals| signals.read_signal());
        }
        _ = previous_mask.thread_set_mask(); // A failure must not hide the number of moved bytes.
        moved
    }

    fn write_at(&self, bytes: &[u8], start: u64) -> io::Result<()> {
        let (mut remaining, mut offset) = (bytes, start);
        while !remaining.is_empty() {
            match pwrite(&self.0, remaining, file_offset(offset)?) {
                Ok(written) => {
                    remaining = remaining.get(written..).unwrap_or_default();
                    offset += written as u64;
                }
                Err(Errno::EINTR) => {}
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Fills the buffer from a position; returns fewer bytes if the file ends before.
    pub(super) fn read_at(&self, bytes: &mut [u8], start: u64) -> io::Result<usize> {
        let mut filled = 0;
        while let Some(unfilled) = bytes.get_mut(filled..).filter(|unfilled| !unfilled.is_empty()) {
            match pread(&self.0, unfilled, file_offset(start + filled as u64)?)? {
                0 => break,
                count => filled += count,
            }
        }
        Ok(filled)
    }
}

/// Returns the number of bytes in a pipe.
#[expect(unsafe_code, reason = "no safe wrapper tells what a pipe holds")]
pub(super) fn unread_bytes(pipe: &OwnedFd) -> Result<u32, Errno> {
    let mut count: libc::c_int = 0;
    // SAFETY: the call writes one integer, and the place lives longer than the call.
    Errno::result(unsafe { libc::ioctl(pipe.as_raw_fd(), libc::FIONREAD, &raw mut count) })?;
    Ok(count.unsigned_abs())
}

fn file_offset(offset: u64) -> io::Result<i64> {
    i64::try_from(offset).map_err(io::Error::other)
}
