//! Settles who may enter, before the door opens and whenever that changes.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use algonius_actors::model::principal::{Right, Scope, Token, TokenSeed};
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::ledger::Ledger;
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;

use crate::config::{Agent, Settings};
use crate::front::Specs;
use crate::serve::auth::{self, Guard};
use crate::{StartError, token};

/// The name of the command line's own token.
pub(super) const OPERATOR: &str = "operator";

/// The name of who comes without a token, as agents allow it.
pub(super) const ANONYMOUS: &str = auth::ANONYMOUS;

/// Sees that no agent lets everybody in where others can reach it.
pub(super) fn guarded(agents: &[Agent], address: SocketAddr) -> Result<(), StartError> {
    let open = agents.iter().find(|agent| agent.spec.exposure.open);
    match open.filter(|_| !address.ip().is_loopback()) {
        Some(agent) => Err(StartError::Open { agent: agent.spec.id.clone() }),
        None => Ok(()),
    }
}

/// Everybody who may enter.
pub(super) struct Keys {
    tokens: Vec<Token>,
    nobodies: Vec<TokenSeed>,
    /// The text of the command line's own token, which must be masked.
    pub(super) own: String,
}

impl Keys {
    /// Puts the tokens of the configuration and the command line's own in the place of those before,
    /// and reads all that count.
    ///
    /// # Errors
    /// When the token file holds none and can hold none, or the ledger does not answer.
    pub(super) async fn seed(
        ledger: &dyn Ledger,
        settings: &Settings,
        agents: &Specs,
        clock: &dyn Clock,
    ) -> Result<Self, StartError> {
        let own = own(&settings.server.token_file).await?;
        let nobodies = auth::nobodies(agents.values().map(|spec| &**spec));
        let mut seeds = settings.tokens.clone();
        seeds.extend(nobodies.iter().cloned());
        seeds.push(operator(&own));
        ledger.seed(seeds, clock.now()).await?;
        Ok(Self { tokens: ledger.tokens().await?, nobodies, own })
    }

    /// Reads all that count again.
    ///
    /// # Errors
    /// When the ledger does not answer.
    pub(super) async fn refresh(&mut self, ledger: &dyn Ledger) -> Result<(), StartError> {
        self.tokens = ledger.tokens().await?;
        Ok(())
    }

    /// Who knows them, at the doors of these agents.
    pub(super) fn guard(&self, agents: &Specs) -> Guard {
        let specs = agents.values().map(|spec| &**spec);
        Guard::new(self.tokens.clone(), specs, &self.nobodies)
    }
}

/// The text of the command line's own token; made when there is none.
async fn own(file: &Path) -> Result<String, StartError> {
    let file: PathBuf = file.to_owned();
    let read = spawn_blocking(move || token::ensure(&file)).await;
    let text = read.unwrap_or_else(|error| Err(io::Error::other(error)));
    let text = text.map_err(|source| StartError::Token { source })?;
    if text.len() < auth::SHORTEST { Err(StartError::ShortToken) } else { Ok(text) }
}

fn operator(text: &str) -> TokenSeed {
    let rights = Right::ALL.to_vec();
    TokenSeed {
        name: OPERATOR.to_owned(),
        hash: Sha256::digest(text.as_bytes()).into(),
        scope: Scope { rights, agents: None },
        expires: None,
    }
}
