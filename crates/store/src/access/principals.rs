//! Principals and their tokens.

use algonius_actors::model::access::principal::{NewToken, Token};
use algonius_actors::model::id::PrincipalId;
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use crate::engine::read_cache::Invalidation;
use crate::engine::row_codec::{Columns, micros, to_json};
use crate::engine::sql::{self, DatabaseConnection, ReaderPool};
use crate::engine::writer::WriteCommand;

/// The update changes nothing; it makes the statement return the existing id.
const UPSERT_PRINCIPAL: &str = "
    INSERT INTO principals (id, name, created_at) VALUES ($1, $2, $3)
    ON CONFLICT (name) DO UPDATE SET name = excluded.name
    RETURNING id";

const INSERT_TOKEN: &str = "
    INSERT INTO tokens (id, principal, hash, scope, expires_at, seeded, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (hash) DO NOTHING";

const SELECT_TOKENS: &str = "
    SELECT principal, name, hash, scope, expires_at
    FROM tokens JOIN principals ON principals.id = tokens.principal
    ORDER BY name, tokens.id";

/// Tokens of the configuration, which replace those of the previous configuration.
pub(crate) struct ReplaceConfiguredTokens {
    /// All tokens of the configuration.
    pub(crate) tokens: Vec<NewToken>,
    /// Time of the change.
    pub(crate) at: DateTime<Utc>,
}

#[async_trait]
impl WriteCommand for ReplaceConfiguredTokens {
    type WriteOutput = ();

    fn invalidation(&self) -> Invalidation {
        Invalidation::Nothing
    }

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<()> {
        sql::statement("DELETE FROM tokens WHERE seeded").execute(&mut *connection).await?;
        for token in &self.tokens {
            let principal = upsert_principal(connection, &token.name, self.at).await?;
            insert_token(connection, principal, (token, true), self.at).await?;
        }
        Ok(())
    }
}

pub(crate) async fn upsert_principal(
    connection: &mut DatabaseConnection,
    name: &str,
    at: DateTime<Utc>,
) -> sql::Result<Uuid> {
    let row = sql::statement(UPSERT_PRINCIPAL)
        .bind(Uuid::now_v7())
        .bind(name)
        .bind(micros(at))
        .fetch_one(connection)
        .await?;
    Columns(&row).uuid("id")
}

/// Inserts a token; the flag is true for a token of the configuration.
pub(crate) async fn insert_token(
    connection: &mut DatabaseConnection,
    principal: Uuid,
    (token, is_configured): (&NewToken, bool),
    at: DateTime<Utc>,
) -> sql::Result<()> {
    sql::statement(INSERT_TOKEN)
        .bind(Uuid::now_v7())
        .bind(principal)
        .bind(token.hash.as_slice())
        .bind(to_json(&token.scope)?)
        .bind(token.expires_at.map(micros))
        .bind(is_configured)
        .bind(micros(at))
        .execute(connection)
        .await?;
    Ok(())
}

/// Reads all tokens, including expired ones.
pub(crate) async fn load_tokens(pool: &ReaderPool) -> sql::Result<Vec<Token>> {
    let rows = sql::statement(SELECT_TOKENS).fetch_all(pool).await?;
    rows.iter().map(|row| read_token(Columns(row))).collect()
}

fn read_token(columns: Columns<'_>) -> sql::Result<Token> {
    Ok(Token {
        principal: PrincipalId(columns.uuid("principal")?),
        principal_name: columns.get("name")?,
        hash: columns.bytes("hash")?,
        scope: columns.json("scope")?,
        expires_at: columns.maybe_time("expires_at")?,
    })
}
