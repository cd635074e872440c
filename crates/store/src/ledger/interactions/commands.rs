//! Changes of interactions, each one transaction.

use algonius_actors::model::execution::{ExecutionState, Fence};
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::interaction::{Interaction, InteractionEnd, InteractionId};
use algonius_actors::ports::interaction_store::reports::opened_event;
use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::row::{self, StoredInteraction};
use super::{closing, team_runs};
use crate::engine::read_cache::Invalidation;
use crate::engine::row_codec::micros;
use crate::engine::sql::{self, DatabaseConnection};
use crate::engine::writer::WriteCommand;
use crate::ledger::execution_row::ExecutionRow;

/// The first delivery counts, and an open interaction has no answer.
const UPDATE_DELIVERED: &str = "
    UPDATE interactions SET delivered_at = $2, sealed = NULL
    WHERE id = $1 AND state <> 'open' AND delivered_at IS NULL";

/// New interaction.
pub(super) struct OpenInteraction {
    pub(super) interaction: Interaction,
    /// Generation of the claim under which the agent asked.
    pub(super) fence: Fence,
}

/// Result of an [`OpenInteraction`].
pub(super) enum OpenInteractionResult {
    /// The interaction is open.
    New,
    /// An interaction has this request key already.
    Existing(Box<StoredInteraction>),
    /// The claim is no longer valid.
    Superseded,
}

/// End of an interaction.
pub(super) struct CloseInteraction {
    pub(super) id: InteractionId,
    pub(super) execution: ExecutionId,
    /// Redacted form of the end.
    pub(super) redacted_end: InteractionEnd,
    /// Sealed end with the raw answer, if redaction has changed it.
    pub(super) sealed_end: Option<Vec<u8>>,
}

/// Result of a [`CloseInteraction`].
pub(super) enum CloseInteractionResult {
    /// This change closed the interaction.
    Closed(Box<Interaction>),
    /// The interaction was closed before.
    AlreadyClosed(Box<StoredInteraction>),
    /// The interaction does not exist.
    Unknown,
}

/// Delivery of an answer to the agent.
pub(super) struct RecordAnswerDelivery {
    pub(super) id: InteractionId,
    pub(super) execution: ExecutionId,
    pub(super) at: DateTime<Utc>,
}

#[async_trait]
impl WriteCommand for OpenInteraction {
    type WriteOutput = OpenInteractionResult;

    fn invalidation(&self) -> Invalidation {
        Invalidation::One(self.interaction.request_key.execution)
    }

    async fn apply(
        &self,
        connection: &mut DatabaseConnection,
    ) -> sql::Result<OpenInteractionResult> {
        let Self { interaction, fence } = self;
        let Some(mut execution_row) =
            ExecutionRow::load(connection, interaction.request_key.execution).await?
        else {
            return Ok(OpenInteractionResult::Superseded);
        };
        let is_at_work =
            matches!(execution_row.state, ExecutionState::Starting | ExecutionState::Running);
        if execution_row.fence != *fence || execution_row.outcome.is_some() || !is_at_work {
            return Ok(OpenInteractionResult::Superseded);
        }
        if let Some(stored) =
            row::load_by_request_key(&mut *connection, &interaction.request_key).await?
        {
            return Ok(OpenInteractionResult::Existing(Box::new(stored)));
        }
        row::insert(connection, interaction).await?;
        execution_row
            .append_event(connection, interaction.opened_at, opened_event(interaction))
            .await?;
        execution_row.save(connection).await?;
        team_runs::store_runs_and_report_opened(connection, interaction).await?;
        Ok(OpenInteractionResult::New)
    }
}

#[async_trait]
impl WriteCommand for CloseInteraction {
    type WriteOutput = CloseInteractionResult;

    fn invalidation(&self) -> Invalidation {
        Invalidation::One(self.execution)
    }

    async fn apply(
        &self,
        connection: &mut DatabaseConnection,
    ) -> sql::Result<CloseInteractionResult> {
        let Some(stored) = row::load(&mut *connection, self.id).await? else {
            return Ok(CloseInteractionResult::Unknown);
        };
        if !stored.interaction.is_open() {
            return Ok(CloseInteractionResult::AlreadyClosed(Box::new(stored)));
        }
        // An answer comes from a caller, not from the attempt, so it has no fence. The settlement has closed every
        // interaction of an execution that has ended, so nothing follows its outcome.
        let Some(mut execution_row) = ExecutionRow::load(connection, self.execution).await? else {
            return Ok(CloseInteractionResult::Unknown);
        };
        let Self { redacted_end, sealed_end, .. } = self;
        let mut interaction = stored.interaction;
        closing::close(
            connection,
            &mut execution_row,
            &interaction,
            redacted_end,
            sealed_end.as_deref(),
        )
        .await?;
        execution_row.save(connection).await?;
        interaction.state = redacted_end.state;
        Ok(CloseInteractionResult::Closed(Box::new(interaction)))
    }
}

#[async_trait]
impl WriteCommand for RecordAnswerDelivery {
    type WriteOutput = ();

    fn invalidation(&self) -> Invalidation {
        Invalidation::One(self.execution)
    }

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<()> {
        let statement = sql::statement(UPDATE_DELIVERED).bind(self.id.0).bind(micros(self.at));
        statement.execute(connection).await?;
        Ok(())
    }
}
