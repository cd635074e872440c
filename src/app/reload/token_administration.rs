//! Tokens that are created and revoked at run time.

use std::path::PathBuf;
use std::sync::Arc;

use algonius_actors::model::access::principal::Right;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::ledger::{Ledger, LedgerError};
use algonius_store::{Store, StoredToken};
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;

use super::redaction::RedactionState;
use crate::StartError;
use crate::app::credentials::{ANONYMOUS_PRINCIPAL_NAME, Credentials, OPERATOR_TOKEN_NAME};
use crate::app::http_state::AgentSpecs;
use crate::config::Settings;
use crate::platform::operator_token;
use crate::serve::auth::authenticator::Authenticator;
use crate::serve::ops::admin::{ListedToken, TokenSpec};
use crate::wire::admin::{CreatedToken, TokenEntry};

/// Tokens that the service accepts, and their changes at run time.
pub(super) struct TokenAdministration {
    store: Arc<Store>,
    clock: Arc<dyn Clock>,
    credentials: Credentials,
}

impl TokenAdministration {
    /// Returns the administration of the credentials of the start.
    pub(super) const fn new(
        store: Arc<Store>,
        clock: Arc<dyn Clock>,
        credentials: Credentials,
    ) -> Self {
        Self { store, clock, credentials }
    }

    /// Returns the check of callers of these agents.
    pub(super) fn authenticator(&self, specs: &AgentSpecs) -> Authenticator {
        self.credentials.authenticator(specs)
    }

    /// Returns the text of the operator's token in force.
    pub(super) fn operator_token(&self) -> &str {
        &self.credentials.operator_token
    }

    /// Stores the tokens of settings in the ledger, and reads the credentials, which [`Self::replace`] puts into
    /// force.
    ///
    /// # Errors
    /// Fails if the token file cannot be used, or if the ledger does not respond.
    pub(super) async fn store_and_load_credentials(
        &self,
        settings: &Settings,
        specs: &AgentSpecs,
        redaction: &mut RedactionState,
    ) -> Result<Credentials, StartError> {
        let ledger: &dyn Ledger = &*self.store;
        let credentials =
            Credentials::store_and_load(ledger, settings, specs, &*self.clock).await?;
        redaction.add_secret(credentials.operator_token.clone()).await;
        Ok(credentials)
    }

    /// Puts credentials into force.
    pub(super) fn replace(&mut self, credentials: Credentials) {
        self.credentials = credentials;
    }

    /// Reads the credentials again, and puts them into force.
    ///
    /// # Errors
    /// Fails if the token file cannot be used, or if the ledger does not respond.
    pub(super) async fn reload_credentials(
        &mut self,
        settings: &Settings,
        specs: &AgentSpecs,
        redaction: &mut RedactionState,
    ) -> Result<(), Failure> {
        let credentials = self.store_and_load_credentials(settings, specs, redaction).await;
        self.credentials = credentials.map_err(|error| token_reload_failure(&error))?;
        Ok(())
    }

    /// Creates a token.
    ///
    /// # Errors
    /// Fails if a token has this name, or if the ledger does not respond.
    pub(super) async fn create(
        &mut self,
        spec: TokenSpec,
        settings: &Settings,
        redaction: &mut RedactionState,
    ) -> Result<CreatedToken, Failure> {
        if is_configured_or_reserved(&spec.name, settings) {
            return Err(token_exists_failure(&spec.name));
        }
        let token_text =
            spawn_blocking(operator_token::generate_random_token).await.ok().and_then(Result::ok);
        let token_text =
            token_text.ok_or_else(|| Failure::new(Code::Internal, "no token could be made"))?;
        let (now, replaces_existing, name) =
            (self.clock.now(), spec.replaces_existing, spec.name.clone());
        // Only the hash is stored, so that a copy of the ledger gives no access.
        let new_token = spec.into_new_token(Sha256::digest(token_text.as_bytes()).into());
        let entry = token_entry(&StoredToken {
            name: new_token.name.clone(),
            hash: new_token.hash,
            scope: new_token.scope.clone(),
            expires_at: new_token.expires_at,
            is_configured: false,
            created_at: now,
        });
        redaction.add_secret(token_text.clone()).await; // The text is registered for redaction before any caller has it.
        let issued = self.store.issue_token(new_token, replaces_existing, now).await;
        if !issued.map_err(|error| ledger_failure(&error))? {
            return Err(token_exists_failure(&name));
        }
        self.reload_tokens().await?;
        tracing::info!(name, "token created");
        Ok(CreatedToken { entry, token: token_text })
    }

