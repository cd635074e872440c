//! The numbered stream of what happened in an execution.

use algonius_actors::model::event::Event;
use algonius_actors::model::execution::Stamp;
use algonius_actors::model::id::ExecutionId;

use super::column::{Columns, integer, json, micros};
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
    let body = json(&event.fact)?;
    sql::query(INSERT)
        .bind(id.0)
        .bind(integer(event.number))
        .bind(i64::from(stamp.turn))
        .bind(i64::from(stamp.attempt))
        .bind(micros(event.at))
        .bind(kind(&body))
        .bind(body)
        .execute(connection)
        .await?;
    Ok(())
}

/// What kind of fact it is: the first that its JSON says.
fn kind(body: &str) -> String {
    let rest = body.strip_prefix(r#"{"kind":""#).unwrap_or_default();
    rest.split('"').next().unwrap_or_default().to_owned()
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

#[cfg(test)]
mod tests {
    use algonius_actors::model::event::{Channel, Fact};

    use super::*;

    #[test]
    fn the_kind_of_a_fact_is_the_first_that_its_json_says() {
        let truncated = Fact::Truncated { channel: Channel::Stdout, dropped: 7 };
        let warned = Fact::Warned { message: r#""kind":"spawned""#.to_owned() };
        for fact in [Fact::Spawned { pid: 7 }, truncated, warned] {
            let told = serde_json::to_value(&fact).unwrap();
            assert_eq!(kind(&json(&fact).unwrap()), told["kind"].as_str().unwrap());
        }
    }
}
