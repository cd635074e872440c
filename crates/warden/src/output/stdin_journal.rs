//! Standard input of a program through a journal, so that no message is lost or doubled when its writer is killed.
//!
//! The writer appends a message to a memory file, and only then moves it with `splice` into the pipe of the program.
//! The kernel advances the file offset in the same system call, so a kill cannot come between the two: the offset is
//! the number of delivered bytes. The process holder has duplicates of the file and of the pipe's write end, so the
//! next writer continues where the killed one stopped, and the program sees no end of its input meanwhile.
//!
//! A message is committed by its first byte, which is written last. Until then that byte reads as NUL, which no message
//! contains. A message needs no other mark of its end, so its framing is the protocol's own.
//!
//! Bytes in the pipe are pages of the file. To overwrite delivered bytes, or to cut the file before its offset, would
//! change input that the program has not read yet. [`StdinJournal::clear_if_read`] is the only exception.

mod file;

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use nix::errno::Errno;
use tokio::io::Interest;
use tokio::io::unix::AsyncFd;
use tokio::sync::{Mutex, OwnedMutexGuard};

use self::file::{JournalFile, MAX_MOVE_BYTES, unread_bytes};
use super::memory_account::MemoryAccount;
use super::readerless_pipe::create_readerless_pipe;
use crate::protocol::packet::register_fd;

/// Default of the greatest length of a journal in bytes.
pub const DEFAULT_MAX_JOURNAL_BYTES: u64 = 64 << 20;

/// Each message completes the sentence "the input was not written: ...".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StdinJournalError {
    /// The program has closed its standard input, or has ended. A message that was recorded never reaches it.
    #[error("the program has closed its standard input")]
    InputClosed,
    /// The message was not recorded.
    #[error("the input of the program since the last pause exceeds {limit} bytes")]
    JournalFull {
        /// Greatest length of the journal in bytes.
        limit: u64,
    },
    /// The message was not recorded: it is empty, or contains a NUL byte.
    #[error("the message is empty or contains a NUL byte")]
    InvalidMessage,
    /// The file offset lies beyond the end of the journal.
    #[error("the journal has {size} bytes, of which {delivered} were delivered")]
    JournalCorrupt {
        /// Length of the journal in bytes.
        size: u64,
        /// Delivered bytes.
        delivered: u64,
    },
    /// The process holder is of an earlier release, which holds no journal.
    #[error("the process holder has version {version}, and journals need version {needed}")]
    HolderTooOld {
        /// Frame version of the process holder.
        version: u64,
        /// First version that holds journals.
        needed: u64,
    },
    /// A system call failed.
    #[error("the journal cannot be used")]
    Io(#[from] io::Error),
}

impl From<Errno> for StdinJournalError {
    fn from(errno: Errno) -> Self {
        match errno {
            Errno::EPIPE => Self::InputClosed,
            errno => Self::Io(errno.into()),
        }
    }
}

impl From<StdinJournalError> for io::Error {
    fn from(error: StdinJournalError) -> Self {
        use StdinJournalError as E;
        let kind = match error {
            E::Io(error) => return error,
            E::InputClosed => io::ErrorKind::BrokenPipe,
            E::JournalFull { .. } => io::ErrorKind::StorageFull,
            E::InvalidMessage => io::ErrorKind::InvalidInput,
            E::JournalCorrupt { .. } => io::ErrorKind::InvalidData,
            E::HolderTooOld { .. } => io::ErrorKind::Unsupported,
        };
        Self::new(kind, error)
    }
}

/// Supervisor's descriptors of a journaled standard input.
#[derive(Debug, Clone)]
pub(crate) struct StdinFds {
    /// Non-blocking write end of the pipe.
    pub(crate) pipe: Arc<OwnedFd>,
    /// Memory file of the journal.
    pub(crate) journal: Arc<OwnedFd>,
}

