//! Output of a program as the supervisor reads it: through a memory file that outlives the reader.
//!
//! `splice` moves bytes from the pipe to the file within one system call, so a kill loses no byte: the size of the file
//! is the number of all moved bytes. The next reader starts at byte 0.

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
use tokio::task::coop;

use super::memory_account::MemoryAccount;
use crate::protocol::packet::register_fd;

/// Bytes per move: the default capacity of a pipe.
pub(crate) const MAX_MOVE_BYTES: usize = 64 * 1024;

/// Two descriptors of the supervisor for one stream.
#[derive(Debug)]
pub(crate) struct StreamFds {
    /// Non-blocking read end of the pipe.
    pub(crate) pipe: Arc<OwnedFd>,
    /// Memory file that receives the bytes.
    pub(crate) memory_file: Arc<OwnedFd>,
}

/// Stream that is being read. A stream may have only one reader at a time.
pub(crate) struct ProgramStream {
    pipe: AsyncFd<Arc<OwnedFd>>,
    memory_file: Arc<OwnedFd>,
    /// Bytes that were read.
    read_offset: u64,
    /// Bytes that the memory file holds.
    recorded_bytes: u64,
    max_recorded_bytes: u64,
    has_ended: bool,
    account: MemoryAccount,
    /// Future that waits for free memory for output, while the stream needs it.
    memory_wait: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    _reader_lock: Arc<OwnedMutexGuard<()>>,
}

impl ProgramStream {
    /// Reads from the first byte. Bytes beyond `max_recorded_bytes` bypass the memory file.
    ///
    /// # Errors
    /// Fails if the runtime cannot watch the pipe.
    pub(crate) fn open(
        fds: &StreamFds,
        (max_recorded_bytes, account): (u64, MemoryAccount),
        reader_lock: Arc<OwnedMutexGuard<()>>,
    ) -> io::Result<Self> {
        let pipe = register_fd(Arc::clone(&fds.pipe), Interest::READABLE)?;
        let (memory_file, read_offset) = (Arc::clone(&fds.memory_file), 0);
        let recorded_bytes = fstat(&memory_file)?.st_size.unsigned_abs();
        let (has_ended, memory_wait) = (false, None);
        Ok(Self {
            pipe,
            memory_file,
            read_offset,
            recorded_bytes,
            max_recorded_bytes,
            has_ended,
            account,
            memory_wait,
            _reader_lock: reader_lock,
        })
    }

    /// Returns when there is memory for the next bytes. Bytes beyond the limit need none: they are not written to the
    /// memory file.
    fn poll_memory(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let needs_memory = self.recorded_bytes < self.max_recorded_bytes;
        if self.memory_wait.is_none() && (!needs_memory || self.account.try_acquire_growth()) {
            return Poll::Ready(());
        }
        let memory_wait = self
            .memory_wait
            .get_or_insert_with(|| Box::pin(self.account.clone().wait_for_memory()));
        ready!(memory_wait.as_mut().poll(cx));
        self.memory_wait = None;
        Poll::Ready(())
    }

    /// Moves available bytes, if there are any.
    fn move_available_bytes(&mut self, buffer: &mut ReadBuf<'_>) -> Result<(), Errno> {
        let capacity = usize::try_from(self.max_recorded_bytes.saturating_sub(self.recorded_bytes))
            .unwrap_or(MAX_MOVE_BYTES);
        let pipe = self.pipe.get_ref();
        let moved = if capacity == 0 {
            let read = nix::unistd::read(pipe, buffer.initialize_unfilled())?;
            buffer.advance(read);
            read
        } else {
            let flags = SpliceFFlags::SPLICE_F_NONBLOCK;
            let moved =
                splice(pipe, None, &self.memory_file, None, capacity.min(MAX_MOVE_BYTES), flags)?;
            self.recorded_bytes += moved as u64;
            self.account.charge(moved as u64);
            moved
        };
        self.has_ended = moved == 0;
        Ok(())
    }

    /// Reads bytes of the memory file that were not read yet.
    fn read_recorded_bytes(&mut self, buffer: &mut ReadBuf<'_>) -> io::Result<()> {
        let unread_bytes =
            usize::try_from(self.recorded_bytes - self.read_offset).unwrap_or(usize::MAX);
        let target = buffer.initialize_unfilled();
        let length = unread_bytes.min(target.len());
        let target = target.get_mut(..length).unwrap_or_default();
        let offset = i64::try_from(self.read_offset).map_err(io::Error::other)?;
        let read = pread(&self.memory_file, target, offset)?;
        self.read_offset += read as u64;
        buffer.advance(read);
        Ok(())
    }

    fn poll_bytes(
        &mut self,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let filled_before = buffer.filled().len();
        loop {
            if self.read_offset < self.recorded_bytes {
                return Poll::Ready(self.read_recorded_bytes(buffer));
            }
            if self.has_ended || buffer.filled().len() > filled_before || buffer.remaining() == 0 {
                return Poll::Ready(Ok(()));
            }
            ready!(self.poll_memory(cx));
            match self.move_available_bytes(buffer) {
                Ok(()) | Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => ready!(self.pipe.poll_read_ready(cx))?.clear_ready(),
                Err(errno) => return Poll::Ready(Err(errno.into())),
            }
        }
    }
}

impl AsyncRead for ProgramStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        // These reads never wait while the program writes faster than its reader, so they take part in the scheduling
        // of the runtime: otherwise neither a deadline nor a cancellation would ever be noticed.
        let budget = ready!(coop::poll_proceed(cx));
        let result = ready!(self.get_mut().poll_bytes(cx, buffer));
        budget.made_progress();
        Poll::Ready(result)
    }
}

#[cfg(test)]
mod tests {
    use nix::sys::memfd::{MFdFlags, memfd_create};
    use nix::unistd::{ftruncate, pipe};
    use tokio::io::AsyncReadExt as _;
    use tokio::sync::Mutex;

    use super::*;
    use crate::output::memory_account::OutputMemory;

    #[tokio::test]
    async fn endless_output_leaves_time_for_other_work() {
        let memory_file = memfd_create("output", MFdFlags::empty()).unwrap();
        ftruncate(&memory_file, 1 << 20).unwrap();
        // The program has ended, so that the reads end too.
        let (read_end, write_end) = pipe().unwrap();
        drop(write_end);
        let ends = StreamFds { pipe: Arc::new(read_end), memory_file: Arc::new(memory_file) };
        let account = OutputMemory::with_limit(1 << 20).new_account();
        let reader_lock = Arc::new(Arc::new(Mutex::new(())).lock_owned().await);
        let mut stream = ProgramStream::open(&ends, (0, account), reader_lock).unwrap();
        let read_all = async {
            let mut buffer = [0; 1];
            while stream.read(&mut buffer).await.unwrap() > 0 {}
        };
        tokio::select! {
            biased;
            () = read_all => panic!("a million reads happened at once"),
            () = std::future::ready(()) => {}
        }
    }
}
