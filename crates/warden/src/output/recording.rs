//! Output of programs in memory files, outside the heap of the service.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use nix::sys::memfd::{MFdFlags, memfd_create};
use nix::sys::stat::fstat;
use nix::sys::uio::{pread, pwrite};

use super::memory_account::MemoryAccount;

/// Memory file that can be read at any position. Cheap to clone.
#[derive(Debug, Clone)]
pub struct OutputRecording {
    file: Arc<OwnedFd>,
    account: MemoryAccount,
}

impl OutputRecording {
    /// Returns the memory file of a pipe, which the account is already charged for.
    pub(crate) const fn from_memory_file(file: Arc<OwnedFd>, account: MemoryAccount) -> Self {
        Self { file, account }
    }

    /// Creates an empty memory file. It has its own account beside this one, so that its memory is free again when it
    /// is dropped.
    ///
    /// # Errors
    /// Fails if the process may not open more files.
    pub fn new(account: &MemoryAccount) -> io::Result<Self> {
        let file = memfd_create("algonius", MFdFlags::MFD_CLOEXEC)?;
        Ok(Self { file: Arc::new(file), account: account.new_sibling_account() })
    }

    /// Writes bytes at a position. The account is charged for the bytes by which the file grows.
    ///
    /// # Errors
    /// Fails if memory runs out.
    pub fn write_at(&self, bytes: &[u8], start: u64) -> io::Result<()> {
        let (mut remaining, mut offset) = (bytes, i64::try_from(start).map_err(io::Error::other)?);
        let length = fstat(&self.file)?.st_size.unsigned_abs();
        self.account.charge((start + bytes.len() as u64).saturating_sub(length));
        while !remaining.is_empty() {
            let written = pwrite(&self.file, remaining, offset)?;
            remaining = remaining.get(written..).unwrap_or_default();
            offset += i64::try_from(written).unwrap_or_default();
        }
        Ok(())
    }

    /// Returns the bytes of a range; fewer if the file ends before.
    ///
    /// # Errors
    /// Fails if the bytes cannot be read.
    pub fn read_at(&self, start: u64, limit: usize) -> io::Result<Vec<u8>> {
        let mut bytes = vec![0; limit];
        let mut filled = 0;
        while let Some(unfilled) = bytes.get_mut(filled..).filter(|unfilled| !unfilled.is_empty()) {
            let offset = i64::try_from(start + filled as u64).map_err(io::Error::other)?;
            match pread(&self.file, unfilled, offset)? {
                0 => break,
                count => filled += count,
            }
        }
        bytes.truncate(filled);
        Ok(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::OutputRecording;
    use crate::output::memory_account::OutputMemory;

    #[test]
    fn recorded_bytes_are_read_at_any_offset_and_counted_once() {
        let memory = OutputMemory::with_limit(1 << 20);
        let recording = OutputRecording::new(&memory.new_account()).unwrap();
        recording.write_at(b"hello ", 0).unwrap();
        recording.write_at(b"?????", 6).unwrap();
        recording.write_at(b"world", 6).unwrap();
        assert_eq!(recording.read_at(4, 5).unwrap(), b"o wor");
        assert_eq!(recording.read_at(9, 100).unwrap(), b"ld");
        assert_eq!(recording.read_at(100, 5).unwrap(), b"");
        assert_eq!(memory.usage().used_bytes, 11);
        drop(recording);
        assert_eq!(memory.usage().used_bytes, 0);
    }
}
