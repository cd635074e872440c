//! Program sessions of conversations.

use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::session::{ConversationKey, Session, SessionId};
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::ports::session_store::SessionStore;
use async_trait::async_trait;

use super::Store;
use super::engine::encryption::StoreCipher;
use super::engine::error::{decode_error, ledger_error};
use super::engine::read_cache::Invalidation;
use super::engine::row_codec::{Columns, micros, to_json};
use super::engine::sql::{self, DatabaseConnection, ReaderPool};
use super::engine::writer::WriteCommand;

const SELECT_SESSION: &str =
    "SELECT * FROM sessions WHERE owner = $1 AND agent = $2 AND context = $3";

const UPSERT_SESSION: &str = "
    INSERT OR REPLACE INTO sessions (owner, agent, context, execution, sealed, used_at, counted)
    SELECT $1, $2, $3, id, $5, $6, $7 FROM executions WHERE id = $4";

const DELETE_SESSION: &str =
    "DELETE FROM sessions WHERE owner = $1 AND agent = $2 AND context = $3";

/// Session to store, with its id already sealed.
struct SaveSession {
    conversation: ConversationKey,
    session: Session,
    sealed: Vec<u8>,
}

/// Removal of a session.
struct DeleteSession(ConversationKey);

#[async_trait]
impl SessionStore for Store {
    async fn session(
        &self,
        conversation: &ConversationKey,
    ) -> Result<Option<Session>, LedgerError> {
        load(&self.readers, &self.session_cipher, conversation).await.map_err(ledger_error)
    }

    async fn save_session(
        &self,
        conversation: ConversationKey,
        session: Session,
    ) -> Result<(), LedgerError> {
        let sealed = self
            .session_cipher
            .seal(&associated_data(&conversation), session.id.expose().as_bytes());
        let sealed = sealed.map_err(ledger_error)?;
        self.writer.submit(SaveSession { conversation, session, sealed }).await
    }

    async fn delete_session(&self, conversation: ConversationKey) -> Result<(), LedgerError> {
        self.writer.submit(DeleteSession(conversation)).await
    }
}

#[async_trait]
impl WriteCommand for SaveSession {
    type WriteOutput = ();

    fn invalidation(&self) -> Invalidation {
        Invalidation::Nothing
    }

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<()> {
        let Self { conversation, session, sealed } = self;
        sql::statement(UPSERT_SESSION)
            .bind(conversation.owner.0)
            .bind(conversation.agent.as_str())
            .bind(conversation.context.0.as_str())
            .bind(session.last_execution.0)
            .bind(sealed.as_slice())
            .bind(micros(session.last_used_at))
            .bind(to_json(&session.reported_counters)?)
            .execute(connection)
            .await?;
        Ok(())
    }
}

#[async_trait]
impl WriteCommand for DeleteSession {
    type WriteOutput = ();

    fn invalidation(&self) -> Invalidation {
        Invalidation::Nothing
    }

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<()> {
        let Self(conversation) = self;
        sql::statement(DELETE_SESSION)
            .bind(conversation.owner.0)
            .bind(conversation.agent.as_str())
            .bind(conversation.context.0.as_str())
            .execute(connection)
            .await?;
        Ok(())
    }
}

async fn load(
    pool: &ReaderPool,
    cipher: &StoreCipher,
    conversation: &ConversationKey,
) -> sql::Result<Option<Session>> {
    let row = sql::statement(SELECT_SESSION)
        .bind(conversation.owner.0)
        .bind(conversation.agent.as_str())
        .bind(conversation.context.0.as_str())
        .fetch_optional(pool)
        .await?;
    let Some(row) = row else { return Ok(None) };
    let columns = Columns(&row);
    let unsealed = cipher.unseal(&associated_data(conversation), columns.get("sealed")?)?;
    let id = String::from_utf8(unsealed).map_err(decode_error)?;
    let id = SessionId::new(&id).ok_or_else(|| decode_error("an id of a session is none"))?;
    let execution = ExecutionId(columns.uuid("execution")?);
    let (last_used_at, reported_counters) = (columns.time("used_at")?, columns.json("counted")?);
    Ok(Some(Session { id, last_execution: execution, last_used_at, reported_counters }))
}

/// Returns the associated data of a sealed id: the id opens for no other conversation. The ids of agents and owners
/// contain no zero byte.
fn associated_data(ConversationKey { owner, agent, context }: &ConversationKey) -> Vec<u8> {
    [owner.0.as_bytes().as_slice(), agent.as_str().as_bytes(), &[0], context.0.as_bytes()].concat()
}
