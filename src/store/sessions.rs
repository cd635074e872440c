//! Which session of its program belongs to which conversation.

use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::session::{Conversation, Session, SessionId};
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::ports::sessions::Sessions;
use async_trait::async_trait;

use super::Store;
use super::column::{Columns, json, micros};
use super::fault::{ledger_error, unreadable};
use super::recent::Touched;
use super::seal::Seal;
use super::sql::{self, Connection, Readers};
use super::writer::Change;

const ONE: &str = "SELECT * FROM sessions WHERE owner = $1 AND agent = $2 AND context = $3";

const KEEP: &str = "
    INSERT OR REPLACE INTO sessions (owner, agent, context, execution, sealed, used_at, counted)
    SELECT $1, $2, $3, id, $5, $6, $7 FROM executions WHERE id = $4";

const FORGET: &str = "DELETE FROM sessions WHERE owner = $1 AND agent = $2 AND context = $3";

/// A session to be kept, whose id is sealed already.
struct Keep {
    of: Conversation,
    session: Session,
    sealed: Vec<u8>,
}

/// A session to be forgotten.
struct Forget(Conversation);

#[async_trait]
impl Sessions for Store {
    async fn session(&self, of: &Conversation) -> Result<Option<Session>, LedgerError> {
        one(&self.readers, &self.sessions, of).await.map_err(ledger_error)
    }

    async fn keep(&self, of: Conversation, session: Session) -> Result<(), LedgerError> {
        let sealed = self.sessions.close(&place(&of), session.id.expose().as_bytes());
        let sealed = sealed.map_err(ledger_error)?;
        self.writer.order(Keep { of, session, sealed }).await
    }

    async fn forget(&self, of: Conversation) -> Result<(), LedgerError> {
        self.writer.order(Forget(of)).await
    }
}

#[async_trait]
impl Change for Keep {
    type Answer = ();

    fn touches(&self) -> Touched {
        Touched::Nothing
    }

    async fn make(&self, connection: &mut Connection) -> sql::Result<()> {
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
impl Change for Forget {
    type Answer = ();

    fn touches(&self) -> Touched {
        Touched::Nothing
    }

    async fn make(&self, connection: &mut Connection) -> sql::Result<()> {
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

async fn one(pool: &Readers, seal: &Seal, of: &Conversation) -> sql::Result<Option<Session>> {
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

/// What a sealed id opens for, and nothing else. Neither an id of an agent nor one of an owner holds a
/// zero.
fn place(Conversation { owner, agent, context }: &Conversation) -> Vec<u8> {
    [owner.0.as_bytes().as_slice(), agent.as_str().as_bytes(), &[0], context.0.as_bytes()].concat()
}
