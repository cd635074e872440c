//! A program's output as the supervisor reads it: through a memory file that outlives the reader.
//!
//! `splice` moves bytes out of the pipe and into the file within one system call, so no kill can
//! fall between: the size of the file is what was ever taken. Whoever comes next reads from byte 0.

use std::io;
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use nix::errno::Errno;
use nix::fcntl::{SpliceFFlags, splice};
use nix::sys::stat::fstat;
use nix::sys::uio::pread;
use tokio::io::unix::AsyncFd;
use tokio::io::{AsyncRead, Interest, ReadBuf};
use tokio::sync::OwnedMutexGuard;

use super::packet::watch;

/// Bytes that are moved at once: what a pipe holds.
pub(super) const PIECE: usize = 64 * 1024;

/// The supervisor's two ends of one stream.
#[derive(Debug)]
pub(super) struct Ends {
    /// Our end of the pipe; never waited for.
    pub(super) pipe: Arc<OwnedFd>,
    /// Into which it goes.
    pub(super) memory: Arc<OwnedFd>,
}

/// A stream that is being read. Only one reader of a stream may live.
pub(super) struct Stream {
    pipe: AsyncFd<Arc<OwnedFd>>,
    memory: Arc<OwnedFd>,
    /// How far it was read.
    at: u64,
    /// What the memory file holds.
    length: u64,
    cap: u64,
    is_dry: bool,
    _turn: Arc<OwnedMutexGuard<()>>,
}

impl Stream {
    /// Reads from the first byte. Of more than `cap` bytes the rest passes by the memory file.
    ///
    /// # Errors
    /// When the runtime cannot watch the pipe.
    pub(super) fn open(ends: &Ends, cap: u64, turn: Arc<OwnedMutexGuard<()>>) -> io::Result<Self> {
        let pipe = watch(Arc::clone(&ends.pipe), Interest::READABLE)?;
        let (memory, at) = (Arc::clone(&ends.memory), 0);
        let length = fstat(&memory)?.st_size.unsigned_abs();
        Ok(Self { pipe, memory, at, length, cap, is_dry: false, _turn: turn })
    }

    /// Moves what is there, if anything is.
    fn advance(&mut self, buffer: &mut ReadBuf<'_>) -> Result<(), Errno> {
        let room = usize::try_from(self.cap.saturating_sub(self.length)).unwrap_or(PIECE);
        let pipe = self.pipe.get_ref();
        let moved = if room == 0 {
            let read = nix::unistd::read(pipe, buffer.initialize_unfilled())?;
            buffer.advance(read);
            read
        } else {
            let flags = SpliceFFlags::SPLICE_F_NONBLOCK;
            let moved = splice(pipe, None, &self.memory, None, room.min(PIECE), flags)?;
            self.length += moved as u64;
            moved
        };
        self.is_dry = moved == 0;
        Ok(())
    }

    /// Reads what the memory file holds and was not read.
    fn take(&mut self, buffer: &mut ReadBuf<'_>) -> io::Result<()> {
        let left = usize::try_from(self.length - self.at).unwrap_or(usize::MAX);
        let target = buffer.initialize_unfilled();
        let room = left.min(target.len());
        let target = target.get_mut(..room).unwrap_or_default();
        let place = i64::try_from(self.at).map_err(io::Error::other)?;
        let read = pread(&self.memory, target, place)?;
        self.at += read as u64;
        buffer.advance(read);
        Ok(())
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        let before = buffer.filled().len();
        loop {
            if stream.at < stream.length {
                return Poll::Ready(stream.take(buffer));
            }
            if stream.is_dry || buffer.filled().len() > before || buffer.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            match stream.advance(buffer) {
                Ok(()) | Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => ready!(stream.pipe.poll_read_ready(cx))?.clear_ready(),
                Err(errno) => return Poll::Ready(Err(errno.into())),
            }
        }
    }
}
