//! The steps from an empty database to the tables of this release, each taken once and noted.

use sha2::{Digest, Sha384};

use super::StoreError;
use super::column::Columns;
use super::sql::{self, Connection};

/// A step: its number, what it is for, its statements.
pub(super) type Step = (i64, &'static str, &'static str);

/// The steps to the tables of this release, in their order.
pub(super) const STEPS: [Step; 14] = [
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
    (14, "cursors", include_str!("migrations/sqlite/0014_cursors.sql")),
];

/// The table that notes them. Its name and columns are those of the first release.
const NOTES: &str = "
    CREATE TABLE IF NOT EXISTS _sqlx_migrations (
        version BIGINT PRIMARY KEY,
        description TEXT NOT NULL,
        installed_on TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
        success BOOLEAN NOT NULL,
        checksum BLOB NOT NULL,
        execution_time BIGINT NOT NULL
    )";

const NOTE: &str = "
    INSERT INTO _sqlx_migrations (version, description, success, checksum, execution_time)
    VALUES ($1, $2, TRUE, $3, 0)";

/// Takes the steps that were not taken yet, each in a transaction of its own.
///
/// # Errors
/// When the database was brought further by a later release, or by other steps than these.
pub(super) fn take(connection: &mut Connection, steps: &[Step]) -> Result<(), StoreError> {
    connection.batch(NOTES)?;
    let taken = taken(connection)?;
    for (number, sum, is_whole) in &taken {
        let step = steps.iter().find(|(known, _, _)| known == number);
        let why = match step {
            None => "was taken by a later release",
            Some(_) if !is_whole => "was begun and not ended",
            Some((_, _, text)) if self::sum(text) != *sum => "is another one in this release",
            Some(_) => continue,
        };
        return Err(StoreError::Tables { why: format!("step {number} {why}") });
    }
    for step in steps.iter().filter(|(number, _, _)| !taken.iter().any(|(it, _, _)| it == number)) {
        apply(connection, step)?;
    }
    Ok(())
}

/// The number, the sum of the text and the success of each step that was taken.
fn taken(connection: &mut Connection) -> sql::Result<Vec<(i64, Vec<u8>, bool)>> {
    let text = "SELECT version, checksum, success FROM _sqlx_migrations ORDER BY version";
    let rows = connection.read(&sql::query(text))?;
    let note = |columns: Columns<'_>| {
        let (number, sum) = (columns.plain("version")?, columns.plain("checksum")?);
        Ok((number, sum, columns.plain("success")?))
    };
    rows.iter().map(|row| note(Columns(row))).collect()
}

/// One that fails leaves nothing: the transaction ends with the connection, which is given up.
fn apply(connection: &mut Connection, (number, name, text): &Step) -> sql::Result<()> {
    connection.batch("BEGIN IMMEDIATE")?;
    connection.batch(text)?;
    connection.change(&sql::query(NOTE).bind(*number).bind(*name).bind(sum(text).as_slice()))?;
    connection.batch("COMMIT")
}

fn sum(text: &str) -> Vec<u8> {
    Sha384::digest(text).to_vec()
}
