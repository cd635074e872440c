//! Store of the program sessions of conversations.
//!
//! An implementation commits before it returns, and stores ids sealed.

use async_trait::async_trait;

use super::ledger::LedgerError;
use crate::model::session::{ConversationKey, Session};

/// Store of the known sessions.
#[async_trait]
pub trait SessionStore: Send + Sync + 'static {
    /// Returns the session of a conversation, regardless of its age.
    ///
    /// # Errors
    /// Returns an error if the session could not be read.
    async fn session(&self, conversation: &ConversationKey)
    -> Result<Option<Session>, LedgerError>;

    /// Stores the session of a conversation in place of an older one, for as long as the execution that used it last is
    /// in the ledger.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn save_session(
        &self,
        conversation: ConversationKey,
        session: Session,
    ) -> Result<(), LedgerError>;

    /// Deletes the session of a conversation.
    ///
    /// # Errors
    /// Returns an error if nothing was committed.
    async fn delete_session(&self, conversation: ConversationKey) -> Result<(), LedgerError>;
}

/// Store that keeps no session, for programs without conversations.
#[derive(Debug, Clone, Copy)]
pub struct NoopSessionStore;

#[async_trait]
impl SessionStore for NoopSessionStore {
    async fn session(&self, _: &ConversationKey) -> Result<Option<Session>, LedgerError> {
        Ok(None)
    }

    async fn save_session(&self, _: ConversationKey, _: Session) -> Result<(), LedgerError> {
        Ok(())
    }

    async fn delete_session(&self, _: ConversationKey) -> Result<(), LedgerError> {
        Ok(())
    }
}
