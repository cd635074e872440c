//! Whether the file of the database is as long as it says: SQLite finds a missing end only when it
//! needs it, which may be in the middle of the work.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use super::StoreError;

/// The head of a database of SQLite.
const HEAD: usize = 100;

/// What SQLite mends a database from, which is made in one way and used in another.
const LOGS: [&str; 2] = ["db-wal", "db-journal"];

/// Looks at the file. One with a log beside it is left to SQLite: what is missing may be there.
///
/// # Errors
/// When it is too short.
pub(super) fn check(database: &Path) -> Result<(), StoreError> {
    let is_there =
        |log: &&str| fs::metadata(database.with_extension(log)).is_ok_and(|it| it.len() > 0);
    if LOGS.iter().any(is_there) {
        return Ok(());
    }
    let fault = |source| StoreError::Directory {
        folder: database.parent().unwrap_or(database).to_owned(),
        source,
    };
    match missing(database).map_err(fault)? {
        0 => Ok(()),
        bytes => Err(StoreError::Damaged {
            file: database.to_owned(),
            source: format!("its last {bytes} bytes are missing").into(),
        }),
    }
}

/// How many bytes the file lacks of what its head promises.
fn missing(database: &Path) -> io::Result<u64> {
    let (file, mut head) = (File::open(database)?, Vec::with_capacity(HEAD));
    let length = file.metadata()?.len();
    file.take(HEAD as u64).read_to_end(&mut head)?;
    Ok(promised(&head).unwrap_or_default().saturating_sub(length))
}

/// The length of a database by its head; `None` where that does not say.
fn promised(head: &[u8]) -> Option<u64> {
    let four = |at: usize| Some(u32::from_be_bytes(head.get(at..at + 4)?.try_into().ok()?));
    let page = u16::from_be_bytes(head.get(16..18)?.try_into().ok()?);
    // A page of 64 KiB does not fit the number, and is written as 1.
    let page = if page == 1 { 1 << 16 } else { u64::from(page) };
    let (changes, counted_at) = (four(24)?, four(92)?);
    // A count that an old SQLite has left behind says nothing.
    (changes == counted_at).then_some(page * u64::from(four(28)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The head of a database of so many pages.
    fn head(page: u16, pages: u32) -> Vec<u8> {
        let mut head = vec![0; HEAD];
        head[16..18].copy_from_slice(&page.to_be_bytes());
        head[28..32].copy_from_slice(&pages.to_be_bytes());
        head
    }

    #[test]
    fn a_head_promises_pages_of_its_size_and_65536_is_written_as_1() {
        assert_eq!(promised(&head(4096, 3)), Some(12_288));
        assert_eq!(promised(&head(1, 2)), Some(131_072));
        let mut stale = head(4096, 3);
        stale[24] = 1;
        assert_eq!((promised(&stale), promised(&[0; 40])), (None, None));
    }

    /// As a crash leaves it that comes while the database is made.
    #[test]
    fn a_short_database_is_damaged_unless_something_beside_it_mends_it() {
        for log in LOGS {
            let folder = tempfile::tempdir().unwrap();
            let database = folder.path().join("ledger.db");
            fs::write(&database, head(4096, 1)).unwrap();
            assert!(matches!(check(&database), Err(StoreError::Damaged { .. })));
            fs::write(database.with_extension(log), "something").unwrap();
            check(&database).unwrap();
        }
    }
}
