//! Tokens that are created at run time.

use algonius_actors::model::access::principal::{NewToken, Scope};
use algonius_actors::ports::ledger::LedgerError;
use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::principals::{insert_token, upsert_principal};
use crate::Store;
use crate::engine::error::ledger_error;
use crate::engine::read_cache::Invalidation;
use crate::engine::row_codec::Columns;
use crate::engine::sql::{self, DatabaseConnection, ReaderPool};
use crate::engine::writer::WriteCommand;

/// Removal of tokens that do not belong to the configuration.
const DELETE_ISSUED_TOKENS: &str = "
    DELETE FROM tokens
    WHERE NOT seeded AND principal = (SELECT id FROM principals WHERE name = $1)";

const COUNT_ISSUED_TOKENS: &str = "
    SELECT count(*) AS held FROM tokens JOIN principals ON principals.id = tokens.principal
    WHERE NOT seeded AND name = $1";

const SELECT_STORED_TOKENS: &str = "
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
    pub expires_at: Option<DateTime<Utc>>,
    /// True if the token belongs to the configuration.
    pub is_configured: bool,
    /// Time of the creation.
    pub created_at: DateTime<Utc>,
}

impl Store {
    /// Adds a token that does not belong to the configuration; replaces one with the same name if `replaces_existing`
    /// is true. Returns true if the token was added; without replacement, an existing token with the same name
    /// prevents it.
    ///
    /// # Errors
    /// Fails if nothing was committed.
    pub async fn issue_token(
        &self,
        token: NewToken,
        replaces_existing: bool,
        at: DateTime<Utc>,
    ) -> Result<bool, LedgerError> {
        self.writer.submit(IssueToken { token, replaces_existing, at }).await
    }

    /// Removes the token with this name, unless it belongs to the configuration. Returns true if such a token
    /// existed. The principal keeps its executions and schedules.
    ///
    /// # Errors
    /// Fails if nothing was committed.
    pub async fn revoke_token(&self, name: String) -> Result<bool, LedgerError> {
        self.writer.submit(RevokeToken { name }).await
    }

    /// Returns all tokens in the order of their names.
    ///
    /// # Errors
    /// Fails if the tokens cannot be read.
    pub async fn list_tokens(&self) -> Result<Vec<StoredToken>, LedgerError> {
        load_stored_tokens(&self.readers).await.map_err(ledger_error)
    }
}

struct IssueToken {
    token: NewToken,
    replaces_existing: bool,
    at: DateTime<Utc>,
}

#[async_trait]
impl WriteCommand for IssueToken {
    type WriteOutput = bool;

    fn invalidation(&self) -> Invalidation {
        Invalidation::Nothing
    }

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<bool> {
        let name = self.token.name.as_str();
        let row =
            sql::statement(COUNT_ISSUED_TOKENS).bind(name).fetch_one(&mut *connection).await?;
        let exists = Columns(&row).number::<u32>("held")? > 0;
        if exists && !self.replaces_existing {
            return Ok(false);
        }
        sql::statement(DELETE_ISSUED_TOKENS).bind(name).execute(&mut *connection).await?;
        let principal = upsert_principal(connection, name, self.at).await?;
        insert_token(connection, principal, (&self.token, false), self.at).await?;
        Ok(true)
    }
}

struct RevokeToken {
    name: String,
}

#[async_trait]
impl WriteCommand for RevokeToken {
    type WriteOutput = bool;

    fn invalidation(&self) -> Invalidation {
        Invalidation::Nothing
    }

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<bool> {
        let changed_rows = sql::statement(DELETE_ISSUED_TOKENS)
            .bind(self.name.as_str())
            .execute(connection)
            .await?;
        Ok(changed_rows > 0)
    }
}

async fn load_stored_tokens(pool: &ReaderPool) -> sql::Result<Vec<StoredToken>> {
    let rows = sql::statement(SELECT_STORED_TOKENS).fetch_all(pool).await?;
    let tokens = rows.iter().map(|row| {
        let columns = Columns(row);
        Ok(StoredToken {
            name: columns.get("name")?,
            hash: columns.bytes("hash")?,
            scope: columns.json("scope")?,
            expires_at: columns.maybe_time("expires_at")?,
            is_configured: columns.get("seeded")?,
            created_at: columns.time("created_at")?,
        })
    });
    tokens.collect()
}
