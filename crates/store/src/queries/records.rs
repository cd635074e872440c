//! Reads of executions.

use std::sync::LazyLock;

use algonius_actors::model::execution::record::{ExecutionFilter, ExecutionRecord, RequestedInput};
use algonius_actors::model::execution::{ExecutionState, Fence, Interruption, Outcome};
use algonius_actors::model::id::{AgentId, ContextId, ExecutionId, MessageId, PrincipalId};

use super::listing::{self, RECORD_COLUMNS};
use crate::engine::error::decode_error;
use crate::engine::row_codec::Columns;
use crate::engine::sql::{self, ReaderPool};
use crate::ledger::execution_row::read_attempt_id;

/// Reads one execution.
pub(crate) async fn load(
    pool: &ReaderPool,
    id: ExecutionId,
) -> sql::Result<Option<ExecutionRecord>> {
    static SELECT_BY_ID: LazyLock<String> =
        LazyLock::new(|| format!("SELECT {RECORD_COLUMNS} FROM executions WHERE id = $1"));
    let row = sql::statement(SELECT_BY_ID.as_str()).bind(id.0).fetch_optional(pool).await?;
    row.map(|row| read_record(Columns(&row))).transpose()
}

/// Reads executions, newest first.
pub(crate) async fn list(
    pool: &ReaderPool,
    filter: ExecutionFilter,
) -> sql::Result<Vec<ExecutionRecord>> {
    let rows = listing::list_query(filter).mark_long_running().fetch_all(pool).await?;
    rows.iter().map(|row| read_record(Columns(row))).collect()
}

/// Converts a whole row into a record.
pub(crate) fn read_record(columns: Columns<'_>) -> sql::Result<ExecutionRecord> {
    Ok(ExecutionRecord {
        id: ExecutionId(columns.uuid("id")?),
        agent: AgentId::new(columns.get::<&str>("agent")?).map_err(decode_error)?,
        owner: PrincipalId(columns.uuid("owner")?),
        message_id: MessageId(columns.get("message")?),
        context: ContextId(columns.get("context")?),
        trigger: columns.json("origin")?,
        trace: columns.maybe_json("trace")?,
        access: columns.json("access")?,
        state: columns.enum_value("state", ExecutionState::parse)?,
        outcome: columns.maybe_enum_value("outcome", Outcome::parse)?,
        failure: columns.maybe_json("failure")?,
        attempt_id: read_attempt_id(columns)?,
        fence: Fence(columns.get("fence")?),
        params: columns.json("params")?,
        overrides: columns.json("overrides")?,
        stores_raw_input: columns.get("replayable")?,
        requested_input: RequestedInput {
            open_interaction_count: columns.number("asks")?,
            has_pending_turn: columns.get("answered")?,
            latest_required_input: columns.maybe_enum_value("interruption", Interruption::parse)?,
        },
        latest_deferral: columns.maybe_json("parked")?,
        spent: columns.maybe_json("spent")?.unwrap_or_default(),
        accepted_at: columns.time("accepted_at")?,
        started_at: columns.maybe_time("started_at")?,
        changed_at: columns.time("changed_at")?,
        ended_at: columns.maybe_time("ended_at")?,
        pid: columns.maybe_number("pid")?,
        exit_code: columns.maybe_number("exit_code")?,
        last_event_number: columns.number("last_event")?,
    })
}
