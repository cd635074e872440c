//! Numbered events of an execution.

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::execution::event::Event;
use algonius_actors::model::id::ExecutionId;

use crate::engine::row_codec::{Columns, micros, saturating_i64, to_json};
use crate::engine::sql::{self, DatabaseConnection, ReaderPool};

const INSERT: &str = "
    INSERT INTO events (execution, number, turn, attempt, at, kind, body)
    VALUES ($1, $2, $3, $4, $5, $6, $7)";

const SELECT_AFTER: &str = "
    SELECT number, at, body FROM events WHERE execution = $1 AND number > $2
    ORDER BY number LIMIT $3";

/// Stores one event.
pub(crate) async fn insert(
    connection: &mut DatabaseConnection,
    id: ExecutionId,
    attempt_id: AttemptId,
    event: &Event,
) -> sql::Result<()> {
    let body = to_json(&event.data)?;
    sql::statement(INSERT)
        .bind(id.0)
        .bind(saturating_i64(event.number))
        .bind(i64::from(attempt_id.turn))
        .bind(i64::from(attempt_id.attempt))
        .bind(micros(event.at))
        .bind(kind_from_json(&body))
        .bind(body)
        .execute(connection)
        .await?;
    Ok(())
}

/// Returns the kind of the event, which is the first member of its JSON.
fn kind_from_json(body: &str) -> String {
    let rest = body.strip_prefix(r#"{"kind":""#).unwrap_or_default();
    rest.split('"').next().unwrap_or_default().to_owned()
}

/// Reads the events after a number, in order.
pub(crate) async fn read_after(
    pool: &ReaderPool,
    id: ExecutionId,
    after: u64,
) -> sql::Result<Vec<Event>> {
    read(pool, id, after, -1).await // To SQLite, no limit.
}

/// Reads a limited number of events after a number, in order.
pub(crate) async fn read_page_after(
    pool: &ReaderPool,
    id: ExecutionId,
    after: u64,
    limit: u32,
) -> sql::Result<Vec<Event>> {
    read(pool, id, after, limit.into()).await
}

async fn read(
    pool: &ReaderPool,
    id: ExecutionId,
    after: u64,
    limit: i64,
) -> sql::Result<Vec<Event>> {
    let rows = sql::statement(SELECT_AFTER)
        .bind(id.0)
        .bind(saturating_i64(after))
        .bind(limit)
        .fetch_all(pool)
        .await?;
    let event = |columns: Columns<'_>| {
        Ok(Event {
            number: columns.number("number")?,
            at: columns.time("at")?,
            data: columns.json("body")?,
        })
    };
    rows.iter().map(|row| event(Columns(row))).collect()
}

#[cfg(test)]
mod tests {
    use algonius_actors::model::execution::event::{EventKind, TextChannel};

    use super::*;

    #[test]
    fn the_event_kind_is_read_from_the_start_of_its_json() {
        let truncated = EventKind::OutputTruncated { channel: TextChannel::Stdout, dropped: 7 };
        let warned = EventKind::Warning { message: r#""kind":"process-started""#.to_owned() };
        for event in [EventKind::ProcessStarted { pid: 7 }, truncated, warned] {
            let value = serde_json::to_value(&event).unwrap();
            assert_eq!(kind_from_json(&to_json(&event).unwrap()), value["kind"].as_str().unwrap());
        }
    }
}
