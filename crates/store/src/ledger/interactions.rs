//! Interactions: open questions of agents, their ends, and the permission decisions that follow from them.

use algonius_actors::model::execution::Fence;
use algonius_actors::model::interaction::{
    Interaction, InteractionEnd, InteractionFilter, InteractionId, InteractionRequestKey,
    InteractionState,
};
use algonius_actors::model::permission::{DecisionFilter, PermissionDecision};
use algonius_actors::ports::interaction_store::{
    CloseInteractionOutcome, InteractionStore, OpenInteractionOutcome,
};
use algonius_actors::ports::ledger::LedgerError;
use async_trait::async_trait;
use chrono::{DateTime, Utc};

use crate::Store;
use crate::engine::error::ledger_error;
use crate::engine::row_codec::to_json;
use crate::engine::sql;
use commands::OpenInteraction;
use commands::{
    CloseInteraction, CloseInteractionResult, OpenInteractionResult, RecordAnswerDelivery,
};
use decisions::RecordPermissionDecision;
use row::StoredInteraction;

pub(crate) use answer_seal::AnswerSeal;
pub(super) use closing::{close_all, close_for_earlier_attempts};
#[cfg(test)]
pub(crate) use row::interaction_list_query;

mod answer_seal;
mod closing;
mod commands;
mod decisions;
mod row;
mod team_runs;

#[async_trait]
impl InteractionStore for Store {
    async fn open(
        &self,
        interaction: Interaction,
        fence: Fence,
    ) -> Result<OpenInteractionOutcome, LedgerError> {
        Ok(match self.writer.submit(OpenInteraction { interaction, fence }).await? {
            OpenInteractionResult::New => OpenInteractionOutcome::New,
            OpenInteractionResult::Existing(stored) => {
                OpenInteractionOutcome::Existing(Box::new(self.unseal_or_omit_answer(*stored)))
            }
            OpenInteractionResult::Superseded => OpenInteractionOutcome::Superseded,
        })
    }

    async fn close(
        &self,
        id: InteractionId,
        end: InteractionEnd,
        redacted_end: InteractionEnd,
    ) -> Result<CloseInteractionOutcome, LedgerError> {
        // The execution of an interaction never changes, so it can be read before the transaction.
        let Some(stored) = row::load(&self.readers, id).await.map_err(ledger_error)? else {
            return Ok(CloseInteractionOutcome::Unknown);
        };
        let execution = stored.interaction.request_key.execution;
        let sealed_end =
            self.seal_end_if_redacted(id, &end, &redacted_end).map_err(ledger_error)?;
        let command = CloseInteraction { id, execution, redacted_end, sealed_end };
        Ok(match self.writer.submit(command).await? {
            CloseInteractionResult::Closed(interaction) => {
                CloseInteractionOutcome::Closed(Box::new(Interaction {
                    end: Some(end),
                    ..*interaction
                }))
            }
            CloseInteractionResult::AlreadyClosed(stored) => {
                CloseInteractionOutcome::AlreadyClosed(self.unseal_interaction(*stored)?)
            }
            CloseInteractionResult::Unknown => CloseInteractionOutcome::Unknown,
        })
    }

    async fn record_answer_delivery(
        &self,
        id: InteractionId,
        at: DateTime<Utc>,
    ) -> Result<(), LedgerError> {
        let Some(stored) = row::load(&self.readers, id).await.map_err(ledger_error)? else {
            return Ok(());
        };
        let execution = stored.interaction.request_key.execution;
        self.writer.submit(RecordAnswerDelivery { id, execution, at }).await
    }

    async fn interaction(&self, id: InteractionId) -> Result<Option<Interaction>, LedgerError> {
        let stored = row::load(&self.readers, id).await.map_err(ledger_error)?;
        stored
            .map(|stored| self.unseal_interaction(stored).map(|interaction| *interaction))
            .transpose()
    }

    async fn find_by_request_key(
        &self,
        request_key: &InteractionRequestKey,
    ) -> Result<Option<Interaction>, LedgerError> {
        let stored = row::load_by_request_key(&self.readers, request_key).await;
        Ok(stored.map_err(ledger_error)?.map(|stored| stored.interaction))
    }

    async fn interactions(
        &self,
        filter: InteractionFilter,
    ) -> Result<Vec<Interaction>, LedgerError> {
        row::list(&self.readers, &filter).await.map_err(ledger_error)
    }

    async fn record_decision(&self, decision: PermissionDecision) -> Result<(), LedgerError> {
        self.writer.submit(RecordPermissionDecision(decision)).await
    }

    async fn decisions(
        &self,
        filter: DecisionFilter,
    ) -> Result<Vec<(u64, PermissionDecision)>, LedgerError> {
        decisions::list(&self.readers, &filter).await.map_err(ledger_error)
    }
}

impl Store {
    /// Seals an end whose answer redaction has changed.
    ///
    /// # Errors
    /// Returns an error if the end is none.
    fn seal_end_if_redacted(
        &self,
        id: InteractionId,
        end: &InteractionEnd,
        redacted_end: &InteractionEnd,
    ) -> sql::Result<Option<Vec<u8>>> {
        if end.state == InteractionState::Open || end.state != redacted_end.state {
            return Err(sql::Error::Encode("the end of an interaction is none".into()));
        }
        let seal = || self.answer_seal.seal(id, to_json(end)?.as_bytes());
        (end != redacted_end).then(seal).transpose()
    }

    /// Returns an interaction with its raw answer, or without an answer if the raw one does not open: an error would
    /// make the agent wait for a read that never succeeds.
    fn unseal_or_omit_answer(&self, stored: StoredInteraction) -> Interaction {
        let mut redacted = stored.interaction.clone();
        stored.unseal(&self.answer_seal).unwrap_or_else(|error| {
            tracing::error!(interaction = %redacted.id, %error, "answer to an interaction cannot be read");
            if let Some(closed) = &mut redacted.end {
                closed.answer.value = None;
            }
            redacted
        })
    }

    /// Returns an interaction with its raw answer, if it has one. Without the key of the answer, the interaction has
    /// none.
    fn unseal_interaction(
        &self,
        stored: StoredInteraction,
    ) -> Result<Box<Interaction>, LedgerError> {
        stored.unseal(&self.answer_seal).map(Box::new).map_err(ledger_error)
    }
}