/// Journaled standard input of a program. Only the owner of the lock may write.
#[derive(Debug)]
pub(crate) struct StdinState {
    /// Descriptors; `None` if the input was closed, and no descriptor could be created in place of its pipe.
    fds: Option<StdinFds>,
    /// Account of the journal's memory, apart from that of the program's output.
    account: MemoryAccount,
}

impl StdinState {
    /// Returns the state behind its lock. The journal is charged to a sibling of this account.
    pub(crate) fn new_shared(fds: StdinFds, account: &MemoryAccount) -> Arc<Mutex<Self>> {
        Arc::new(Mutex::new(Self { fds: Some(fds), account: account.new_sibling_account() }))
    }

    /// Charges the account for this many bytes in all.
    fn set_charged_bytes(&mut self, bytes: u64) {
        self.account = self.account.new_sibling_account();
        self.account.charge(bytes);
    }
}

/// Order to the process holder to close the input.
pub(crate) type CloseStdinCallback = Box<dyn FnOnce() + Send + Sync>;

/// Standard input of a running program, with the record of everything that was written to it. Dropping it closes
/// nothing: the next driver of the program continues. A journal has one writer at a time.
pub struct StdinJournal {
    pipe: AsyncFd<Arc<OwnedFd>>,
    file: JournalFile,
    /// Bytes of complete messages.
    size: u64,
    /// Bytes that are in the pipe or were read: the file offset.
    delivered: u64,
    max_bytes: u64,
    send_close: CloseStdinCallback,
    state: OwnedMutexGuard<StdinState>,
}

impl std::fmt::Debug for StdinJournal {
    /// Shows no input.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { size, delivered, max_bytes, .. } = self;
        let mut debug = f.debug_struct("StdinJournal");
        debug.field("size", size).field("delivered", delivered).field("limit", max_bytes);
        debug.finish_non_exhaustive()
    }
}

impl StdinJournal {
    /// Continues a journal: repairs what a killed writer left, and moves what it had not delivered. The journal of a
    /// closed input can be read only.
    ///
    /// # Errors
    /// Fails if the journal is corrupt, or if the runtime cannot watch the pipe.
    pub(crate) fn attach(
        mut state: OwnedMutexGuard<StdinState>,
        send_close: CloseStdinCallback,
    ) -> Result<Option<Self>, StdinJournalError> {
        let Some(StdinFds { pipe, journal }) = state.fds.clone() else { return Ok(None) };
        let (file, size, delivered) = JournalFile::open_repaired(journal)?;
        state.set_charged_bytes(size);
        let pipe = register_fd(pipe, Interest::WRITABLE)?;
        let max_bytes = DEFAULT_MAX_JOURNAL_BYTES;
        let mut journal = Self { pipe, file, size, delivered, max_bytes, send_close, state };
        match journal.try_deliver() {
            // A program that has closed its input may still run, and its output is still of interest.
            Ok(()) | Err(StdinJournalError::InputClosed) => Ok(Some(journal)),
            Err(error) => Err(error),
        }
    }

    /// Sets the greatest length of the journal in bytes, instead of [`DEFAULT_MAX_JOURNAL_BYTES`].
    #[must_use]
    pub const fn with_max_bytes(mut self, max_bytes: u64) -> Self {
        self.max_bytes = max_bytes;
        self
    }

    /// Records a message, such as a line with its newline, and moves as much into the pipe as has room there. Never
    /// waits. After `Ok` the program receives the message exactly once, from this writer or the next;
    /// [`Self::deliver`] moves the rest.
    ///
    /// # Errors
    /// [`StdinJournalError::JournalFull`], [`StdinJournalError::InvalidMessage`] and [`StdinJournalError::Io`]: the
    /// message was not recorded. [`StdinJournalError::InputClosed`]: the program does not read any more.
    pub fn write_message(&mut self, message: &[u8]) -> Result<(), StdinJournalError> {
        self.record_message(message)?;
        self.try_deliver()
    }

