//! Rows of interactions.

use algonius_actors::model::execution::AttemptId;
use algonius_actors::model::id::{AgentId, ContextId, ExecutionId, PrincipalId};
use algonius_actors::model::interaction::{
    Interaction, InteractionFilter, InteractionId, InteractionOrigin, InteractionRequestKey,
    InteractionState, WireId,
};

use super::answer_seal::AnswerSeal;
use crate::engine::error::decode_error;
use crate::engine::row_codec::{Columns, micros, to_json};
use crate::engine::sql::{self, DatabaseConnection, Queryable, ReaderPool, SqlStatement};
use crate::ledger::execution_row::read_attempt_id;

/// The outermost run is the first one.
const SELECT_INTERACTIONS: &str = "
    SELECT *, (
        SELECT json_group_array(agent ORDER BY depth DESC) FROM interaction_runs
        WHERE interaction = interactions.id
    ) AS teams
    FROM interactions WHERE ";

const INSERT: &str = "
    INSERT INTO interactions (id, execution, turn, attempt, wire, owner, agent, context, kind, body,
        terms, digest, asked_at, due_at, state)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)";

/// Interaction as its row stores it: with the redacted answer and the sealed raw one.
pub(super) struct StoredInteraction {
    /// Interaction with its redacted answer.
    pub(super) interaction: Interaction,
    /// Sealed end with the raw answer, until the delivery.
    sealed_end: Option<Vec<u8>>,
}

impl StoredInteraction {
    pub(super) fn read(columns: Columns<'_>) -> sql::Result<Self> {
        let interaction = Interaction {
            id: InteractionId(columns.uuid("id")?),
            request_key: InteractionRequestKey {
                execution: ExecutionId(columns.uuid("execution")?),
                attempt_id: read_attempt_id(columns)?,
                wire_id: WireId(columns.get("wire")?),
            },
            origin: InteractionOrigin {
                owner: PrincipalId(columns.uuid("owner")?),
                agent: AgentId::new(columns.get::<&str>("agent")?).map_err(decode_error)?,
                context: ContextId(columns.get("context")?),
                teams: columns.json("teams")?,
            },
            question: columns.json("body")?,
            approver_rules: columns.json("terms")?,
            tool_call_digest: columns.get("digest")?,
            opened_at: columns.time("asked_at")?,
            due_at: columns.time("due_at")?,
            state: columns.enum_value("state", InteractionState::parse)?,
            end: columns.maybe_json("closed")?,
            delivered_at: columns.maybe_time("delivered_at")?,
        };
        Ok(Self { interaction, sealed_end: columns.get("sealed")? })
    }

    /// Returns the interaction with its raw answer, with the redacted answer after the raw one was erased, or without
    /// an answer if the key is missing.
    pub(super) fn unseal(self, seal: &AnswerSeal) -> sql::Result<Interaction> {
        let Self { mut interaction, sealed_end: sealed } = self;
        if let Some(sealed) = sealed {
            match seal.unseal(interaction.id, &sealed)? {
                Some(end) => {
                    interaction.end = Some(serde_json::from_slice(&end).map_err(decode_error)?);
                }
                // The redacted answer must not reach the agent in its place.
                None => interaction.end.iter_mut().for_each(|end| end.answer.value = None),
            }
        }
        Ok(interaction)
    }
}

/// Returns the query for the interactions that meet a condition.
pub(super) fn select_where(condition: &str) -> SqlStatement {
    let mut query = sql::statement(SELECT_INTERACTIONS);
    query.push(condition);
    query
}

/// Reads an interaction.
pub(super) async fn load(
    source: impl Queryable,
    id: InteractionId,
) -> sql::Result<Option<StoredInteraction>> {
    let row = select_where("id = $1").bind(id.0).fetch_optional(source).await?;
    row.map(|row| StoredInteraction::read(Columns(&row))).transpose()
}

