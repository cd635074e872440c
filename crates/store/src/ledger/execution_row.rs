//! Part of an execution's row that changes after the acceptance.

use algonius_actors::model::agent::budget::Charge;
use algonius_actors::model::agent::quota::Deferral;
use algonius_actors::model::execution::event::{Event, EventKind};
use algonius_actors::model::execution::{
    AttemptId, ExecutionState, Fence, Interruption, Outcome, StateChange,
};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::ExecutionId;
use chrono::{DateTime, Utc};

use super::{budget_usage, events};
use crate::engine::row_codec::{Columns, to_json};
use crate::engine::sql::{self, DatabaseConnection};
use update::IndexedColumns;

mod update;

const SELECT_ROW: &str = "
    SELECT agent, state, outcome, failure, turn, attempt, fence, started_at, changed_at, ended_at,
        pid, exit_code, last_event, answered, interruption, asks, workspace, parked, spent,
        replayable
    FROM executions WHERE id = $1";

/// Mutable part of a row, loaded, changed and saved within one transaction.
pub(crate) struct ExecutionRow {
    id: ExecutionId,
    /// Id of the agent whose slot the execution uses.
    pub(crate) agent: String,
    /// State of the execution.
    pub(crate) state: ExecutionState,
    /// Outcome of the execution.
    pub(crate) outcome: Option<Outcome>,
    /// Generation of the claim.
    pub(crate) fence: Fence,
    /// Latest attempt.
    pub(crate) attempt_id: AttemptId,
    /// Start time of the first attempt.
    pub(crate) started_at: Option<DateTime<Utc>>,
    /// Time of the end.
    pub(crate) ended_at: Option<DateTime<Utc>>,
    /// Id of the latest process.
    pub(crate) pid: Option<u32>,
    /// Latest exit code.
    pub(crate) exit_code: Option<i32>,
    /// True if the caller has answered the request for input and the next turn has not started.
    pub(crate) has_pending_turn: bool,
    waits: WaitColumns,
    /// Path of the workspace that the latest attempt may modify exclusively.
    pub(crate) workspace: Option<Vec<u8>>,
    /// Latest deferral in this turn.
    pub(crate) latest_deferral: Option<Deferral>,
    /// True if its latest input is stored as it is, and not sealed.
    pub(crate) stores_raw_input: bool,
    /// Amounts that the execution has used.
    spent: Charge,
    changed_at: DateTime<Utc>,
    /// Failure as the JSON that was read, so that a code of a later release is not lost.
    failure_json: Option<String>,
    last_event_number: u64,
    /// Indexed columns as they were read.
    loaded_columns: IndexedColumns,
}

/// Columns that describe the waits for an answer.
struct WaitColumns {
    /// Reason for the last wait for the caller.
    interruption: Option<Interruption>,
    /// Number of open interactions.
    open_interaction_count: u32,
}

impl ExecutionRow {
    /// Loads the mutable part of a row; returns `None` if there is no such execution.
    pub(crate) async fn load(
        connection: &mut DatabaseConnection,
        id: ExecutionId,
    ) -> sql::Result<Option<Self>> {
        let row = sql::statement(SELECT_ROW).bind(id.0).fetch_optional(connection).await?;
        row.map(|row| Self::read(id, Columns(&row))).transpose()
    }

    /// Appends events in their order.
    pub(crate) async fn append_events(
        &mut self,
        connection: &mut DatabaseConnection,
        events: &[(DateTime<Utc>, EventKind)],
    ) -> sql::Result<()> {
        for (at, event) in events {
            self.append_event(connection, *at, event.clone()).await?;
        }
        Ok(())
    }

    /// Appends an event under the next number and updates the row accordingly.
    pub(crate) async fn append_event(
        &mut self,
        connection: &mut DatabaseConnection,
        at: DateTime<Utc>,
        event_kind: EventKind,
    ) -> sql::Result<()> {
        self.apply_event(at, &event_kind)?;
        if let EventKind::BudgetCharged { day, charge } = &event_kind {
            // In the transaction of the event, so that a crash neither loses an amount nor counts it twice.
            budget_usage::add(&mut *connection, &self.agent, *day, charge).await?;
        }
        self.last_event_number += 1;
        let event = Event { number: self.last_event_number, at, data: event_kind };
        events::insert(connection, self.id, self.attempt_id, &event).await
    }