    /// Moves all recorded messages into the pipe, as the program makes room. A dropped future loses nothing.
    ///
    /// # Errors
    /// [`StdinJournalError::InputClosed`] if the program does not read any more.
    pub async fn deliver(&mut self) -> Result<(), StdinJournalError> {
        while !self.is_drained() {
            let (file, move_bytes) = (&self.file, self.next_move_bytes());
            let move_chunk = |pipe: &Arc<OwnedFd>| Ok(file.move_to(pipe, move_bytes)?);
            match self.pipe.async_io(Interest::WRITABLE, move_chunk).await {
                Ok(moved) => self.add_delivered(moved)?,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {
                    return Err(StdinJournalError::InputClosed);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    /// Returns all messages since the last [`Self::clear_if_read`], also those of earlier writers.
    ///
    /// # Errors
    /// Fails if the journal cannot be read.
    pub fn read_messages(&self) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; usize::try_from(self.size).map_err(io::Error::other)?];
        let read = self.file.read_at(&mut bytes, 0)?;
        bytes.truncate(read);
        Ok(bytes)
    }

    /// Returns the number of bytes since the last [`Self::clear_if_read`] that are in the pipe or were read by the
    /// program.
    pub const fn delivered_bytes(&self) -> u64 {
        self.delivered
    }

    /// Returns true if everything that was recorded is in the pipe or was read by the program.
    pub const fn is_drained(&self) -> bool {
        self.delivered >= self.size
    }

    /// Empties the journal, to be called between turns. Returns false, and changes nothing, if the program has not read
    /// everything yet.
    ///
    /// # Errors
    /// Fails if a system call does.
    pub fn clear_if_read(&mut self) -> Result<bool, StdinJournalError> {
        // Unread bytes in the pipe are pages of the file.
        if !self.is_drained() || unread_bytes(self.pipe.get_ref())? > 0 {
            return Ok(false);
        }
        self.file.clear()?;
        (self.size, self.delivered) = (0, 0);
        self.state.set_charged_bytes(0);
        Ok(true)
    }

    /// Closes the standard input of the program, here and in the process holder. The program reads the end after what
    /// was delivered; messages that were not are dropped, so [`Self::deliver`] comes first.
    ///
    /// The journal stays: a driver that takes over the program after this moment reads the messages in it, without
    /// which the output of the program cannot be understood.
    pub fn close(mut self) {
        let ends_and_pipe = self.state.fds.take().zip(create_readerless_pipe().ok());
        self.state.fds =
            ends_and_pipe.map(|(ends, pipe)| StdinFds { pipe: Arc::new(pipe), ..ends });
        (self.send_close)();
    }

    fn record_message(&mut self, message: &[u8]) -> Result<(), StdinJournalError> {
        let length = message.len() as u64;
        if self.size.saturating_add(length) > self.max_bytes {
            return Err(StdinJournalError::JournalFull { limit: self.max_bytes });
        }
        self.file.append(message, self.size)?;
        self.size += length;
        self.state.account.charge(length);
        Ok(())
    }

    /// Moves what the pipe has room for.
    fn try_deliver(&mut self) -> Result<(), StdinJournalError> {
        while !self.is_drained() {
            match self.file.move_to(self.pipe.get_ref(), self.next_move_bytes()) {
                Ok(moved) => self.add_delivered(moved)?,
                Err(Errno::EINTR) => {}
                Err(Errno::EAGAIN) => return Ok(()),
                Err(errno) => return Err(errno.into()),
            }
        }
        Ok(())
    }

    /// Returns the number of bytes to move next.
    fn next_move_bytes(&self) -> usize {
        usize::try_from(self.size - self.delivered).unwrap_or(MAX_MOVE_BYTES).min(MAX_MOVE_BYTES)
    }

    fn add_delivered(&mut self, moved: usize) -> Result<(), StdinJournalError> {
        self.delivered += moved as u64;
        let Self { size, delivered, .. } = *self;
        // Nothing moves only if the file ends early: without an error the caller would try for ever.
        if moved > 0 { Ok(()) } else { Err(StdinJournalError::JournalCorrupt { size, delivered }) }
    }
}
