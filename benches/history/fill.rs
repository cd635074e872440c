//! Fills the ledger of a service with copies of an execution that the service made itself.

use std::path::Path;

use rusqlite::{Connection, params};

/// Columns that differ between the executions; `i` counts them, one per second up to the template's.
const VARIED_COLUMNS: [(&str, &str); 8] = [
    ("id", "unhex(printf('%012x7%03x8%015x', ?2 + i * 1000, i & 4095, i))"),
    ("request_key", "randomblob(32)"),
    ("message", "'message-' || i"),
    ("context", "'context-' || (i / 8)"),
    ("accepted_at", "(?2 + i * 1000) * 1000"),
    ("started_at", "(?2 + i * 1000) * 1000 + 900"),
    ("changed_at", "(?2 + i * 1000) * 1000 + 250000"),
    ("ended_at", "(?2 + i * 1000) * 1000 + 250000"),
];

/// Inserts this many finished executions before the existing one.
pub(crate) fn insert_executions(database: &Path, count: i64) {
    let ledger = Connection::open(database).expect("the ledger");
    let (template_id, accepted_at) = template_execution(&ledger);
    let statement = insert_statement(&stored_columns(&ledger));
    let oldest_ms = accepted_at / 1000 - (count + 1) * 1000;
    let rows = ledger.execute(&statement, params![count, oldest_ms, template_id]).expect("rows");
    assert_eq!(i64::try_from(rows).ok(), Some(count));
    ledger.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").expect("a fold");
    ledger.close().expect("an end");
}

fn template_execution(ledger: &Connection) -> (Vec<u8>, i64) {
    let text = "SELECT id, accepted_at FROM executions WHERE outcome IS NOT NULL";
    let row = ledger.query_row(text, [], |row| Ok((row.get(0)?, row.get(1)?)));
    row.expect("one that the service made")
}

/// Returns the stored columns, without generated ones.
fn stored_columns(ledger: &Connection) -> Vec<String> {
    let text = "SELECT name FROM pragma_table_xinfo('executions') WHERE hidden = 0";
    let mut statement = ledger.prepare(text).expect("columns");
    let names = statement.query_map([], |row| row.get(0)).expect("columns");
    names.collect::<Result<_, _>>().expect("names")
}

fn insert_statement(columns: &[String]) -> String {
    let value = |column: &String| {
        let varied = VARIED_COLUMNS.iter().find(|(name, _)| name == column);
        varied.map_or_else(|| format!("t.{column}"), |(_, text)| (*text).to_owned())
    };
    let values: Vec<_> = columns.iter().map(value).collect();
    format!(
        "INSERT INTO executions ({}) WITH RECURSIVE n(i) AS \
         (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1) \
         SELECT {} FROM n, executions t WHERE t.id = ?3",
        columns.join(", "),
        values.join(", ")
    )
}
