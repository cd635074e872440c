//! Reading executions back.

use algonius_actors::model::execution::{Fence, Outcome, State};
use algonius_actors::model::id::{AgentId, ContextId, ExecutionId, MessageId, PrincipalId};
use algonius_actors::model::record::{Filter, Record};
use sqlx::sqlite::Sqlite;
use sqlx::{QueryBuilder, SqlitePool};

use super::column::Columns;
use super::fault::unreadable;
use super::head::stamp;

/// Reads one execution.
pub(super) async fn one(pool: &SqlitePool, id: ExecutionId) -> sqlx::Result<Option<Record>> {
    let row = sqlx::query("SELECT * FROM executions WHERE id = $1")
        .bind(id.0)
        .fetch_optional(pool)
        .await?;
    row.map(|row| record(Columns(&row))).transpose()
}

/// Reads executions, newest first.
pub(super) async fn many(pool: &SqlitePool, filter: Filter) -> sqlx::Result<Vec<Record>> {
    let rows = query(filter).build().fetch_all(pool).await?;
    rows.iter().map(|row| record(Columns(row))).collect()
}

/// Says only what is asked for, so that each of the few texts there can be finds its index.
fn query(filter: Filter) -> QueryBuilder<Sqlite> {
    let mut query = QueryBuilder::new("SELECT * FROM executions WHERE 1 = 1");
    if let Some(agent) = filter.agent {
        query.push(" AND agent = ").push_bind(agent.as_str().to_owned());
    }
    if let Some(owner) = filter.owner {
        query.push(" AND owner = ").push_bind(owner.0);
    }
    if filter.unfinished {
        query.push(" AND outcome IS NULL");
    }
    if let Some(before) = filter.before {
        query.push(" AND id < ").push_bind(before.0);
    }
    query.push(" ORDER BY id DESC");
    if filter.limit > 0 {
        query.push(" LIMIT ").push_bind(i64::from(filter.limit));
    }
    query
}

/// Reads a whole row.
pub(super) fn record(columns: Columns<'_>) -> sqlx::Result<Record> {
    Ok(Record {
        id: ExecutionId(columns.uuid("id")?),
        agent: AgentId::new(columns.plain::<&str>("agent")?).map_err(unreadable)?,
        owner: PrincipalId(columns.uuid("owner")?),
        message: MessageId(columns.plain("message")?),
        context: ContextId(columns.plain("context")?),
        trigger: columns.json("origin")?,
        trace: columns.maybe_json("trace")?,
        access: columns.json("access")?,
        state: columns.word("state", State::parse)?,
        outcome: columns.maybe_word("outcome", Outcome::parse)?,
        failure: columns.maybe_json("failure")?,
        stamp: stamp(columns)?,
        fence: Fence(columns.plain("fence")?),
        params: columns.json("params")?,
        overrides: columns.json("overrides")?,
        replayable: columns.plain("replayable")?,
        answered: columns.plain("answered")?,
        accepted_at: columns.time("accepted_at")?,
        started_at: columns.maybe_time("started_at")?,
        changed_at: columns.time("changed_at")?,
        ended_at: columns.maybe_time("ended_at")?,
        pid: columns.maybe_number("pid")?,
        exit_code: columns.maybe_number("exit_code")?,
        last_event: columns.number("last_event")?,
    })
}
