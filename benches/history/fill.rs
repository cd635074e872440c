//! Fills the ledger of a service with executions like one that it made itself.

use std::path::Path;

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{AssertSqlSafe, ConnectOptions, Connection, Row, SqliteConnection};

/// What differs from one execution to the next; `i` counts them, one a second up to the template's.
const OWN: [(&str, &str); 8] = [
    ("id", "unhex(printf('%012x7%03x8%015x', $2 + i * 1000, i & 4095, i))"),
    ("request_key", "randomblob(32)"),
    ("message", "'message-' || i"),
    ("context", "'context-' || (i / 8)"),
    ("accepted_at", "($2 + i * 1000) * 1000"),
    ("started_at", "($2 + i * 1000) * 1000 + 900"),
    ("changed_at", "($2 + i * 1000) * 1000 + 250000"),
    ("ended_at", "($2 + i * 1000) * 1000 + 250000"),
];

/// Puts so many finished executions before the one that is there.
pub(crate) async fn fill(database: &Path, count: i64) {
    let options = SqliteConnectOptions::new().filename(database).disable_statement_logging();
    let mut ledger = options.connect().await.expect("the ledger");
    let (id, at) = template(&mut ledger).await;
    let text = insert(&columns(&mut ledger).await);
    let begin = at / 1000 - (count + 1) * 1000;
    let filled = sqlx::query(AssertSqlSafe(text)).bind(count).bind(begin).bind(id);
    let rows = filled.execute(&mut ledger).await.expect("rows").rows_affected();
    assert_eq!(i64::try_from(rows).ok(), Some(count));
    sqlx::query("PRAGMA wal_checkpoint(TRUNCATE)").execute(&mut ledger).await.expect("a fold");
    ledger.close().await.expect("an end");
}

async fn template(ledger: &mut SqliteConnection) -> (Vec<u8>, i64) {
    let query = sqlx::query("SELECT id, accepted_at FROM executions WHERE outcome IS NOT NULL");
    let row = query.fetch_one(ledger).await.expect("one that the service made");
    (row.get("id"), row.get("accepted_at"))
}

/// The columns that are written, not computed.
async fn columns(ledger: &mut SqliteConnection) -> Vec<String> {
    let query = sqlx::query("SELECT name FROM pragma_table_xinfo('executions') WHERE hidden = 0");
    let rows = query.fetch_all(ledger).await.expect("columns");
    rows.iter().map(|row| row.get("name")).collect()
}

fn insert(columns: &[String]) -> String {
    let value = |column: &String| {
        let own = OWN.iter().find(|(name, _)| name == column);
        own.map_or_else(|| format!("t.{column}"), |(_, text)| (*text).to_owned())
    };
    let values: Vec<_> = columns.iter().map(value).collect();
    format!(
        "INSERT INTO executions ({}) WITH RECURSIVE n(i) AS \
         (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < $1) \
         SELECT {} FROM n, executions t WHERE t.id = $3",
        columns.join(", "),
        values.join(", ")
    )
}
