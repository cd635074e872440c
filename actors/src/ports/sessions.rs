//! Which session of its program belongs to which conversation.
//!
//! An implementation commits before it answers, and keeps ids sealed.

use async_trait::async_trait;

use super::ledger::LedgerError;
use crate::model::session::{Conversation, Session};

/// The sessions that are known.
#[async_trait]
pub trait Sessions: Send + Sync + 'static {
    /// The session of a conversation, however old.
    ///
    /// # Errors
    /// When it could not be read.
    async fn session(&self, of: &Conversation) -> Result<Option<Session>, LedgerError>;

    /// Keeps the session of a conversation in place of an older one, for as long as the execution that
    /// used it last is in the ledger.
    ///
    /// # Errors
    /// When nothing was committed.
    async fn keep(&self, of: Conversation, session: Session) -> Result<(), LedgerError>;

    /// Forgets the session of a conversation.
    ///
    /// # Errors
    /// When nothing was committed.
    async fn forget(&self, of: Conversation) -> Result<(), LedgerError>;
}
