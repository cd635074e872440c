//! Errors of the store and their conversion into errors of the port.

use std::error::Error;
use std::io;
use std::path::{Path, PathBuf};

use algonius_actors::ports::ledger::LedgerError;

use super::sql;

/// Error at the opening of the store. Each message completes the sentence "the store was not opened: ...".
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// Another daemon uses the directory. Two daemons would run everything twice.
    #[error(
        "data directory `{}` is used by another supervisor; stop that one, or give this one a \
         directory of its own", folder.display()
    )]
    Locked {
        /// The data directory.
        folder: PathBuf,
    },

    /// A file or directory cannot be created or opened.
    #[error("data directory `{}` cannot be used", folder.display())]
    Directory {
        /// The data directory.
        folder: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },

    /// The database is truncated, or the file is not a database.
    #[error(
        "the ledger `{}` is damaged; put a copy of it in its place, or move it away with its `-wal` \
         and `-shm` to begin with an empty one", file.display()
    )]
    Damaged {
        /// Path of the database file.
        file: PathBuf,
        /// Cause of the error.
        source: Box<dyn Error + Send + Sync>,
    },

    /// The database cannot be opened or read.
    #[error("the database cannot be opened")]
    Database {
        /// Cause of the error.
        source: Box<dyn Error + Send + Sync>,
    },

    /// A build from before the first release wrote the data directory. Its tables are not converted.
    #[error(
        "a build from before the first release wrote the data directory; move the directory away or delete it, and \
         the service creates a new one at its next start"
    )]
    EarlierBuild,

    /// Another release or another program wrote the tables.
    #[error("the tables of the database do not fit this release: {difference}")]
    IncompatibleSchema {
        /// Difference, as a clause.
        difference: String,
    },
}

/// SQLite error numbers of a damaged file and of a file that is not a database.
const DAMAGE_CODES: [i32; 2] = [11, 26];

impl StoreError {
    /// Returns the error for this database: `Damaged` if damage is the cause, otherwise the error itself.
    pub(crate) fn classify_damage(self, database: &Path) -> Self {
        let mut cause: Option<&(dyn Error + 'static)> = Some(&self);
        while let Some(error) = cause {
            if error.downcast_ref::<sql::Error>().is_some_and(is_damage) {
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

fn is_damage(error: &sql::Error) -> bool {
    error.extended_code().is_some_and(|code| DAMAGE_CODES.contains(&(code & 0xff)))
}

/// Creates the error of a row with invalid content.
pub(crate) fn decode_error(
    cause: impl Into<Box<dyn std::error::Error + Send + Sync>>,
) -> sql::Error {
    sql::Error::Decode(cause.into())
}

/// Converts an error of the database into an error of the port.
pub(crate) fn ledger_error(error: sql::Error) -> LedgerError {
    let cause = error.to_string();
    match error {
        sql::Error::Decode(_) => LedgerError::Unreadable { cause },
        sql::Error::Engine(_) | sql::Error::Encode(_) | sql::Error::Unavailable(_) => {
            LedgerError::Unavailable { cause }
        }
    }
}

/// Returns the error of a call after the store was closed.
pub(crate) fn closed_error() -> LedgerError {
    LedgerError::Unavailable { cause: "the store is closed".to_owned() }
}
