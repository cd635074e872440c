//! Idempotency keys of executions.

use algonius_actors::model::id::{AgentId, ExecutionId, PrincipalId};

use crate::engine::row_codec::Columns;
use crate::engine::sql::{self, DatabaseConnection, Queryable};

const INSERT_KEY: &str = "
    INSERT INTO request_keys (owner, agent, request_key, digest, execution)
    VALUES ($1, $2, $3, $4, $5)";

const SELECT_KEY: &str = "
    SELECT id AS execution, digest FROM executions
    WHERE owner = $1 AND agent = $2 AND request_key = $3
    UNION ALL
    SELECT execution, digest FROM request_keys
    WHERE owner = $1 AND agent = $2 AND request_key = $3
    LIMIT 1";

/// Records a further key of an execution, which must be unused.
pub(crate) async fn insert(
    connection: &mut DatabaseConnection,
    (owner, agent): &(PrincipalId, &AgentId),
    key: [u8; 32],
    content_digest: [u8; 32],
    id: ExecutionId,
) -> sql::Result<()> {
    sql::statement(INSERT_KEY)
        .bind(owner.0)
        .bind(agent.as_str())
        .bind(key.as_slice())
        .bind(content_digest.as_slice())
        .bind(id.0)
        .execute(connection)
        .await?;
    Ok(())
}

/// Returns the execution of a key and the digest of its request.
pub(crate) async fn find(
    connection: impl Queryable,
    owner: PrincipalId,
    agent: &AgentId,
    key: [u8; 32],
) -> sql::Result<Option<(ExecutionId, [u8; 32])>> {
    let row = sql::statement(SELECT_KEY)
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
