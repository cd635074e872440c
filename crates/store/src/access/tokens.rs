//! Tokens that are created at run time.

use algonius_actors::model::access::principal::{Scope, TokenSeed};
use algonius_actors::ports::ledger::LedgerError;
use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::principals::{insert_principal, insert_token};
use crate::Store;
use crate::engine::fault::ledger_error;
use crate::engine::read_cache::Invalidation;
use crate::engine::row_codec::Columns;
use crate::engine::sql::{self, DatabaseConnection, Readers};
use crate::engine::writer::WriteCommand;

/// Removal of tokens that do not belong to the configuration.
const REVOKE: &str = "
    DELETE FROM tokens
    WHERE NOT seeded AND principal = (SELECT id FROM principals WHERE name = $1)";

const HELD: &str = "
    SELECT count(*) AS held FROM tokens JOIN principals ON principals.id = tokens.principal
    WHERE NOT seeded AND name = $1";

const KNOWN: &str = "
    SELECT name, hash, scope, expires_at, seeded, tokens.created_at
    FROM tokens JOIN principals ON principals.id = tokens.principal
    ORDER BY name, seeded DESC, tokens.id";

/// Stored token.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredToken {
    /// Name of the token's principal.
    pub name: String,
    /// SHA-256 of the token's text.
    pub hash: [u8; 32],
    /// Scope of the token.
    pub scope: Scope,
    /// Time at which the token expires; `None` means never.
    pub expires: Option<DateTime<Utc>>,
    /// True if the token belongs to the configuration.
    pub seeded: bool,
    /// Time of the creation.
    pub created: DateTime<Utc>,
}

impl Store {
    /// Adds a token that does not belong to the configuration; replaces one with the same name if `replaces` is
    /// true. Returns true if the token was added; without replacement, an existing token with the same name prevents
    /// it.
    ///
    /// # Errors
    /// Fails if nothing was committed.
    pub async fn issue(
        &self,
        seed: TokenSeed,
        replaces: bool,
        at: DateTime<Utc>,
    ) -> Result<bool, LedgerError> {
        self.writer.order(Issue { seed, replaces, at }).await
    }

    /// Removes the token with this name, unless it belongs to the configuration. Returns true if such a token
    /// existed. The principal keeps its executions and schedules.
    ///
    /// # Errors
    /// Fails if nothing was committed.
    pub async fn revoke(&self, name: String) -> Result<bool, LedgerError> {
        self.writer.order(Revoke { name }).await
    }

    /// Returns all tokens in the order of their names.
    ///
    /// # Errors
    /// Fails if the tokens cannot be read.
    pub async fn known_tokens(&self) -> Result<Vec<StoredToken>, LedgerError> {
        known(&self.readers).await.map_err(ledger_error)
    }
}

struct Issue {
    seed: TokenSeed,
    replaces: bool,
    at: DateTime<Utc>,
}

#[async_trait]
impl WriteCommand for Issue {
    type Answer = bool;

    fn touches(&self) -> Invalidation {
        Invalidation::Nothing
    }

    async fn make(&self, connection: &mut DatabaseConnection) -> sql::Result<bool> {
        let name = self.seed.name.as_str();
        let held = sql::query(HELD).bind(name).fetch_one(&mut *connection).await?;
        let is_held = Columns(&held).number::<u32>("held")? > 0;
        if is_held && !self.replaces {
            return Ok(false);
        }
        sql::query(REVOKE).bind(name).execute(&mut *connection).await?;
        let principal = insert_principal(connection, name, self.at).await?;
        insert_token(connection, principal, (&self.seed, false), self.at).await?;
        Ok(true)
    }
}

struct Revoke {
    name: String,
}

#[async_trait]
impl WriteCommand for Revoke {
    type Answer = bool;

    fn touches(&self) -> Invalidation {
        Invalidation::Nothing
    }

    async fn make(&self, connection: &mut DatabaseConnection) -> sql::Result<bool> {
        let done = sql::query(REVOKE).bind(self.name.as_str()).execute(connection).await?;
        Ok(done > 0)
    }
}

async fn known(pool: &Readers) -> sql::Result<Vec<StoredToken>> {
    let rows = sql::query(KNOWN).fetch_all(pool).await?;
    let known = rows.iter().map(|row| {
        let columns = Columns(row);
        Ok(StoredToken {
            name: columns.plain("name")?,
            hash: columns.bytes("hash")?,
            scope: columns.json("scope")?,
            expires: columns.maybe_time("expires_at")?,
            seeded: columns.plain("seeded")?,
            created: columns.time("created_at")?,
        })
    });
    known.collect()
}
