//! Tables of the ledger, the check that a database has those of this release, and the steps from earlier versions.

use super::StoreError;
use super::engine::row_codec::Columns;
use super::engine::sql::{self, DatabaseConnection};

/// Tables and indexes. A release that changes them raises [`SCHEMA_VERSION`] and adds the step from the version before.
const CREATE_TABLES: &str = include_str!("schema/sqlite.sql");

/// Steps to the next version of the tables, each with the version before, the earliest first.
const UPGRADE_STEPS: &[(i64, &str)] = &[
    (2, include_str!("schema/from_2.sql")),
    (3, include_str!("schema/from_3.sql")),
    (4, include_str!("schema/from_4.sql")),
];

/// Version of the tables, which the database keeps in `user_version`.
const SCHEMA_VERSION: i64 = 5;

/// `application_id` of the database: `algo` in ASCII.
const APPLICATION_ID: i64 = 0x616c_676f;

/// Tables of a database, compared with those of this release.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TablesState {
    /// The database has no tables.
    Missing,
    /// The database has the tables of this release.
    Current,
    /// The database has the tables of this earlier version, which this release upgrades.
    Earlier(i64),
}

/// Compares the tables of a database with those of this release. Changes nothing.
///
/// # Errors
/// Returns [`StoreError::EarlierBuild`] or [`StoreError::IncompatibleSchema`] if this release cannot use the tables.
pub(super) fn detect_tables_state(
    connection: &mut DatabaseConnection,
) -> Result<TablesState, StoreError> {
    let table_count_sql = "(SELECT count(*) FROM sqlite_schema)";
    let sqlx_table_count_sql =
        "(SELECT count(*) FROM sqlite_schema WHERE name = '_sqlx_migrations')";
    let application_id =
        select_number(connection, "(SELECT application_id FROM pragma_application_id)")?;
    let version = select_number(connection, "(SELECT user_version FROM pragma_user_version)")?;
    if select_number(connection, table_count_sql)? == 0 {
        return Ok(TablesState::Missing);
    }
    if select_number(connection, sqlx_table_count_sql)? > 0 {
        return Err(StoreError::EarlierBuild);
    }
    let difference = match (application_id, version) {
        (APPLICATION_ID, SCHEMA_VERSION) => return Ok(TablesState::Current),
        (APPLICATION_ID, version) if UPGRADE_STEPS.iter().any(|(from, _)| *from == version) => {
            return Ok(TablesState::Earlier(version));
        }
        (APPLICATION_ID, version) => {
            format!(
                "they have version {version}, and this release knows version {SCHEMA_VERSION} only"
            )
        }
        _ => "another program wrote them".to_owned(),
    };
    Err(StoreError::IncompatibleSchema { difference })
}

/// Creates all tables in one transaction, so that a crash leaves an empty database.
pub(super) fn create(connection: &mut DatabaseConnection) -> sql::Result<()> {
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {SCHEMA_VERSION}; \
         {CREATE_TABLES} COMMIT"
    ))
}

/// Upgrades tables of an earlier version in one transaction. No row is lost.
pub(super) fn upgrade(connection: &mut DatabaseConnection, version: i64) -> sql::Result<()> {
    let steps: String = UPGRADE_STEPS
        .iter()
        .filter(|(from, _)| *from >= version)
        .map(|(_, statements)| *statements)
        .collect();
    connection.execute_batch(&format!(
        "BEGIN IMMEDIATE; {steps} PRAGMA user_version = {SCHEMA_VERSION}; COMMIT"
    ))
}

fn select_number(connection: &mut DatabaseConnection, expression: &str) -> sql::Result<i64> {
    let text = format!("SELECT {expression} AS number");
    let rows = connection.fetch_all(&sql::statement(text))?;
    rows.first().map_or(Ok(0), |row| Columns(row).get("number"))
}