/// Reads the interaction with a request key.
pub(super) async fn load_by_request_key(
    source: impl Queryable,
    request_key: &InteractionRequestKey,
) -> sql::Result<Option<StoredInteraction>> {
    let AttemptId { turn, attempt } = request_key.attempt_id;
    let row = select_where("execution = $1 AND turn = $2 AND attempt = $3 AND wire = $4")
        .bind(request_key.execution.0)
        .bind(i64::from(turn))
        .bind(i64::from(attempt))
        .bind(request_key.wire_id.0.as_str())
        .fetch_optional(source)
        .await?;
    row.map(|row| StoredInteraction::read(Columns(&row))).transpose()
}

/// Stores an open interaction.
pub(super) async fn insert(
    connection: &mut DatabaseConnection,
    interaction: &Interaction,
) -> sql::Result<()> {
    let Interaction { request_key, origin, question, .. } = interaction;
    sql::statement(INSERT)
        .bind(interaction.id.0)
        .bind(request_key.execution.0)
        .bind(i64::from(request_key.attempt_id.turn))
        .bind(i64::from(request_key.attempt_id.attempt))
        .bind(request_key.wire_id.0.as_str())
        .bind(origin.owner.0)
        .bind(origin.agent.as_str())
        .bind(origin.context.0.as_str())
        .bind(question.kind.as_str())
        .bind(to_json(question)?)
        .bind(to_json(&interaction.approver_rules)?)
        .bind(interaction.tool_call_digest.as_str())
        .bind(micros(interaction.opened_at))
        .bind(micros(interaction.due_at))
        .bind(InteractionState::Open.as_str())
        .execute(connection)
        .await?;
    Ok(())
}

/// Reads interactions with redacted answers, newest first.
pub(super) async fn list(
    pool: &ReaderPool,
    filter: &InteractionFilter,
) -> sql::Result<Vec<Interaction>> {
    let rows = interaction_list_query(filter).mark_long_running().fetch_all(pool).await?;
    let read_interaction = |row| Ok(StoredInteraction::read(Columns(row))?.interaction);
    rows.iter().map(read_interaction).collect()
}

/// Builds the query for matching interactions. The text contains only the requested conditions, so that each of the few
/// possible texts uses its index.
pub(crate) fn interaction_list_query(filter: &InteractionFilter) -> SqlStatement {
    let mut query = select_where("1 = 1");
    if let Some(id) = filter.id {
        query.push(" AND id = ").push_bind(id.0);
    }
    if let Some(owner) = filter.owner {
        // An execution has few interactions, and its owner may have many: the sign excludes the index of the owner.
        let has_execution_filter = filter.execution.is_some();
        query.push(if has_execution_filter { " AND +owner = " } else { " AND owner = " });
        query.push_bind(owner.0);
    }
    if let Some(agents) = &filter.agents {
        let agents = || agents.iter().map(|agent| agent.as_str().to_owned());
        query.push(" AND (agent IN (").push_list(agents());
        query.push(") OR EXISTS (SELECT 1 FROM interaction_runs");
        query.push(" WHERE interaction = interactions.id AND agent IN (").push_list(agents());
        query.push(")))");
    }
    if let Some(execution) = filter.execution {
        query.push(" AND id IN (SELECT id FROM interactions WHERE execution = ");
        query.push_bind(execution.0);
        query.push(" UNION ALL SELECT interaction FROM interaction_runs WHERE run = ");
        query.push_bind(execution.0).push(")");
    }
    match filter.state {
        // SQLite uses the index of open rows only if the text of the statement contains the word.
        Some(InteractionState::Open) => _ = query.push(" AND state = 'open'"),
        Some(state) => _ = query.push(" AND state = ").push_bind(state.as_str()),
        None => {}
    }
    if let Some(before) = filter.before_id {
        query.push(" AND id < ").push_bind(before.0);
    }
    query.push(" ORDER BY id DESC");
    if filter.limit > 0 {
        query.push(" LIMIT ").push_bind(i64::from(filter.limit));
    }
    query
}
