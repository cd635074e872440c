//! The keys under which executions are known to their callers.

use algonius_actors::model::id::{AgentId, ExecutionId, PrincipalId};

use super::column::Columns;
use super::sql::{self, Asked, Connection};

const NOTE: &str = "
    INSERT INTO request_keys (owner, agent, request_key, digest, execution)
    VALUES ($1, $2, $3, $4, $5)";

const TAKEN: &str = "
    SELECT id AS execution, digest FROM executions
    WHERE owner = $1 AND agent = $2 AND request_key = $3
    UNION ALL
    SELECT execution, digest FROM request_keys
    WHERE owner = $1 AND agent = $2 AND request_key = $3
    LIMIT 1";

/// Notes a further key of an execution, under which nothing is known yet.
pub(super) async fn note(
    connection: &mut Connection,
    (owner, agent): &(PrincipalId, &AgentId),
    key: [u8; 32],
    digest: [u8; 32],
    id: ExecutionId,
) -> sql::Result<()> {
    sql::query(NOTE)
        .bind(owner.0)
        .bind(agent.as_str())
        .bind(key.as_slice())
        .bind(digest.as_slice())
        .bind(id.0)
        .execute(connection)
        .await?;
    Ok(())
}

/// The execution that is known under a key, and the digest of what was asked with it.
pub(super) async fn taken(
    connection: impl Asked,
    owner: PrincipalId,
    agent: &AgentId,
    key: [u8; 32],
) -> sql::Result<Option<(ExecutionId, [u8; 32])>> {
    let row = sql::query(TAKEN)
        .bind(owner.0)
        .bind(agent.as_str())
        .bind(key.as_slice())
        .fetch_optional(connection)
        .await?;
    row.map(|row| {
        let columns = Columns(&row);
        Ok((ExecutionId(columns.uuid("execution")?), columns.bytes::<32>("digest")?))
    })
    .transpose()
}
