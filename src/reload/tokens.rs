//! Tokens that are made and revoked while the service runs.

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::principal::Right;
use sha2::{Digest, Sha256};
use tokio::task::spawn_blocking;

use super::Reloader;
use super::steward::unread;
use crate::admit::{ANONYMOUS, OPERATOR};
use crate::serve::admin::{Known, Wanted};
use crate::wire::admin::{TokenEntry, TokenMade};
use crate::{StartError, store, token};

impl Reloader {
    /// Makes a token.
    pub(super) async fn make(&mut self, wanted: Wanted) -> Result<TokenMade, Failure> {
        if self.is_configured(&wanted.name) {
            return Err(exists(&wanted.name));
        }
        let text = spawn_blocking(token::random).await.ok().and_then(Result::ok);
        let text = text.ok_or_else(|| Failure::new(Code::Internal, "no token could be made"))?;
        let (now, replaces, name) = (self.world.clock.now(), wanted.replaces, wanted.name.clone());
        let seed = wanted.with(Sha256::digest(text.as_bytes()).into());
        let entry = entry(&store::Known {
            name: seed.name.clone(),
            hash: seed.hash,
            scope: seed.scope.clone(),
            expires: seed.expires,
            seeded: false,
            created: now,
        });
        self.world.masks.add(text.clone()).await; // It is masked before anybody has it.
        let issued = self.world.store.issue(seed, replaces, now).await;
        if !issued.map_err(|error| unread(&error))? {
            return Err(exists(&name));
        }
        self.admit_again().await?;
        tracing::info!(name, "token made");
        Ok(TokenMade { entry, token: text })
    }

    /// Removes a token.
    pub(super) async fn revoke(&mut self, name: String) -> Result<(), Failure> {
        let revoked = self.world.store.revoke(name.clone()).await;
        if revoked.map_err(|error| unread(&error))? {
            self.admit_again().await?;
            tracing::info!(name, "token revoked");
            return Ok(());
        }
        let message = if self.is_configured(&name) {
            format!("the token `{name}` is of the configuration, where it can be taken out")
        } else {
            format!("there is no token `{name}`")
        };
        Err(Failure::new(Code::TokenUnknown, message))
    }

    /// Gives the operator's token another text.
    pub(super) async fn rotate(&mut self) -> Result<(), Failure> {
        let file = self.settings.server.token_file.clone();
        let replaced = spawn_blocking(move || token::replace(&file)).await;
        if !replaced.is_ok_and(|replaced| replaced.is_ok()) {
            let message = "the token file could not be written; the token is as it was";
            return Err(Failure::new(Code::Internal, message));
        }
        self.sight.begin();
        let (settings, specs) = (self.settings.clone(), self.specs.clone());
        self.keys = self.seed(&settings, &specs).await.map_err(|error| unseeded(&error))?;
        self.show();
        tracing::info!("the operator's token has another text");
        Ok(())
    }

    /// Lets in who has a token now, and nobody else.
    async fn admit_again(&mut self) -> Result<(), Failure> {
        let refreshed = self.keys.refresh(&*self.world.store).await;
        refreshed.map_err(|error| unseeded(&error))?;
        self.show();
        Ok(())
    }

    fn is_configured(&self, name: &str) -> bool {
        [OPERATOR, ANONYMOUS].contains(&name)
            || self.settings.tokens.iter().any(|seed| seed.name == name)
    }
}

/// Tokens as they are shown: those of people.
pub(super) fn shown(known: Vec<store::Known>) -> Vec<Known> {
    let known = known.into_iter().filter(|token| token.name != ANONYMOUS);
    known.map(|token| (entry(&token), token.scope)).collect()
}

fn entry(known: &store::Known) -> TokenEntry {
    let words = |rights: &[Right]| rights.iter().map(|it| it.as_str().to_owned()).collect();
    let agents = known.scope.agents.as_ref();
    TokenEntry {
        name: known.name.clone(),
        scopes: words(&known.scope.rights),
        agents: agents.map(|ids| ids.iter().map(ToString::to_string).collect()),
        expires: known.expires,
        origin: if known.seeded { "config" } else { "api" }.to_owned(),
        created: known.created,
    }
}

fn exists(name: &str) -> Failure {
    Failure::new(Code::TokenExists, format!("there is a token `{name}` already"))
}

fn unseeded(error: &StartError) -> Failure {
    tracing::error!(%error, "tokens could not be read again");
    Failure::new(Code::LedgerUnavailable, "the tokens could not be read again")
}
