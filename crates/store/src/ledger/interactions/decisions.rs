//! Permission decisions: an append-only list with a retention age of its own.

use algonius_actors::model::id::{AgentId, ExecutionId, PrincipalId};
use algonius_actors::model::interaction::InteractionId;
use algonius_actors::model::permission::{DecisionFilter, PermissionDecision, PermissionVerdict};
use async_trait::async_trait;
use chrono::TimeDelta;
use uuid::Uuid;

use crate::engine::error::decode_error;
use crate::engine::read_cache::Invalidation;
use crate::engine::row_codec::{Columns, micros, saturating_i64, to_json};
use crate::engine::sql::{self, DatabaseConnection, ReaderPool, SqlStatement};
use crate::engine::writer::WriteCommand;
use crate::ledger::execution_row::read_attempt_id;

/// Age after which a decision may be removed. The age is measured against the time of later decisions, so a service
/// without decisions removes none.
pub(crate) const DECISION_RETENTION: TimeDelta = TimeDelta::days(365);

const INSERT: &str = "
    INSERT INTO permission_decisions (at, agent, owner, execution, turn, attempt, interaction, tool,
        digest, verdict, source, waited_ms)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12)";

/// Two rows for each new one keep the list from growing, and a wrong clock removes only a few.
const DELETE_EXPIRED_DECISIONS: &str = "
    DELETE FROM permission_decisions WHERE number IN (
        SELECT number FROM permission_decisions WHERE at < $1 ORDER BY at LIMIT 2)";

/// Verdict that was given without an interaction.
pub(super) struct RecordPermissionDecision(pub(super) PermissionDecision);

#[async_trait]
impl WriteCommand for RecordPermissionDecision {
    type WriteOutput = ();

    fn invalidation(&self) -> Invalidation {
        Invalidation::Nothing
    }

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<()> {
        insert(connection, &self.0).await
    }
}

/// Appends a decision, and removes some that are too old.
pub(super) async fn insert(
    connection: &mut DatabaseConnection,
    decision: &PermissionDecision,
) -> sql::Result<()> {
    let PermissionDecision { attempt_id, .. } = decision;
    sql::statement(INSERT)
        .bind(micros(decision.at))
        .bind(decision.agent.as_str())
        .bind(decision.owner.0)
        .bind(decision.execution.0)
        .bind(i64::from(attempt_id.turn))
        .bind(i64::from(attempt_id.attempt))
        .bind(decision.interaction.map(|interaction| interaction.0))
        .bind(decision.tool.as_str())
        .bind(decision.tool_call_digest.as_str())
        .bind(decision.verdict.as_str())
        .bind(to_json(&decision.source)?)
        .bind(saturating_i64(decision.waited_ms))
        .execute(&mut *connection)
        .await?;
    let cutoff = micros(decision.at)
        .saturating_sub(DECISION_RETENTION.num_microseconds().unwrap_or(i64::MAX));
    sql::statement(DELETE_EXPIRED_DECISIONS).bind(cutoff).execute(connection).await?;
    Ok(())
}

/// Reads decisions, oldest first, each with its number.
pub(super) async fn list(
    pool: &ReaderPool,
    filter: &DecisionFilter,
) -> sql::Result<Vec<(u64, PermissionDecision)>> {
    let rows = list_query(filter).mark_long_running().fetch_all(pool).await?;
    rows.iter().map(|row| read_numbered_decision(Columns(row))).collect()
}

fn list_query(filter: &DecisionFilter) -> SqlStatement {
    let mut query = sql::statement("SELECT * FROM permission_decisions WHERE number > ");
    query.push_bind(saturating_i64(filter.after));
    if let Some(agent) = &filter.agent {
        query.push(" AND agent = ").push_bind(agent.as_str().to_owned());
    }
    if let Some(execution) = filter.execution {
        query.push(" AND execution = ").push_bind(execution.0);
    }
    query.push(" ORDER BY number");
    if filter.limit > 0 {
        query.push(" LIMIT ").push_bind(i64::from(filter.limit));
    }
    query
}

fn read_numbered_decision(columns: Columns<'_>) -> sql::Result<(u64, PermissionDecision)> {
    let decision = PermissionDecision {
        at: columns.time("at")?,
        agent: AgentId::new(columns.get::<&str>("agent")?).map_err(decode_error)?,
        owner: PrincipalId(columns.uuid("owner")?),
        execution: ExecutionId(columns.uuid("execution")?),
        attempt_id: read_attempt_id(columns)?,
        interaction: columns.get::<Option<Uuid>>("interaction")?.map(InteractionId),
        tool: columns.get("tool")?,
        tool_call_digest: columns.get("digest")?,
        verdict: columns.enum_value("verdict", PermissionVerdict::parse)?,
        source: columns.json("source")?,
        waited_ms: columns.number("waited_ms")?,
    };
    Ok((columns.number("number")?, decision))
}
