//! Port to the notes of cognitive agents.

use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::ledger::LedgerError;
use crate::model::id::{AgentId, ExecutionId};

/// Note of an agent. Its text is redacted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Time at which the note was stored.
    pub at: DateTime<Utc>,
    /// Text of the note.
    pub text: String,
}

/// New note.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewNote {
    /// Agent that owns the note.
    pub agent: AgentId,
    /// Execution and step that store the note. A second note of the same step is not stored.
    pub origin: (ExecutionId, u32),
    /// Note to store.
    pub note: Note,
}

/// Notes of agents.
#[async_trait]
pub trait NoteStore: Send + Sync + 'static {
    /// Stores a note, unless its step has stored one. Deletes the oldest notes of the agent beyond `limit`.
    ///
    /// # Errors
    /// Returns an error if the note was not committed.
    async fn add_note(&self, note: NewNote, max_notes: u32) -> Result<(), LedgerError>;

    /// Returns the notes of an agent that contain all words of a query, the best match first; with an empty query the
    /// newest notes.
    ///
    /// # Errors
    /// Returns an error if the notes cannot be read.
    async fn search_notes(
        &self,
        agent: &AgentId,
        query: &str,
        limit: u32,
    ) -> Result<Vec<Note>, LedgerError>;
}
