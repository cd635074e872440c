//! The numbered stream of what happened in an execution.

use algonius_actors::model::event::Event;
use algonius_actors::model::execution::Stamp;
use algonius_actors::model::id::ExecutionId;

use super::column::{Columns, integer, micros};
use super::sql::{self, Connection, Readers};

const INSERT: &str = "
    INSERT INTO events (execution, number, turn, attempt, at, kind, body)
    VALUES ($1, $2, $3, $4, $5, $6, $7)";

const AFTER: &str = "
    SELECT number, at, body FROM events WHERE execution = $1 AND number > $2
    ORDER BY number LIMIT $3";

/// Stores one event.
pub(super) async fn insert(
    connection: &mut Connection,
    id: ExecutionId,
    stamp: Stamp,
    event: &Event,
) -> sql::Result<()> {
    let encode = |error: serde_json::Error| sql::Error::Encode(error.into());
    let body = serde_json::to_value(&event.fact).map_err(encode)?;
    let kind = body.get("kind").and_then(serde_json::Value::as_str).unwrap_or_default();
    sql::query(INSERT)
        .bind(id.0)
        .bind(integer(event.number))
        .bind(i64::from(stamp.turn))
        .bind(i64::from(stamp.attempt))
        .bind(micros(event.at))
        .bind(kind)
        .bind(body.to_string())
        .execute(connection)
        .await?;
    Ok(())
}

/// Reads the events after a number, in order.
pub(super) async fn after(pool: &Readers, id: ExecutionId, after: u64) -> sql::Result<Vec<Event>> {
    read(pool, id, after, -1).await // To SQLite, no limit.
}

/// Reads at most so many events after a number, in order.
pub(super) async fn some_after(
    pool: &Readers,
    id: ExecutionId,
    after: u64,
    most: u32,
) -> sql::Result<Vec<Event>> {
    read(pool, id, after, most.into()).await
}

async fn read(pool: &Readers, id: ExecutionId, after: u64, most: i64) -> sql::Result<Vec<Event>> {
    let rows = sql::query(AFTER).bind(id.0).bind(integer(after)).bind(most).fetch_all(pool).await?;
    let event = |columns: Columns<'_>| {
        Ok(Event {
            number: columns.number("number")?,
            at: columns.time("at")?,
            fact: columns.json("body")?,
        })
    };
    rows.iter().map(|row| event(Columns(row))).collect()
}
