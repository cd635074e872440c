//! Records about interactions, which the writer of the execution makes in the order of the other records.

use std::sync::Arc;

use chrono::{DateTime, Utc};

use crate::execution::{ExecutionMsg, InteractionMsg};
use crate::model::execution::Fence;
use crate::model::interaction::{
    Interaction, InteractionEnd, InteractionId, InteractionRequestKey, InteractionState,
};
use crate::model::permission::PermissionDecision;
use crate::ports::interaction_store::InteractionStore;
use crate::ports::ledger::LedgerError;

/// Write operation about an interaction.
#[derive(Clone)]
pub(in crate::execution) enum InteractionOp {
    /// Record an open interaction.
    Open(Fence, Box<Interaction>),
    /// Close an interaction without an answer.
    Close(InteractionId, Box<InteractionEnd>),
    /// Record that an answer was written to the agent.
    RecordDelivery(InteractionId, DateTime<Utc>),
    /// Record that the answer to this request was written to the agent by an earlier process of the service.
    RecordEarlierDelivery(InteractionRequestKey, DateTime<Utc>),
    /// Record the verdict of a rule.
    RecordDecision(Box<PermissionDecision>),
}

impl InteractionOp {
    /// Performs the operation. Returns the message for the actor, if there is one.
    ///
    /// # Errors
    /// Returns an error if nothing was committed; the operation can be repeated.
    pub(super) async fn perform(
        self,
        interactions: &Arc<dyn InteractionStore>,
    ) -> Result<Option<ExecutionMsg>, LedgerError> {
        let msg = match self {
            Self::Open(fence, interaction) => {
                let outcome = interactions.open((*interaction).clone(), fence).await?;
                Some(InteractionMsg::Recorded(interaction, outcome))
            }
            // Without an answer there is nothing to redact.
            Self::Close(id, end) => {
                Some(InteractionMsg::Closed(interactions.close(id, (*end).clone(), *end).await?))
            }
            Self::RecordDelivery(id, at) => {
                interactions.record_answer_delivery(id, at).await?;
                None
            }
            Self::RecordEarlierDelivery(key, at) => {
                let interaction = interactions.find_by_request_key(&key).await?;
                // The cancellation of a request that was withdrawn or lost is no answer.
                let has_answer = |it: &Interaction| {
                    matches!(it.state, InteractionState::Answered | InteractionState::Expired)
                };
                if let Some(interaction) = interaction.filter(has_answer) {
                    interactions.record_answer_delivery(interaction.id, at).await?;
                }
                None
            }
            Self::RecordDecision(decision) => {
                interactions.record_decision(*decision).await?;
                None
            }
        };
        Ok(msg.map(ExecutionMsg::Interaction))
    }
}
