//! Program sessions of conversations.

use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::session::{Conversation, Session, SessionId};
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::ports::sessions::Sessions;
use async_trait::async_trait;

use super::Store;
use super::engine::encryption::StoreCipher;
use super::engine::fault::{ledger_error, unreadable};
use super::engine::read_cache::Invalidation;
use super::engine::row_codec::{Columns, json, micros};
use super::engine::sql::{self, DatabaseConnection, Readers};
use super::engine::writer::WriteCommand;

const ONE: &str = "SELECT * FROM sessions WHERE owner = $1 AND agent = $2 AND context = $3";

const KEEP: &str = "
    INSERT OR REPLACE INTO sessions (owner, agent, context, execution, sealed, used_at, counted)
    SELECT $1, $2, $3, id, $5, $6, $7 FROM executions WHERE id = $4";

const FORGET: &str = "DELETE FROM sessions WHERE owner = $1 AND agent = $2 AND context = $3";

/// Session to store, with its id already sealed.
struct StoreSession {
    of: Conversation,
    session: Session,
    sealed: Vec<u8>,
}

/// Removal of a session.
struct ForgetSession(Conversation);

#[async_trait]
impl Sessions for Store {
    async fn session(&self, of: &Conversation) -> Result<Option<Session>, LedgerError> {
        one(&self.readers, &self.sessions, of).await.map_err(ledger_error)
    }

    async fn store(&self, of: Conversation, session: Session) -> Result<(), LedgerError> {
        let sealed = self.sessions.close(&place(&of), session.id.expose().as_bytes());
        let sealed = sealed.map_err(ledger_error)?;
        self.writer.order(StoreSession { of, session, sealed }).await
    }

    async fn forget(&self, of: Conversation) -> Result<(), LedgerError> {
        self.writer.order(ForgetSession(of)).await
    }
}

#[async_trait]
impl WriteCommand for StoreSession {
    type Answer = ();

    fn touches(&self) -> Invalidation {
        Invalidation::Nothing
    }

    async fn make(&self, connection: &mut DatabaseConnection) -> sql::Result<()> {
        let Self { of, session, sealed } = self;
        sql::query(KEEP)
            .bind(of.owner.0)
            .bind(of.agent.as_str())
            .bind(of.context.0.as_str())
            .bind(session.execution.0)
            .bind(sealed.as_slice())
            .bind(micros(session.used))
            .bind(json(&session.counted)?)
            .execute(connection)
            .await?;
        Ok(())
    }
}

#[async_trait]
impl WriteCommand for ForgetSession {
    type Answer = ();

    fn touches(&self) -> Invalidation {
        Invalidation::Nothing
    }

    async fn make(&self, connection: &mut DatabaseConnection) -> sql::Result<()> {
        let Self(of) = self;
        sql::query(FORGET)
            .bind(of.owner.0)
            .bind(of.agent.as_str())
            .bind(of.context.0.as_str())
            .execute(connection)
            .await?;
        Ok(())
    }
}

async fn one(
    pool: &Readers,
    seal: &StoreCipher,
    of: &Conversation,
) -> sql::Result<Option<Session>> {
    let row = sql::query(ONE)
        .bind(of.owner.0)
        .bind(of.agent.as_str())
        .bind(of.context.0.as_str())
        .fetch_optional(pool)
        .await?;
    let Some(row) = row else { return Ok(None) };
    let columns = Columns(&row);
    let opened = seal.open(&place(of), columns.plain("sealed")?)?;
    let id = String::from_utf8(opened).map_err(unreadable)?;
    let id = SessionId::new(&id).ok_or_else(|| unreadable("an id of a session is none"))?;
    let execution = ExecutionId(columns.uuid("execution")?);
    let (used, counted) = (columns.time("used_at")?, columns.json("counted")?);
    Ok(Some(Session { id, execution, used, counted }))
}

/// Returns the associated data of a sealed id: the id opens for no other conversation. The ids of agents and owners
/// contain no zero byte.
fn place(Conversation { owner, agent, context }: &Conversation) -> Vec<u8> {
    [owner.0.as_bytes().as_slice(), agent.as_str().as_bytes(), &[0], context.0.as_bytes()].concat()
}
