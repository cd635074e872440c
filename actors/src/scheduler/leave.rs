//! Whether an owner may ask. The tokens are read once for all that are asked for together.

use tokio::sync::OnceCell;

use crate::door::Gateway;
use crate::model::principal::{Right, Token};
use crate::model::request::Request;
use crate::ports::ledger::LedgerError;

/// The tokens of one moment, once they are read.
#[derive(Default)]
pub(super) struct Leave(OnceCell<Vec<Token>>);

impl Leave {
    /// Whether a token that counts lets the owner ask the agent.
    pub(super) async fn is_given(
        &self,
        door: &Gateway,
        request: &Request,
    ) -> Result<bool, LedgerError> {
        let now = door.now();
        let tokens = self.0.get_or_try_init(|| door.kit.ledger.tokens()).await?;
        let mut own = tokens.iter().filter(|token| token.principal == request.owner);
        Ok(own.any(|token| {
            let is_valid = token.expires.is_none_or(|expires| expires > now);
            is_valid && token.scope.allows(Right::Run, Some(&request.agent))
        }))
    }
}
