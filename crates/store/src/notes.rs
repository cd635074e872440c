//! Notes of cognitive agents, and the search for their words.

use algonius_actors::model::id::AgentId;
use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::ports::note_store::{NewNote, Note, NoteStore};
use async_trait::async_trait;

use super::Store;
use super::engine::error::ledger_error;
use super::engine::read_cache::Invalidation;
use super::engine::row_codec::{Columns, micros};
use super::engine::sql::{self, DatabaseConnection, ReaderPool};
use super::engine::writer::WriteCommand;

/// Number of characters of a query that are searched. It bounds the work of a search.
const MAX_QUERY_CHARS: usize = 1000;

const INSERT_NOTE: &str = "
    INSERT INTO notes (agent, execution, step, at, text) VALUES ($1, $2, $3, $4, $5)
    ON CONFLICT DO NOTHING RETURNING id";

const INSERT_WORDS: &str = "INSERT INTO note_words (rowid, text) VALUES ($1, $2)";

const SELECT_EXCESS: &str =
    "SELECT id FROM notes WHERE agent = $1 ORDER BY id DESC LIMIT -1 OFFSET $2";

const SELECT_NEWEST: &str = "SELECT at, text FROM notes WHERE agent = $1 ORDER BY id DESC LIMIT $2";

/// The cross join makes SQLite search the words first.
const SELECT_MATCHING: &str = "
    SELECT at, notes.text AS text FROM note_words CROSS JOIN notes ON notes.id = note_words.rowid
    WHERE note_words MATCH $3 AND agent = $1 ORDER BY rank, id DESC LIMIT $2";

/// Note to store, and the greatest number of notes of its agent.
struct AddNote {
    note: NewNote,
    max_notes: u32,
}

#[async_trait]
impl NoteStore for Store {
    async fn add_note(&self, note: NewNote, max_notes: u32) -> Result<(), LedgerError> {
        self.writer.submit(AddNote { note, max_notes }).await
    }

    async fn search_notes(
        &self,
        agent: &AgentId,
        query: &str,
        limit: u32,
    ) -> Result<Vec<Note>, LedgerError> {
        search(&self.readers, agent, query, limit).await.map_err(ledger_error)
    }
}

#[async_trait]
impl WriteCommand for AddNote {
    type WriteOutput = ();

    fn invalidation(&self) -> Invalidation {
        Invalidation::Nothing
    }

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<()> {
        let NewNote { agent, origin: (execution, step), note } = &self.note;
        let inserted = sql::statement(INSERT_NOTE)
            .bind(agent.as_str())
            .bind(execution.0)
            .bind(i64::from(*step))
            .bind(micros(note.at))
            .bind(note.text.as_str())
            .fetch_optional(&mut *connection)
            .await?;
        let Some(row) = inserted else { return Ok(()) }; // The step has stored its note before.
        sql::statement(INSERT_WORDS)
            .bind(Columns(&row).get::<i64>("id")?)
            .bind(separate_cjk_chars(&note.text))
            .execute(&mut *connection)
            .await?;
        delete_excess_notes(connection, agent, self.max_notes).await
    }
}

/// Deletes the oldest notes of an agent beyond the limit.
async fn delete_excess_notes(
    connection: &mut DatabaseConnection,
    agent: &AgentId,
    limit: u32,
) -> sql::Result<()> {
    let excess = sql::statement(SELECT_EXCESS)
        .bind(agent.as_str())
        .bind(i64::from(limit))
        .fetch_all(&mut *connection)
        .await?;
    for row in &excess {
        let id: i64 = Columns(row).get("id")?;
        for statement in
            ["DELETE FROM note_words WHERE rowid = $1", "DELETE FROM notes WHERE id = $1"]
        {
            sql::statement(statement).bind(id).execute(&mut *connection).await?;
        }
    }
    Ok(())
}

async fn search(
    readers: &ReaderPool,
    agent: &AgentId,
    query: &str,
    limit: u32,
) -> sql::Result<Vec<Note>> {
    let expression = match_expression(query);
    let text = if expression.is_some() { SELECT_MATCHING } else { SELECT_NEWEST };
    let mut statement = sql::statement(text).bind(agent.as_str()).bind(i64::from(limit));
    if let Some(expression) = expression {
        statement = statement.bind(expression).mark_long_running();
    }
    let rows = statement.fetch_all(readers).await?;
    let read_note = |row| {
        let columns = Columns(row);
        Ok(Note { at: columns.time("at")?, text: columns.get::<&str>("text")?.to_owned() })
    };
    rows.iter().map(read_note).collect()
}

/// Returns the expression of FTS5 that matches all words of a query; `None` for a query without words.
///
/// Each word is a quoted phrase, so that no character of it is an operator. Only the first [`MAX_QUERY_CHARS`]
/// characters are searched; a word that this limit divides matches by its first part.
fn match_expression(query: &str) -> Option<String> {
    // SQLite reads an expression up to its first zero character.
    let is_separator = |char: char| char.is_whitespace() || char == '\0';
    let searched_text: String = query.chars().take(MAX_QUERY_CHARS).collect();
    let next_char = query.chars().nth(MAX_QUERY_CHARS);
    let is_word = |word: &&str| word.contains(char::is_alphanumeric);
    let divides_word = next_char.is_some_and(|char| !is_separator(char))
        && searched_text.rsplit(is_separator).next().is_some_and(|last| is_word(&last));
    let words = searched_text.split(is_separator).filter(is_word);
    let phrases: Vec<_> = words
        .map(|word| format!("\"{}\"", separate_cjk_chars(word).replace('"', "\"\"")))
        .collect();
    let suffix = if divides_word { " *" } else { "" };
    (!phrases.is_empty()).then(|| phrases.join(" ") + suffix)
}

/// Puts spaces around each character of a script that has no spaces between words, so that such a character is a word
/// of the index, and a word of several such characters is a phrase.
fn separate_cjk_chars(text: &str) -> String {
    let mut separated = String::with_capacity(text.len());
    for char in text.chars() {
        if is_cjk_char(char) {
            separated.extend([' ', char, ' ']);
        } else {
            separated.push(char);
        }
    }
    separated
}

/// Returns true for kana, Chinese characters and Hangul. Hangul has spaces, but adds particles to its words.
const fn is_cjk_char(char: char) -> bool {
    matches!(
        char,
        '\u{3040}'..='\u{30ff}'
            | '\u{3400}'..='\u{4dbf}'
            | '\u{4e00}'..='\u{9fff}'
            | '\u{ac00}'..='\u{d7a3}'
            | '\u{f900}'..='\u{faff}'
            | '\u{20000}'..='\u{3ffff}'
    )
}
