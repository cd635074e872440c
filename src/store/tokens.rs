//! Tokens that are made while the service runs.

use algonius_actors::model::principal::{Scope, TokenSeed};
use algonius_actors::ports::ledger::LedgerError;
use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::Store;
use super::column::Columns;
use super::fault::ledger_error;
use super::principals::{insert_token, keep_principal};
use super::recent::Touched;
use super::sql::{self, Connection, Readers};
use super::writer::Change;

/// Those that no configuration replaces.
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

/// A token as it is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Known {
    /// The name of its principal.
    pub name: String,
    /// SHA-256 of its text.
    pub hash: [u8; 32],
    /// What it allows.
    pub scope: Scope,
    /// When it stops to count.
    pub expires: Option<DateTime<Utc>>,
    /// Whether it is of the configuration.
    pub seeded: bool,
    /// When it was made.
    pub created: DateTime<Utc>,
}

impl Store {
    /// Adds a token that no configuration replaces; in the place of one of the same name where that
    /// is wanted. Answers whether it was added: without that, one of the same name is in the way.
    ///
    /// # Errors
    /// When nothing was committed.
    pub async fn issue(
        &self,
        seed: TokenSeed,
        replaces: bool,
        at: DateTime<Utc>,
    ) -> Result<bool, LedgerError> {
        self.writer.order(Issue { seed, replaces, at }).await
    }

    /// Removes the token of this name, unless it is of the configuration. Answers whether there was
    /// one. What its principal owns stays its own.
    ///
    /// # Errors
    /// When nothing was committed.
    pub async fn revoke(&self, name: String) -> Result<bool, LedgerError> {
        self.writer.order(Revoke { name }).await
    }

    /// Every token, in the order of the names.
    ///
    /// # Errors
    /// When they could not be read.
    pub async fn known_tokens(&self) -> Result<Vec<Known>, LedgerError> {
        known(&self.readers).await.map_err(ledger_error)
    }
}

struct Issue {
    seed: TokenSeed,
    replaces: bool,
    at: DateTime<Utc>,
}

#[async_trait]
impl Change for Issue {
    type Answer = bool;

    fn touches(&self) -> Touched {
        Touched::Nothing
    }

    async fn make(&self, connection: &mut Connection) -> sql::Result<bool> {
        let name = self.seed.name.as_str();
        let held = sql::query(HELD).bind(name).fetch_one(&mut *connection).await?;
        let is_held = Columns(&held).number::<u32>("held")? > 0;
        if is_held && !self.replaces {
            return Ok(false);
        }
        sql::query(REVOKE).bind(name).execute(&mut *connection).await?;
        let principal = keep_principal(connection, name, self.at).await?;
        insert_token(connection, principal, (&self.seed, false), self.at).await?;
        Ok(true)
    }
}

struct Revoke {
    name: String,
}

#[async_trait]
impl Change for Revoke {
    type Answer = bool;

    fn touches(&self) -> Touched {
        Touched::Nothing
    }

    async fn make(&self, connection: &mut Connection) -> sql::Result<bool> {
        let done = sql::query(REVOKE).bind(self.name.as_str()).execute(connection).await?;
        Ok(done > 0)
    }
}

async fn known(pool: &Readers) -> sql::Result<Vec<Known>> {
    let rows = sql::query(KNOWN).fetch_all(pool).await?;
    let known = rows.iter().map(|row| {
        let columns = Columns(row);
        Ok(Known {
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