    /// Revokes a token.
    ///
    /// # Errors
    /// Fails if no created token has this name, or if the ledger does not respond.
    pub(super) async fn revoke(
        &mut self,
        name: String,
        settings: &Settings,
    ) -> Result<(), Failure> {
        let revoked = self.store.revoke_token(name.clone()).await;
        if revoked.map_err(|error| ledger_failure(&error))? {
            self.reload_tokens().await?;
            tracing::info!(name, "token revoked");
            return Ok(());
        }
        let message = if is_configured_or_reserved(&name, settings) {
            format!("the token `{name}` is configured; remove it from the configuration")
        } else {
            format!("there is no token `{name}`")
        };
        Err(Failure::new(Code::TokenUnknown, message))
    }

    /// Reads the present tokens.
    async fn reload_tokens(&mut self) -> Result<(), Failure> {
        self.credentials
            .reload_tokens(&*self.store)
            .await
            .map_err(|error| token_reload_failure(&error))
    }
}

/// Writes a new token into the token file.
///
/// # Errors
/// Fails if the file cannot be written.
pub(super) async fn replace_token_file(file: PathBuf) -> Result<(), Failure> {
    let result = spawn_blocking(move || operator_token::rotate_token(&file)).await;
    if result.is_ok_and(|result| result.is_ok()) {
        return Ok(());
    }
    let message = "the token file could not be written; the token is unchanged";
    Err(Failure::new(Code::Internal, message))
}

fn is_configured_or_reserved(name: &str, settings: &Settings) -> bool {
    [OPERATOR_TOKEN_NAME, ANONYMOUS_PRINCIPAL_NAME].contains(&name)
        || settings.callers.tokens.iter().any(|seed| seed.name == name)
}

/// Returns the tokens for display, without anonymous principals.
pub(super) fn listed_tokens(stored_tokens: Vec<StoredToken>) -> Vec<ListedToken> {
    let stored_tokens =
        stored_tokens.into_iter().filter(|token| token.name != ANONYMOUS_PRINCIPAL_NAME);
    stored_tokens.map(|token| (token_entry(&token), token.scope)).collect()
}

fn token_entry(token: &StoredToken) -> TokenEntry {
    let names = |rights: &[Right]| rights.iter().map(|it| it.as_str().to_owned()).collect();
    let agents = token.scope.agents.as_ref();
    TokenEntry {
        name: token.name.clone(),
        scopes: names(&token.scope.rights),
        agents: agents.map(|ids| ids.iter().map(ToString::to_string).collect()),
        expires: token.expires_at,
        origin: if token.is_configured { "config" } else { "api" }.to_owned(),
        created: token.created_at,
    }
}

fn token_exists_failure(name: &str) -> Failure {
    Failure::new(Code::TokenExists, format!("there is a token `{name}` already"))
}

fn token_reload_failure(error: &StartError) -> Failure {
    tracing::error!(%error, "failed to reload tokens");
    Failure::new(Code::LedgerUnavailable, "the ledger could not be reached")
}

/// Converts a ledger error into a failure.
pub(super) fn ledger_failure(error: &LedgerError) -> Failure {
    tracing::error!(%error, "ledger failed to update tokens");
    Failure::new(Code::LedgerUnavailable, "the ledger could not be reached")
}
