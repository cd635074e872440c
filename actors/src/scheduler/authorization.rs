//! Authorization of the owners. The tokens are read once for all occurrences that are decided together.

use tokio::sync::OnceCell;

use crate::gateway::requests::RequestHandle;
use crate::model::access::principal::{Right, Token};
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::id::{AgentId, PrincipalId};
use crate::model::schedule::occurrence::OccurrenceStatus;
use crate::ports::ledger::LedgerError;
use crate::ports::schedule_store::ScheduleEvaluation;

/// Snapshot of the tokens, read on first use.
#[derive(Default)]
pub(super) struct TokenSnapshot(OnceCell<Vec<Token>>);

impl TokenSnapshot {
    /// Returns true if a valid token permits the owner to use the agent.
    pub(super) async fn is_authorized(
        &self,
        request_handle: &RequestHandle,
        owner: PrincipalId,
        agent: &AgentId,
    ) -> Result<bool, LedgerError> {
        let now = request_handle.reader.now();
        let tokens =
            self.0.get_or_try_init(|| request_handle.reader.services.ledger.tokens()).await?;
        let mut owner_tokens = tokens.iter().filter(|token| token.principal == owner);
        Ok(owner_tokens.any(|token| {
            let is_valid = token.expires_at.is_none_or(|expires| expires > now);
            is_valid && token.scope.allows(Right::Run, Some(agent))
        }))
    }

    /// Rejects unauthorized occurrences before they are stored, which saves a second write.
    pub(super) async fn reject_unauthorized(
        &self,
        request_handle: &RequestHandle,
        batch: &mut [ScheduleEvaluation],
    ) {
        let occurrences = batch.iter_mut().flat_map(|evaluation| &mut evaluation.occurrences);
        for occurrence in
            occurrences.filter(|occurrence| occurrence.status == OccurrenceStatus::Pending)
        {
            match self.is_authorized(request_handle, occurrence.owner, &occurrence.agent).await {
                Ok(true) => {}
                Ok(false) => {
                    occurrence.status = OccurrenceStatus::Refused;
                    occurrence.reason = Some(format_refusal_reason(&unauthorized_failure()));
                }
                Err(_) => return, // The submission checks again.
            }
        }
    }
}

/// Returns the rejection of an unauthorized occurrence.
pub(super) fn unauthorized_failure() -> Failure {
    Failure::new(Code::Forbidden, "no token of its owner permits requests to this agent")
}

/// Returns the reason of a rejection in its stored form.
pub(super) fn format_refusal_reason(failure: &Failure) -> String {
    format!("{}: {}", failure.code, failure.message)
}
