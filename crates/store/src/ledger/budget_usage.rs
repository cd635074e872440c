//! Amounts that each agent has used on each day: one row, which grows in the same commit as the event.

use std::collections::BTreeMap;

use algonius_actors::model::agent::budget::Charge;
use algonius_actors::model::id::AgentId;
use chrono::NaiveDate;

use crate::engine::error::decode_error;
use crate::engine::row_codec::{Columns, saturating_i64};
use crate::engine::sql::{self, DatabaseConnection, ReaderPool};

const UPSERT_USAGE: &str = "
    INSERT INTO spending (agent, day, turns, input_tokens, output_tokens, cached_input_tokens,
        cost_micros, wall_ms)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
    ON CONFLICT (agent, day) DO UPDATE SET
        turns = min(turns + excluded.turns, 4611686018427387903),
        input_tokens = min(input_tokens + excluded.input_tokens, 4611686018427387903),
        output_tokens = min(output_tokens + excluded.output_tokens, 4611686018427387903),
        cached_input_tokens = min(cached_input_tokens + excluded.cached_input_tokens, 4611686018427387903),
        cost_micros = min(cost_micros + excluded.cost_micros, 4611686018427387903),
        wall_ms = min(wall_ms + excluded.wall_ms, 4611686018427387903)";

/// Adds to the amounts of an agent on a day.
pub(crate) async fn add(
    connection: &mut DatabaseConnection,
    agent: &str,
    day: NaiveDate,
    charge: &Charge,
) -> sql::Result<()> {
    sql::statement(UPSERT_USAGE)
        .bind(agent)
        .bind(day.to_string())
        .bind(saturating_i64(charge.turns))
        .bind(saturating_i64(charge.input_tokens))
        .bind(saturating_i64(charge.output_tokens))
        .bind(saturating_i64(charge.cached_input_tokens))
        .bind(saturating_i64(charge.cost_micros))
        .bind(saturating_i64(charge.wall_ms))
        .execute(connection)
        .await?;
    Ok(())
}

/// Reads the amounts of an agent on a day.
pub(crate) async fn read(
    pool: &ReaderPool,
    agent: &AgentId,
    day: NaiveDate,
) -> sql::Result<Charge> {
    let row = sql::statement("SELECT * FROM spending WHERE agent = $1 AND day = $2")
        .bind(agent.as_str())
        .bind(day.to_string())
        .fetch_optional(pool)
        .await?;
    row.map_or(Ok(Charge::default()), |row| read_charge(Columns(&row)))
}

/// Reads the amounts of all agents on some days.
pub(crate) async fn read_all(
    pool: &ReaderPool,
    days: &[NaiveDate],
) -> sql::Result<BTreeMap<(AgentId, NaiveDate), Charge>> {
    let mut charges = BTreeMap::new();
    for day in days {
        let query = sql::statement("SELECT * FROM spending WHERE day = $1").bind(day.to_string());
        for row in query.fetch_all(pool).await? {
            let agent = AgentId::new(Columns(&row).get::<&str>("agent")?).map_err(decode_error)?;
            charges.insert((agent, *day), read_charge(Columns(&row))?);
        }
    }
    Ok(charges)
}

fn read_charge(columns: Columns<'_>) -> sql::Result<Charge> {
    Ok(Charge {
        turns: columns.number("turns")?,
        input_tokens: columns.number("input_tokens")?,
        output_tokens: columns.number("output_tokens")?,
        cached_input_tokens: columns.number("cached_input_tokens")?,
        cost_micros: columns.number("cost_micros")?,
        wall_ms: columns.number("wall_ms")?,
    })
}
