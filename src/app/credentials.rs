//! Credentials: the tokens that the service accepts, at the start and after each change.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use algonius_actors::model::access::principal::{NewToken, Right, Scope, Token};
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::ledger::Ledger;
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;

use crate::StartError;
use crate::app::http_state::AgentSpecs;
use crate::config::{ConfiguredAgent, Settings};
use crate::platform::operator_token;
use crate::serve::auth::authenticator::{self, Authenticator};

/// Name of the command line's own token.
pub(crate) const OPERATOR_TOKEN_NAME: &str = "operator";

/// Name of the principal of callers without a token, if an agent allows them.
pub(crate) const ANONYMOUS_PRINCIPAL_NAME: &str = authenticator::ANONYMOUS_PRINCIPAL_NAME;

/// Rejects an agent that allows anonymous callers if the service listens on an address that is not loopback.
pub(crate) fn check_anonymous_access(
    agents: &[ConfiguredAgent],
    address: SocketAddr,
) -> Result<(), StartError> {
    let open_agent = agents.iter().find(|agent| agent.spec.endpoint_config.allows_anonymous);
    match open_agent.filter(|_| !address.ip().is_loopback()) {
        Some(agent) => Err(StartError::AnonymousAccess { agent: agent.spec.id.clone() }),
        None => Ok(()),
    }
}

/// Credentials that the service accepts.
pub(crate) struct Credentials {
    tokens: Vec<Token>,
    anonymous_principals: Vec<NewToken>,
    /// Text of the command line's own token, which must be redacted.
    pub(crate) operator_token: String,
}

impl Credentials {
    /// Replaces the stored tokens of the configuration and the command line's own token, and reads all valid tokens.
    ///
    /// # Errors
    /// Fails if the token file is missing and cannot be created, or if the ledger does not respond.
    pub(crate) async fn store_and_load(
        ledger: &dyn Ledger,
        settings: &Settings,
        agents: &AgentSpecs,
        clock: &dyn Clock,
    ) -> Result<Self, StartError> {
        let operator_token = ensure_operator_token(&settings.server.token_file).await?;
        // Anonymous callers have principals too, so that their executions have owners.
        let anonymous_principals =
            authenticator::anonymous_principal_tokens(agents.values().map(|spec| &**spec));
        let mut new_tokens = settings.callers.tokens.clone();
        new_tokens.extend(anonymous_principals.iter().cloned());
        new_tokens.push(new_operator_token(&operator_token));
        ledger.replace_configured_tokens(new_tokens, clock.now()).await?;
        Ok(Self { tokens: ledger.tokens().await?, anonymous_principals, operator_token })
    }

    /// Reads all valid tokens again.
    ///
    /// # Errors
    /// Fails if the ledger does not respond.
    pub(crate) async fn reload_tokens(&mut self, ledger: &dyn Ledger) -> Result<(), StartError> {
        self.tokens = ledger.tokens().await?;
        Ok(())
    }

    /// Returns the authenticator for these agents.
    pub(crate) fn authenticator(&self, agents: &AgentSpecs) -> Authenticator {
        let specs = agents.values().map(|spec| &**spec);
        Authenticator::new(self.tokens.clone(), specs, &self.anonymous_principals)
    }
}

/// Returns the text of the command line's own token; creates the token if it does not exist.
async fn ensure_operator_token(file: &Path) -> Result<String, StartError> {
    let file: PathBuf = file.to_owned();
    let result = spawn_blocking(move || operator_token::read_or_create(&file)).await;
    let text = result.unwrap_or_else(|error| Err(io::Error::other(error)));
    let text = text.map_err(|source| StartError::TokenFile { source })?;
    if text.len() < authenticator::MIN_TOKEN_BYTES { Err(StartError::ShortToken) } else { Ok(text) }
}

fn new_operator_token(token: &str) -> NewToken {
    let rights = Right::ALL.to_vec();
    NewToken {
        name: OPERATOR_TOKEN_NAME.to_owned(),
        hash: Sha256::digest(token.as_bytes()).into(),
        scope: Scope { rights, agents: None },
        expires_at: None,
    }
}
