//! Opening of the database: the settings of SQLite, the tables and the identity of the instance.

use std::path::Path;

use uuid::Uuid;

use super::engine::row_codec::Columns;
use super::engine::sql::{self, AccessMode, BUSY_TIMEOUT, DatabaseConnection, ReaderPool};
use super::schema::TablesState;
use super::{Durability, InstanceIdentity, StoreError, schema};
use crate::seal::random_secret;

/// Size to which the write-ahead log is truncated, in bytes.
const MAX_WAL_BYTES: u32 = 67_108_864;

/// Opens the connection of the writer, and creates or upgrades its tables.
pub(super) fn open_writer(
    database: &Path,
    durability: Durability,
) -> Result<DatabaseConnection, StoreError> {
    let synchronous = match durability {
        Durability::ProcessCrash => "NORMAL",
        Durability::PowerFailure => "FULL",
    };
    let mut connection =
        DatabaseConnection::open(database, AccessMode::OpenOrCreate, BUSY_TIMEOUT)?;
    // Before the journal mode, which is stored in the file: a database that is refused stays as it is.
    let tables_state = schema::detect_tables_state(&mut connection)?;
    // SQLite accepts the vacuum mode only before the first page is written.
    connection.execute_batch(&format!(
        "PRAGMA auto_vacuum = INCREMENTAL; PRAGMA journal_mode = WAL; \
         PRAGMA synchronous = {synchronous}; PRAGMA foreign_keys = ON; \
         PRAGMA journal_size_limit = {MAX_WAL_BYTES};"
    ))?;
    match tables_state {
        TablesState::Missing => schema::create(&mut connection)?,
        TablesState::Earlier(version) => {
            tracing::info!(version, "upgrading the tables of the ledger");
            schema::upgrade(&mut connection, version)?;
        }
        TablesState::Current => {}
    }
    Ok(connection)
}

/// Opens the readers. The connection of the writer must be open.
pub(super) fn open_readers(database: &Path) -> sql::Result<ReaderPool> {
    ReaderPool::open(database, BUSY_TIMEOUT)
}

/// Reads the identity of the database; creates it at the first opening.
pub(super) async fn load_or_create_instance(
    connection: &mut DatabaseConnection,
) -> sql::Result<InstanceIdentity> {
    sql::statement(
        "INSERT INTO instance (number, id, key) VALUES (1, $1, $2) ON CONFLICT DO NOTHING",
    )
    .bind(Uuid::new_v4())
    .bind(random_secret().as_slice())
    .execute(&mut *connection)
    .await?;
    let row = sql::statement("SELECT id, key FROM instance").fetch_one(connection).await?;
    let columns = Columns(&row);
    Ok(InstanceIdentity { id: columns.uuid("id")?, key: columns.bytes("key")? })
}
