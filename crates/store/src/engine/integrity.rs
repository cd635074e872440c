//! Check of the length of the database file: SQLite detects a truncated file only when it reads the missing part,
//! possibly much later.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use crate::StoreError;

/// Size of the header of an SQLite database, in bytes.
const HEADER_BYTES: usize = 100;

/// Files from which SQLite repairs a database: the write-ahead log and the rollback journal.
const LOG_EXTENSIONS: [&str; 2] = ["db-wal", "db-journal"];

/// Checks the file. A file with a log beside it is left to SQLite, because the log may contain the missing part.
///
/// # Errors
/// Fails if the file is too short.
pub(crate) fn check_file_length(database: &Path) -> Result<(), StoreError> {
    let has_content = |extension: &&str| {
        fs::metadata(database.with_extension(extension)).is_ok_and(|it| it.len() > 0)
    };
    // Before the length: a crash in the middle of a checkpoint leaves a short file that the log completes.
    if LOG_EXTENSIONS.iter().any(has_content) {
        return Ok(());
    }
    let directory_error = |source| StoreError::Directory {
        folder: database.parent().unwrap_or(database).to_owned(),
        source,
    };
    match missing_bytes(database).map_err(directory_error)? {
        0 => Ok(()),
        bytes => Err(StoreError::Damaged {
            file: database.to_owned(),
            source: format!("its last {bytes} bytes are missing").into(),
        }),
    }
}

/// Returns the number of bytes that the file lacks according to its header.
fn missing_bytes(database: &Path) -> io::Result<u64> {
    let (file, mut header) = (File::open(database)?, Vec::with_capacity(HEADER_BYTES));
    let length = file.metadata()?.len();
    file.take(HEADER_BYTES as u64).read_to_end(&mut header)?;
    Ok(length_from_header(&header).unwrap_or_default().saturating_sub(length))
}

/// Returns the length of a database according to its header; `None` if the header does not contain it.
fn length_from_header(header: &[u8]) -> Option<u64> {
    let read_u32 =
        |offset: usize| Some(u32::from_be_bytes(header.get(offset..offset + 4)?.try_into().ok()?));
    let page_bytes = u16::from_be_bytes(header.get(16..18)?.try_into().ok()?);
    // A page size of 64 KiB does not fit into the field and is written as 1.
    let page_bytes = if page_bytes == 1 { 1 << 16 } else { u64::from(page_bytes) };
    let (change_counter, counter_at_page_count) = (read_u32(24)?, read_u32(92)?);
    // A count that an old version of SQLite left behind is invalid.
    (change_counter == counter_at_page_count).then_some(page_bytes * u64::from(read_u32(28)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the header of a database with this number of pages.
    fn header(page_bytes: u16, page_count: u32) -> Vec<u8> {
        let mut header = vec![0; HEADER_BYTES];
        header[16..18].copy_from_slice(&page_bytes.to_be_bytes());
        header[28..32].copy_from_slice(&page_count.to_be_bytes());
        header
    }

    #[test]
    fn the_database_header_gives_the_expected_file_size() {
        assert_eq!(length_from_header(&header(4096, 3)), Some(12_288));
        assert_eq!(length_from_header(&header(1, 2)), Some(131_072));
        let mut stale = header(4096, 3);
        stale[24] = 1;
        assert_eq!((length_from_header(&stale), length_from_header(&[0; 40])), (None, None));
    }

    /// A crash during the creation of the database leaves such a file.
    #[test]
    fn a_short_database_is_damaged_unless_its_log_exists() {
        for extension in LOG_EXTENSIONS {
            let folder = tempfile::tempdir().unwrap();
            let database = folder.path().join("ledger.db");
            fs::write(&database, header(4096, 1)).unwrap();
            assert!(matches!(check_file_length(&database), Err(StoreError::Damaged { .. })));
            fs::write(database.with_extension(extension), "something").unwrap();
            check_file_length(&database).unwrap();
        }
    }
}
