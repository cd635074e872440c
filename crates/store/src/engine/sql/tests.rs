//! Tests of statements, values and rows on a separate database.

use std::time::Duration;

use rusqlite::StatementStatus;
use tempfile::TempDir;

use super::{AccessMode, DatabaseConnection, Error, ReaderPool, SqlRow, statement};

const TABLE: &str = "
    CREATE TABLE words (id INTEGER PRIMARY KEY, word TEXT, worth INTEGER);
    INSERT INTO words VALUES (1, 'one', 10), (2, 'two', NULL), (3, 'three', 30);";

fn open_words_database() -> (TempDir, DatabaseConnection) {
    let folder = TempDir::new().unwrap();
    let mut connection = DatabaseConnection::open(
        &folder.path().join("words.db"),
        AccessMode::OpenOrCreate,
        Duration::ZERO,
    )
    .unwrap();
    connection.execute_batch(TABLE).unwrap();
    (folder, connection)
}

fn words(rows: &[SqlRow]) -> Vec<&str> {
    rows.iter().map(|row| row.get("word").unwrap()).collect()
}

#[test]
fn a_parameter_is_bound_at_each_of_its_places() {
    let (_folder, mut connection) = open_words_database();
    let text = "SELECT word FROM words WHERE id > $2 AND worth >= $1 AND id <> $2 ORDER BY id";
    let rows = connection.fetch_all(&statement(text).bind(5).bind(1)).unwrap();
    assert_eq!(words(&rows), ["three"]);
    let mut in_statement = statement("SELECT word FROM words WHERE id IN (");
    in_statement.push_list(["3", "1"].map(str::to_owned)).push(") ORDER BY id DESC");
    assert_eq!(words(&connection.fetch_all(&in_statement).unwrap()), ["three", "one"]);
    let error = connection.fetch_all(&statement(text).bind(5)).unwrap_err();
    assert!(matches!(error, Error::Encode(_)), "{error}");
}

#[test]
fn a_column_of_another_type_cannot_be_decoded() {
    let (_folder, mut connection) = open_words_database();
    let rows = connection.fetch_all(&statement("SELECT * FROM words ORDER BY id")).unwrap();
    assert_eq!(rows[1].get::<Option<i64>>("worth").unwrap(), None);
    for result in [rows[1].get::<i64>("worth").map(drop), rows[0].get::<&str>("price").map(drop)] {
        assert!(matches!(result, Err(Error::Decode(_))), "{result:?}");
    }
}

/// By default SQLite uses bound values when it plans a query.
#[test]
fn a_statement_is_prepared_once_for_all_parameters() {
    let (_folder, mut connection) = open_words_database();
    let text = "SELECT word FROM words WHERE id > $2 ORDER BY id LIMIT $1";
    for limit in [1, 2, 3, 1] {
        let rows = connection.fetch_all(&statement(text).bind(limit).bind(0)).unwrap();
        assert_eq!(rows.len() as i64, limit);
    }
    let statement = connection.inner.prepare_cached(text).unwrap();
    assert_eq!(statement.get_status(StatementStatus::RePrepare), 0);
    assert_eq!(statement.get_status(StatementStatus::Run), 4);
}

#[tokio::test]
async fn readers_work_in_parallel_and_are_gone_after_the_close() {
    let (folder, mut connection) = open_words_database();
    connection
        .execute_batch("PRAGMA journal_mode = WAL; BEGIN IMMEDIATE; DELETE FROM words")
        .unwrap();
    let readers = ReaderPool::open(&folder.path().join("words.db"), Duration::ZERO).unwrap();
    let select_all = || statement("SELECT word FROM words ORDER BY id");
    for query in [select_all(), select_all().mark_long_running()] {
        let rows = query.fetch_all(&readers).await.unwrap();
        assert_eq!(words(&rows), ["one", "two", "three"]);
    }
    let [first, second] = readers.read_snapshot([select_all(), select_all()]).await.unwrap();
    assert_eq!(words(&first), words(&second));
    readers.close().await;
    for query in [select_all(), select_all().mark_long_running()] {
        let error = query.fetch_all(&readers).await.unwrap_err();
        assert!(matches!(error, Error::Unavailable(_)), "{error}");
    }
}
