//! Opening the database: how SQLite is set, the tables, the instance.

use std::path::Path;
use std::time::Duration;

use sha2::{Digest, Sha256};
use uuid::Uuid;

use super::column::Columns;
use super::sql::{self, Access, Connection, Readers};
use super::{Durability, Instance, StoreError, steps};

/// How long a statement waits for a lock of the database.
const BUSY: Duration = Duration::from_secs(5);

/// The write-ahead log is cut back to this many bytes.
const LOG_BYTES: u32 = 67_108_864;

/// Opens the connection of the writer, and brings the tables to this release.
pub(super) fn writer(database: &Path, durability: Durability) -> Result<Connection, StoreError> {
    let synchronous = match durability {
        Durability::Process => "NORMAL",
        Durability::Power => "FULL",
    };
    let mut connection = Connection::open(database, Access::Write, BUSY)?;
    // How it is vacuumed can be said only before its first page is written.
    connection.batch(&format!(
        "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; \
         PRAGMA synchronous = {synchronous}; PRAGMA foreign_keys = ON; \
         PRAGMA journal_size_limit = {LOG_BYTES};"
    ))?;
    steps::take(&mut connection, &steps::STEPS)?;
    Ok(connection)
}

/// Folds the write-ahead log into the database, as far as nobody has to wait for that.
pub(super) fn fold(database: &Path) -> sql::Result<()> {
    let mut connection = Connection::open(database, Access::Known, BUSY)?;
    connection.batch("PRAGMA wal_checkpoint(PASSIVE)")?;
    connection.close()
}

/// Opens the readers. The writer's connection must be open.
pub(super) fn readers(database: &Path) -> sql::Result<Readers> {
    Readers::open(database, BUSY)
}

/// Reads who this database is; decides it, the first time.
pub(super) async fn instance(connection: &mut Connection) -> sql::Result<Instance> {
    sql::query("INSERT INTO instance (number, id, key) VALUES (1, $1, $2) ON CONFLICT DO NOTHING")
        .bind(Uuid::new_v4())
        .bind(random_key().as_slice())
        .execute(&mut *connection)
        .await?;
    let row = sql::query("SELECT id, key FROM instance").fetch_one(connection).await?;
    let columns = Columns(&row);
    Ok(Instance { id: columns.uuid("id")?, key: columns.bytes("key")? })
}

/// Draws a key. Each of the hashed ids has 122 random bits from the system.
fn random_key() -> [u8; 32] {
    let mut hash = Sha256::new();
    for _ in 0..4 {
        hash.update(Uuid::new_v4());
    }
    hash.finalize().into()
}
