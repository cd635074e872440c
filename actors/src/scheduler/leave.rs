//! Whether an owner may ask. The tokens are read once for all that are decided and asked for together.

use tokio::sync::OnceCell;

use super::asking::reason;
use crate::door::Gateway;
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::id::{AgentId, PrincipalId};
use crate::model::occurrence::Verdict;
use crate::model::principal::{Right, Token};
use crate::ports::ledger::LedgerError;
use crate::ports::timebook::Advance;

/// The tokens of one moment, once they are read.
#[derive(Default)]
pub(super) struct Leave(OnceCell<Vec<Token>>);

impl Leave {
    /// Whether a token that counts lets an owner ask an agent.
    pub(super) async fn is_given(
        &self,
        door: &Gateway,
        owner: PrincipalId,
        agent: &AgentId,
    ) -> Result<bool, LedgerError> {
        let now = door.now();
        let tokens = self.0.get_or_try_init(|| door.kit.ledger.tokens()).await?;
        let mut own = tokens.iter().filter(|token| token.principal == owner);
        Ok(own.any(|token| {
            let is_valid = token.expires.is_none_or(|expires| expires > now);
            is_valid && token.scope.allows(Right::Run, Some(agent))
        }))
    }

    /// Refuses what nobody may ask for, before it is written down: it need not be written twice.
    pub(super) async fn refuse(&self, door: &Gateway, batch: &mut [Advance]) {
        let decided = batch.iter_mut().flat_map(|advance| &mut advance.occurrences);
        for occurrence in decided.filter(|it| it.verdict == Verdict::Pending) {
            match self.is_given(door, occurrence.owner, &occurrence.agent).await {
                Ok(true) => {}
                Ok(false) => {
                    occurrence.verdict = Verdict::Refused;
                    occurrence.reason = Some(reason(&not_given()));
                }
                Err(_) => return, // Who asks looks again.
            }
        }
    }
}

/// Why one may not ask.
pub(super) fn not_given() -> Failure {
    Failure::new(Code::Forbidden, "no token of its owner allows to ask this agent")
}
