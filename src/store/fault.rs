//! What can go wrong with the store, and what of it the port may tell.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use super::sql;

use algonius_actors::ports::ledger::LedgerError;

/// Each message completes the sentence "the store was not opened: ...".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Two daemons on one directory would run everything twice.
    #[error(
        "data directory `{}` is used by another supervisor; stop that one, or give this one a \
         directory of its own", folder.display()
    )]
    Locked {
        /// The data directory.
        folder: PathBuf,
    },

    /// A file or folder could not be made or opened.
    #[error("data directory `{}` cannot be used", folder.display())]
    Directory {
        /// The data directory.
        folder: PathBuf,
        /// Why.
        source: io::Error,
    },

    /// The database is cut, or is none.
    #[error(
        "the ledger `{}` is damaged; put a copy of it in its place, or move it away with its `-wal` \
         and `-shm` to begin with an empty one", file.display()
    )]
    Damaged {
        /// The file of the database.
        file: PathBuf,
        /// What was seen of it.
        source: Box<dyn Error + Send + Sync>,
    },

    /// The database could not be opened or read.
    #[error("the database cannot be opened")]
    Database {
        /// Why.
        source: Box<dyn Error + Send + Sync>,
    },

    /// Its tables are damaged, or were made by a later release.
    #[error("the tables of the database do not fit this release: {why}")]
    Tables {
        /// What does not fit.
        why: String,
    },
}

/// What SQLite says of a file that is damaged, and of one that is no database.
const DAMAGED: [i32; 2] = [11, 26];

impl StoreError {
    /// The same, or that this database is damaged where that is why.
    pub(super) fn of(self, database: &Path) -> Self {
        let mut cause: Option<&(dyn Error + 'static)> = Some(&self);
        while let Some(error) = cause {
            if error.downcast_ref::<sql::Error>().is_some_and(says_damaged) {
                return Self::Damaged { file: database.to_owned(), source: Box::new(self) };
            }
            cause = error.source();
        }
        self
    }
}

impl From<sql::Error> for StoreError {
    fn from(error: sql::Error) -> Self {
        Self::Database { source: Box::new(error) }
    }
}

fn says_damaged(error: &sql::Error) -> bool {
    error.number().is_some_and(|number| DAMAGED.contains(&(number & 0xff)))
}

/// Says that a row is not what it should be.
pub(super) fn unreadable(cause: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> sql::Error {
    sql::Error::Decode(cause.into())
}

/// Tells what the port may tell of a fault.
pub(super) fn ledger_error(error: sql::Error) -> LedgerError {
    let cause = error.to_string();
    match error {
        sql::Error::Decode(_) => LedgerError::Unreadable { cause },
        sql::Error::Engine(_) | sql::Error::Encode(_) | sql::Error::Away(_) => {
            LedgerError::Unavailable { cause }
        }
    }
}

/// The answer to a call that comes after the end.
pub(super) fn closed() -> LedgerError {
    LedgerError::Unavailable { cause: "the store is closed".to_owned() }
}
