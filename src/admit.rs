//! Settles who may enter, before the door opens.

use std::net::SocketAddr;
use std::path::Path;

use algonius_actors::model::principal::{Right, Scope, TokenSeed};
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::ledger::Ledger;
use sha2::{Digest, Sha256};

use crate::config::Agent;
use crate::serve::auth::{self, Guard};
use crate::{StartError, token};

/// Sees that no agent lets everybody in where others can reach it.
pub(super) fn guarded(agents: &[Agent], address: SocketAddr) -> Result<(), StartError> {
    let open = agents.iter().find(|agent| agent.spec.exposure.open);
    match open.filter(|_| !address.ip().is_loopback()) {
        Some(agent) => Err(StartError::Open { agent: agent.spec.id.clone() }),
        None => Ok(()),
    }
}

/// Who may enter, and the texts that must be masked.
pub(super) async fn keys(
    ledger: &dyn Ledger,
    token_file: &Path,
    agents: &[Agent],
    mut tokens: Vec<TokenSeed>,
    clock: &dyn Clock,
) -> Result<(Guard, Vec<String>), StartError> {
    let specs = agents.iter().map(|agent| &agent.spec);
    let nobodies = auth::nobodies(specs.clone());
    tokens.extend(nobodies.iter().cloned());
    let own = seed(ledger, token_file, tokens, clock).await?;
    Ok((Guard::new(ledger.tokens().await?, specs, &nobodies), own))
}

/// Puts the configured tokens and the command line's own into the ledger. Gives the texts that
/// must be masked.
async fn seed(
    ledger: &dyn Ledger,
    token_file: &Path,
    mut tokens: Vec<TokenSeed>,
    clock: &dyn Clock,
) -> Result<Vec<String>, StartError> {
    let text = token::ensure(token_file).map_err(|source| StartError::Token { source })?;
    if text.len() < auth::SHORTEST {
        return Err(StartError::ShortToken);
    }
    let rights = vec![Right::Read, Right::Run, Right::Approve, Right::Admin];
    tokens.push(TokenSeed {
        name: "operator".to_owned(),
        hash: Sha256::digest(text.as_bytes()).into(),
        scope: Scope { rights, agents: None },
        expires: None,
    });
    ledger.seed(tokens, clock.now()).await?;
    Ok(vec![text])
}
