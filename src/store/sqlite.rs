//! Opening the database: how SQLite is set, the tables, the instance.

use std::path::Path;
use std::time::Duration;

use sha2::{Digest, Sha256};
use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::sqlite::{
    SqliteAutoVacuum, SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{ConnectOptions, SqlSafeStr, SqliteConnection, SqlitePool};
use uuid::Uuid;

use super::column::Columns;
use super::{Durability, Instance, StoreError};

/// How long a statement waits for a lock of the database.
const BUSY: Duration = Duration::from_secs(5);

/// How long a reader waits for a connection.
const PATIENCE: Duration = Duration::from_secs(10);

/// Connections of readers.
const READERS: u32 = 4;

/// The write-ahead log is cut back to this many bytes.
const LOG_BYTES: &str = "67108864";

/// Opens the connection of the writer, and brings the tables to this release.
pub(super) async fn writer(
    database: &Path,
    durability: Durability,
) -> Result<SqliteConnection, StoreError> {
    let synchronous = match durability {
        Durability::Process => SqliteSynchronous::Normal,
        Durability::Power => SqliteSynchronous::Full,
    };
    let options = options(database)
        .auto_vacuum(SqliteAutoVacuum::Incremental)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(synchronous)
        .foreign_keys(true)
        .pragma("journal_size_limit", LOG_BYTES);
    let mut connection = options.connect().await?;
    migrator(&STEPS).run_direct(None, &mut connection, false).await?;
    Ok(connection)
}

/// Opens the pool of readers. The writer's connection must be open.
pub(super) async fn readers(database: &Path) -> sqlx::Result<SqlitePool> {
    let pool = SqlitePoolOptions::new()
        .max_connections(READERS)
        .acquire_timeout(PATIENCE)
        .test_before_acquire(false);
    pool.connect_with(options(database).read_only(true)).await
}

fn options(database: &Path) -> SqliteConnectOptions {
    SqliteConnectOptions::new().filename(database).busy_timeout(BUSY).disable_statement_logging()
}

/// Reads who this database is; decides it, the first time.
pub(super) async fn instance(connection: &mut SqliteConnection) -> sqlx::Result<Instance> {
    sqlx::query("INSERT INTO instance (number, id, key) VALUES (1, $1, $2) ON CONFLICT DO NOTHING")
        .bind(Uuid::new_v4())
        .bind(random_key().as_slice())
        .execute(&mut *connection)
        .await?;
    let row = sqlx::query("SELECT id, key FROM instance").fetch_one(connection).await?;
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

/// The steps to the tables of this release, in their order.
pub(super) const STEPS: [(i64, &str, &str); 13] = [
    (1, "ledger", include_str!("migrations/sqlite/0001_ledger.sql")),
    (2, "push targets", include_str!("migrations/sqlite/0002_push_targets.sql")),
    (3, "request keys", include_str!("migrations/sqlite/0003_request_keys.sql")),
    (4, "overrides", include_str!("migrations/sqlite/0004_overrides.sql")),
    (5, "equal requests", include_str!("migrations/sqlite/0005_equal_requests.sql")),
    (6, "workspaces", include_str!("migrations/sqlite/0006_workspaces.sql")),
    (7, "schedules", include_str!("migrations/sqlite/0007_schedules.sql")),
    (8, "history", include_str!("migrations/sqlite/0008_history.sql")),
    (9, "retention", include_str!("migrations/sqlite/0009_retention.sql")),
    (10, "traces", include_str!("migrations/sqlite/0010_traces.sql")),
    (11, "sessions", include_str!("migrations/sqlite/0011_sessions.sql")),
    (12, "quota", include_str!("migrations/sqlite/0012_quota.sql")),
    (13, "many", include_str!("migrations/sqlite/0013_many.sql")),
];

pub(super) fn migrator(steps: &'static [(i64, &'static str, &'static str)]) -> Migrator {
    let step = |(number, name, sql): &(i64, &'static str, &'static str)| {
        Migration::new(*number, (*name).into(), MigrationType::Simple, sql.into_sql_str(), false)
    };
    Migrator::with_migrations(steps.iter().map(step).collect())
}
