//! Runs of teams above the execution of an interaction: callers of a run see the questions of its members.

use algonius_actors::model::execution::event::EventKind;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::interaction::{Interaction, InteractionEnd, InteractionId};
use algonius_actors::ports::interaction_store::reports::{closed_event, opened_event};
use chrono::{DateTime, Utc};

use crate::engine::row_codec::Columns;
use crate::engine::sql::{self, DatabaseConnection};
use crate::ledger::execution_row::ExecutionRow;

/// The run that sent the request has depth 1.
const INSERT_RUNS: &str = "
    INSERT INTO interaction_runs (run, interaction, agent, depth)
    WITH RECURSIVE runs (id, depth) AS (
        SELECT unhex(parent, '-'), 1 FROM executions WHERE id = $1 AND parent IS NOT NULL
        UNION ALL
        SELECT unhex(executions.parent, '-'), depth + 1
        FROM runs JOIN executions ON executions.id = runs.id WHERE executions.parent IS NOT NULL
    )
    SELECT executions.id, $2, executions.agent, depth
    FROM runs JOIN executions ON executions.id = runs.id";

const SELECT_RUNS: &str = "SELECT run FROM interaction_runs WHERE interaction = $1 ORDER BY depth";

/// Stores the runs above an interaction that opens, and reports the interaction in their events.
pub(super) async fn store_runs_and_report_opened(
    connection: &mut DatabaseConnection,
    interaction: &Interaction,
) -> sql::Result<()> {
    let execution = interaction.request_key.execution;
    let statement = sql::statement(INSERT_RUNS).bind(execution.0).bind(interaction.id.0);
    if statement.execute(connection).await? == 0 {
        return Ok(());
    }
    append_to_runs(connection, interaction.id, interaction.opened_at, &opened_event(interaction))
        .await
}

/// Reports the end of an interaction in the events of the runs above it.
pub(super) async fn report_closed(
    connection: &mut DatabaseConnection,
    id: InteractionId,
    redacted_end: &InteractionEnd,
) -> sql::Result<()> {
    append_to_runs(connection, id, redacted_end.at, &closed_event(id, redacted_end)).await
}

/// Appends an event to the runs above an interaction. A run that has ended stays as it is.
async fn append_to_runs(
    connection: &mut DatabaseConnection,
    id: InteractionId,
    at: DateTime<Utc>,
    event_kind: &EventKind,
) -> sql::Result<()> {
    let rows = sql::statement(SELECT_RUNS).bind(id.0).fetch_all(&mut *connection).await?;
    for row in &rows {
        let run = ExecutionId(Columns(row).uuid("run")?);
        let Some(mut run_row) = ExecutionRow::load(connection, run).await? else { continue };
        if run_row.outcome.is_none() {
            run_row.append_event(connection, at, event_kind.clone()).await?;
            run_row.save(connection).await?;
            connection.mark_execution_changed(run.0);
        }
    }
    Ok(())
}