    /// Replaces the failure of the execution.
    pub(crate) fn set_failure(&mut self, failure: Option<&Failure>) -> sql::Result<()> {
        self.failure_json = failure.map(to_json).transpose()?;
        Ok(())
    }

    /// Sets the time of the last change of the status.
    pub(crate) const fn set_changed_at(&mut self, at: DateTime<Utc>) {
        self.changed_at = at;
    }

    /// Returns the id of the execution.
    pub(super) const fn id(&self) -> ExecutionId {
        self.id
    }

    /// Returns true if a process waits for the answer to an interaction.
    pub(super) const fn has_open_interactions(&self) -> bool {
        self.waits.open_interaction_count > 0
    }

    fn apply_event(&mut self, at: DateTime<Utc>, event: &EventKind) -> sql::Result<()> {
        match event {
            EventKind::StateChanged(StateChange {
                to,
                attempt_id,
                at: changed_at,
                interruption,
                ..
            }) => {
                self.state = *to;
                self.attempt_id = *attempt_id;
                self.changed_at = *changed_at;
                self.waits.interruption = interruption.or(self.waits.interruption);
            }
            EventKind::ProcessStarted { pid } => self.pid = Some(*pid),
            EventKind::AttemptFailed(failure) => self.set_failure(Some(failure))?,
            EventKind::Deferred(deferred) => self.latest_deferral = Some(*deferred),
            EventKind::BudgetCharged { charge, .. } => self.spent = self.spent.plus(*charge),
            // Each of the two can change the public status.
            EventKind::InteractionOpened { .. } => {
                self.waits.open_interaction_count =
                    self.waits.open_interaction_count.saturating_add(1);
                self.set_changed_at(at);
            }
            EventKind::InteractionClosed { .. } => {
                self.waits.open_interaction_count =
                    self.waits.open_interaction_count.saturating_sub(1);
                self.set_changed_at(at);
            }
            EventKind::Message { .. }
            | EventKind::Artifact { .. }
            | EventKind::UsageReported { .. }
            | EventKind::Step { .. }
            | EventKind::Stopped { .. }
            | EventKind::Heartbeat(_)
            | EventKind::ResourceUsage(_)
            | EventKind::Session { .. }
            | EventKind::OutputTruncated { .. }
            | EventKind::DeadlineApproaching { .. }
            | EventKind::SessionLost { .. }
            | EventKind::CheckOutput { .. }
            | EventKind::MalformedLine { .. }
            | EventKind::PermissionDecided { .. }
            | EventKind::Planned { .. }
            | EventKind::Hop { .. }
            | EventKind::StepsPlanned { .. }
            | EventKind::RunStep { .. }
            | EventKind::Warning { .. } => {}
        }
        Ok(())
    }

    fn read(id: ExecutionId, columns: Columns<'_>) -> sql::Result<Self> {
        let loaded_columns = IndexedColumns::read(columns)?;
        Ok(Self {
            id,
            agent: columns.get("agent")?,
            state: loaded_columns.status.state,
            outcome: loaded_columns.rarely_changed.outcome,
            fence: Fence(columns.get("fence")?),
            attempt_id: read_attempt_id(columns)?,
            started_at: columns.maybe_time("started_at")?,
            ended_at: loaded_columns.rarely_changed.ended_at,
            pid: columns.maybe_number("pid")?,
            exit_code: columns.maybe_number("exit_code")?,
            has_pending_turn: loaded_columns.rarely_changed.has_pending_turn,
            waits: WaitColumns {
                interruption: loaded_columns.rarely_changed.interruption,
                open_interaction_count: columns.number("asks")?,
            },
            workspace: loaded_columns.rarely_changed.workspace.clone(),
            latest_deferral: columns.maybe_json("parked")?,
            stores_raw_input: columns.get("replayable")?,
            spent: columns.maybe_json("spent")?.unwrap_or_default(),
            changed_at: loaded_columns.status.changed_at,
            failure_json: loaded_columns.rarely_changed.failure_json.clone(),
            last_event_number: columns.number("last_event")?,
            loaded_columns,
        })
    }
}

/// Returns the latest attempt from an execution's row.
pub(crate) fn read_attempt_id(columns: Columns<'_>) -> sql::Result<AttemptId> {
    Ok(AttemptId { turn: columns.number("turn")?, attempt: columns.number("attempt")? })
}
