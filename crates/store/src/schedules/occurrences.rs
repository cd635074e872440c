//! Rows of the occurrences of schedules.

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::Outcome;
use algonius_actors::model::id::{AgentId, ExecutionId, PrincipalId, ScheduleId};
use algonius_actors::model::schedule::occurrence::{
    Occurrence, OccurrenceCause, OccurrenceEnd, OccurrenceQuery, OccurrenceStatus,
};
use chrono::{DateTime, Utc};

use crate::engine::error::decode_error;
use crate::engine::row_codec::{Columns, micros};
use crate::engine::sql::{self, DatabaseConnection, ReaderPool, SqlRow, SqlStatement};

const INSERT: &str = "
    INSERT INTO occurrences
        (schedule, planned_at, due_at, cause, verdict, reason, times, decided_at, agent, owner,
         fired_at, execution, deadline_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)
    ON CONFLICT (schedule, planned_at) DO NOTHING";

const SELECT_OPEN: &str = "
    SELECT * FROM occurrences
    WHERE verdict = 'pending' OR (verdict = 'fired' AND outcome IS NULL)
    ORDER BY schedule, planned_at";

const SELECT_SINCE: &str = "
    SELECT * FROM occurrences WHERE schedule = $1 AND planned_at >= $2 ORDER BY planned_at";

/// Inserts an occurrence. Returns true if its time was not known yet.
pub(crate) async fn insert(
    connection: &mut DatabaseConnection,
    occurrence: &Occurrence,
) -> sql::Result<bool> {
    let changed_rows = sql::statement(INSERT)
        .bind(occurrence.schedule.as_str())
        .bind(micros(occurrence.planned_at))
        .bind(micros(occurrence.due_at))
        .bind(occurrence.cause.as_str())
        .bind(occurrence.status.as_str())
        .bind(occurrence.reason.as_deref())
        .bind(i64::from(occurrence.planned_time_count))
        .bind(micros(occurrence.decided_at))
        .bind(occurrence.agent.as_str())
        .bind(occurrence.owner.0)
        .bind(occurrence.fired_at.map(micros))
        .bind(occurrence.execution.map(|id| id.0))
        .bind(occurrence.deadline.map(micros))
        .execute(connection)
        .await?;
    Ok(changed_rows == 1)
}

/// Reads the occurrences that are not finished.
pub(crate) async fn list_open(pool: &ReaderPool) -> sql::Result<Vec<Occurrence>> {
    read_rows(&sql::statement(SELECT_OPEN).mark_long_running().fetch_all(pool).await?)
}

/// Reads the occurrences of a schedule since a time.
pub(crate) async fn list_since(
    pool: &ReaderPool,
    schedule: &ScheduleId,
    since: DateTime<Utc>,
) -> sql::Result<Vec<Occurrence>> {
    let query = sql::statement(SELECT_SINCE)
        .mark_long_running()
        .bind(schedule.as_str())
        .bind(micros(since));
    read_rows(&query.fetch_all(pool).await?)
}

/// Reads a page of occurrences.
pub(crate) async fn list_page(
    pool: &ReaderPool,
    query: OccurrenceQuery,
) -> sql::Result<Vec<Occurrence>> {
    read_rows(&page_query(query).mark_long_running().fetch_all(pool).await?)
}

/// Builds a query with only the requested conditions, so that each of the few possible texts uses its index.
fn page_query(query: OccurrenceQuery) -> SqlStatement {
    let mut statement = sql::statement("SELECT * FROM occurrences WHERE 1 = 1");
    if let Some(schedule) = query.schedule {
        statement.push(" AND schedule = ").push_bind(schedule.as_str().to_owned());
    }
    if let Some(owner) = query.owner {
        statement.push(" AND owner = ").push_bind(owner.0);
    }
    if let Some(agents) = query.agents {
        statement.push(" AND agent IN (");
        statement.push_list(agents.iter().map(|agent| agent.as_str().to_owned())).push(")");
    }
    if let Some(status) = query.status {
        statement.push(" AND verdict = ").push_bind(status.as_str());
    }
    if let Some(since) = query.since {
        statement.push(" AND planned_at >= ").push_bind(micros(since));
    }
    if let Some((at, id)) = query.before {
        statement.push(" AND (planned_at, schedule) < (").push_bind(micros(at));
        statement.push(", ").push_bind(id.as_str().to_owned()).push(")");
    }
    statement.push(" ORDER BY planned_at DESC, schedule DESC LIMIT ");
    statement.push_bind(i64::from(query.limit));
    statement
}

fn read_rows(rows: &[SqlRow]) -> sql::Result<Vec<Occurrence>> {
    rows.iter().map(|row| read_occurrence(Columns(row))).collect()
}

fn read_occurrence(columns: Columns<'_>) -> sql::Result<Occurrence> {
    let execution: Option<uuid::Uuid> = columns.get("execution")?;
    Ok(Occurrence {
        schedule: ScheduleId::new(columns.get::<&str>("schedule")?).map_err(decode_error)?,
        planned_at: columns.time("planned_at")?,
        due_at: columns.time("due_at")?,
        cause: columns.enum_value("cause", OccurrenceCause::parse)?,
        status: columns.enum_value("verdict", OccurrenceStatus::parse)?,
        reason: columns.get("reason")?,
        planned_time_count: columns.number("times")?,
        decided_at: columns.time("decided_at")?,
        agent: AgentId::new(columns.get::<&str>("agent")?).map_err(decode_error)?,
        owner: PrincipalId(columns.uuid("owner")?),
        fired_at: columns.maybe_time("fired_at")?,
        execution: execution.map(ExecutionId),
        deadline: columns.maybe_time("deadline_at")?,
        end: read_occurrence_end(columns)?,
    })
}

fn read_occurrence_end(columns: Columns<'_>) -> sql::Result<Option<OccurrenceEnd>> {
    let Some(outcome) = columns.maybe_enum_value("outcome", Outcome::parse)? else {
        return Ok(None);
    };
    let code: Option<&str> = columns.get("code")?;
    let code = code.map(|word| Code::parse(word).unwrap_or(Code::Internal));
    let had_failed_attempt = columns.get("recovered")?;
    Ok(Some(OccurrenceEnd { outcome, code, had_failed_attempt, at: columns.time("ended_at")? }))
}
