//! Update of the mutable part of a row, limited to the changed columns: each index that could change is written too,
//! and each index is a page.

use algonius_actors::model::execution::{ExecutionState, Interruption, Outcome};
use chrono::{DateTime, Utc};

use super::ExecutionRow;
use crate::engine::row_codec::{Columns, micros, saturating_i64, to_json};
use crate::engine::sql::{self, DatabaseConnection, SqlStatement};

/// Update of the columns without an index.
const UPDATE_UNINDEXED_COLUMNS: &str = "
    UPDATE executions SET turn = $2, attempt = $3, fence = $4, started_at = $5, pid = $6,
        exit_code = $7, last_event = $8, parked = $9, spent = $10, asks = $11
    WHERE id = $1";

/// Update of the columns without an index, the state and the time of its last change.
const UPDATE_STATE: &str = "
    UPDATE executions SET turn = $2, attempt = $3, fence = $4, started_at = $5, pid = $6,
        exit_code = $7, last_event = $8, parked = $9, spent = $10, asks = $11, state = $12,
        changed_at = $13
    WHERE id = $1";

/// Update of all mutable columns.
const UPDATE_ALL: &str = "
    UPDATE executions SET turn = $2, attempt = $3, fence = $4, started_at = $5, pid = $6,
        exit_code = $7, last_event = $8, parked = $9, spent = $10, asks = $11, state = $12,
        changed_at = $13, outcome = $14, failure = $15, ended_at = $16, answered = $17,
        workspace = $18, interruption = $19
    WHERE id = $1";

/// Columns that have an index.
pub(in crate::ledger::execution_row) struct IndexedColumns {
    pub(in crate::ledger::execution_row) status: StatusColumns,
    pub(in crate::ledger::execution_row) rarely_changed: RarelyChangedColumns,
}

/// State and the time of its last change.
#[derive(PartialEq)]
pub(in crate::ledger::execution_row) struct StatusColumns {
    pub(in crate::ledger::execution_row) state: ExecutionState,
    pub(in crate::ledger::execution_row) changed_at: DateTime<Utc>,
}

/// Columns that describe the end or block other executions.
#[derive(PartialEq)]
pub(in crate::ledger::execution_row) struct RarelyChangedColumns {
    pub(in crate::ledger::execution_row) outcome: Option<Outcome>,
    pub(in crate::ledger::execution_row) failure_json: Option<String>,
    pub(in crate::ledger::execution_row) has_pending_turn: bool,
    pub(in crate::ledger::execution_row) interruption: Option<Interruption>,
    pub(in crate::ledger::execution_row) workspace: Option<Vec<u8>>,
    pub(in crate::ledger::execution_row) ended_at: Option<DateTime<Utc>>,
}

impl ExecutionRow {
    /// Saves the changed columns.
    pub(crate) async fn save(&self, connection: &mut DatabaseConnection) -> sql::Result<()> {
        let IndexedColumns { status, rarely_changed } = self.indexed_columns();
        let statement = if rarely_changed != self.loaded_columns.rarely_changed {
            self.bind_all(UPDATE_ALL, &status, rarely_changed)?
        } else if status != self.loaded_columns.status {
            self.bind_state(UPDATE_STATE, &status)?
        } else {
            self.bind_unindexed_columns(UPDATE_UNINDEXED_COLUMNS)?
        };
        statement.execute(connection).await?;
        Ok(())
    }

    fn indexed_columns(&self) -> IndexedColumns {
        let status = StatusColumns { state: self.state, changed_at: self.changed_at };
        let rarely_changed = RarelyChangedColumns {
            outcome: self.outcome,
            failure_json: self.failure_json.clone(),
            has_pending_turn: self.has_pending_turn,
            interruption: self.waits.interruption,
            workspace: self.workspace.clone(),
            ended_at: self.ended_at,
        };
        IndexedColumns { status, rarely_changed }
    }

    fn bind_all(
        &self,
        text: &'static str,
        status: &StatusColumns,
        rarely_changed: RarelyChangedColumns,
    ) -> sql::Result<SqlStatement> {
        let statement = self.bind_state(text, status)?;
        Ok(statement
            .bind(rarely_changed.outcome.map(|outcome| outcome.state().as_str()))
            .bind(rarely_changed.failure_json)
            .bind(rarely_changed.ended_at.map(micros))
            .bind(rarely_changed.has_pending_turn)
            .bind(rarely_changed.workspace.as_deref())
            .bind(rarely_changed.interruption.map(Interruption::as_str)))
    }

    fn bind_state(&self, text: &'static str, status: &StatusColumns) -> sql::Result<SqlStatement> {
        let statement = self.bind_unindexed_columns(text)?;
        Ok(statement.bind(status.state.as_str()).bind(micros(status.changed_at)))
    }

    fn bind_unindexed_columns(&self, text: &'static str) -> sql::Result<SqlStatement> {
        let spent = (!self.spent.is_zero()).then(|| to_json(&self.spent)).transpose()?;
        Ok(sql::statement(text)
            .bind(self.id.0)
            .bind(i64::from(self.attempt_id.turn))
            .bind(i64::from(self.attempt_id.attempt))
            .bind(self.fence.0)
            .bind(self.started_at.map(micros))
            .bind(self.pid.map(i64::from))
            .bind(self.exit_code.map(i64::from))
            .bind(saturating_i64(self.last_event_number))
            .bind(self.latest_deferral.as_ref().map(to_json).transpose()?)
            .bind(spent)
            .bind(i64::from(self.waits.open_interaction_count)))
    }
}

impl IndexedColumns {
    pub(in crate::ledger::execution_row) fn read(columns: Columns<'_>) -> sql::Result<Self> {
        let status = StatusColumns {
            state: columns.enum_value("state", ExecutionState::parse)?,
            changed_at: columns.time("changed_at")?,
        };
        let rarely_changed = RarelyChangedColumns {
            outcome: columns.maybe_enum_value("outcome", Outcome::parse)?,
            failure_json: columns.get("failure")?,
            has_pending_turn: columns.get("answered")?,
            interruption: columns.maybe_enum_value("interruption", Interruption::parse)?,
            workspace: columns.get("workspace")?,
            ended_at: columns.maybe_time("ended_at")?,
        };
        Ok(Self { status, rarely_changed })
    }
}
