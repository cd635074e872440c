//! Principals and their tokens.

use algonius_actors::model::id::PrincipalId;
use algonius_actors::model::principal::{Token, TokenSeed};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::column::{Columns, json, micros};
use super::recent::Touched;
use super::sql::{self, Connection, Readers};
use super::writer::Change;

/// The update changes nothing; it makes the statement answer with the id that is there.
const KEEP_PRINCIPAL: &str = "
    INSERT INTO principals (id, name, created_at) VALUES ($1, $2, $3)
    ON CONFLICT (name) DO UPDATE SET name = excluded.name
    RETURNING id";

const INSERT_TOKEN: &str = "
    INSERT INTO tokens (id, principal, hash, scope, expires_at, seeded, created_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7)
    ON CONFLICT (hash) DO NOTHING";

const TOKENS: &str = "
    SELECT principal, name, hash, scope, expires_at
    FROM tokens JOIN principals ON principals.id = tokens.principal
    ORDER BY name, tokens.id";

/// The tokens of the configuration. They replace those of the configuration before.
pub(super) struct Seeds {
    /// All of them.
    pub(super) tokens: Vec<TokenSeed>,
    /// When.
    pub(super) at: DateTime<Utc>,
}

#[async_trait]
impl Change for Seeds {
    type Answer = ();

    fn touches(&self) -> Touched {
        Touched::Nothing
    }

    async fn make(&self, connection: &mut Connection) -> sql::Result<()> {
        sql::query("DELETE FROM tokens WHERE seeded").execute(&mut *connection).await?;
        for seed in &self.tokens {
            let principal = keep_principal(connection, &seed.name, self.at).await?;
            insert_token(connection, principal, (seed, true), self.at).await?;
        }
        Ok(())
    }
}

pub(super) async fn keep_principal(
    connection: &mut Connection,
    name: &str,
    at: DateTime<Utc>,
) -> sql::Result<Uuid> {
    let row = sql::query(KEEP_PRINCIPAL)
        .bind(Uuid::now_v7())
        .bind(name)
        .bind(micros(at))
        .fetch_one(connection)
        .await?;
    Columns(&row).uuid("id")
}

/// Adds a token; tells whether it is of the configuration.
pub(super) async fn insert_token(
    connection: &mut Connection,
    principal: Uuid,
    (seed, is_seeded): (&TokenSeed, bool),
    at: DateTime<Utc>,
) -> sql::Result<()> {
    sql::query(INSERT_TOKEN)
        .bind(Uuid::now_v7())
        .bind(principal)
        .bind(seed.hash.as_slice())
        .bind(json(&seed.scope)?)
        .bind(seed.expires.map(micros))
        .bind(is_seeded)
        .bind(micros(at))
        .execute(connection)
        .await?;
    Ok(())
}

/// Reads every token, also those whose time is over.
pub(super) async fn tokens(pool: &Readers) -> sql::Result<Vec<Token>> {
    let rows = sql::query(TOKENS).fetch_all(pool).await?;
    rows.iter().map(|row| token(Columns(row))).collect()
}

fn token(columns: Columns<'_>) -> sql::Result<Token> {
    Ok(Token {
        principal: PrincipalId(columns.uuid("principal")?),
        name: columns.plain("name")?,
        hash: columns.bytes("hash")?,
        scope: columns.json("scope")?,
        expires: columns.maybe_time("expires_at")?,
    })
}
