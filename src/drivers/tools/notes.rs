//! Handlers of the notes of an agent.

use algonius_actors::ports::ledger::LedgerError;
use algonius_actors::ports::note_store::{NewNote, Note};
use algonius_actors::ports::tools::ToolInvocation;
use serde_json::{Value, json};

use super::{ToolHandlers, format_rfc3339};

/// Greatest number of notes of an agent.
const MAX_NOTES: u32 = 1000;

/// Greatest length of the text of a note, in bytes.
const MAX_NOTE_BYTES: usize = 16_384;

/// Greatest length of the result of a search, in bytes: less than the greatest length of a result in a run.
const MAX_LIST_BYTES: usize = 20_000;

/// Greatest number of notes in the result of a search.
const MAX_FOUND_NOTES: u32 = 10;

/// Last entry of a list from which notes are missing.
const MORE_NOTES_REMARK: &str = "more notes match; search for words that fewer notes have";

impl ToolHandlers {
    /// Stores a note of the agent, redacted.
    pub(super) async fn add_note(&self, call: &ToolInvocation) -> Result<String, String> {
        let text = text_argument(call, "text");
        if !(1..=MAX_NOTE_BYTES).contains(&text.len()) {
            return Err(format!("the argument `text` must have 1 to {MAX_NOTE_BYTES} bytes"));
        }
        let note = Note { at: self.services.clock.now(), text: call.redactor.redact(text) };
        let origin = (call.execution, call.step_number);
        let new_note = NewNote { agent: call.agent.clone(), origin, note };
        let stored = self.services.notes.add_note(new_note, MAX_NOTES).await;
        stored
            .map_err(|error| log_and_describe_failure(call, &error, "the note was not stored"))?;
        Ok(json!({ "stored": true }).to_string())
    }

    /// Searches the notes of the agent.
    pub(super) async fn search_notes(&self, call: &ToolInvocation) -> Result<String, String> {
        let query = text_argument(call, "query");
        // One more than are listed, so that the list can state that it is not complete.
        let limit = MAX_FOUND_NOTES + 1;
        let found = self.services.notes.search_notes(&call.agent, query, limit).await;
        let found = found.map_err(|error| {
            log_and_describe_failure(call, &error, "the notes could not be searched")
        })?;
        Ok(notes_json(found))
    }
}

/// Returns the text of an argument; an absent one is empty.
fn text_argument<'call>(call: &'call ToolInvocation, name: &str) -> &'call str {
    call.arguments.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// Returns notes as a JSON list that the run need not shorten: the last ones are left out if there are too many or the
/// list becomes too long, and the list then ends with a remark. The text of a first note that is too long alone is cut.
fn notes_json(notes: Vec<Note>) -> String {
    let (mut entries, mut length) = (Vec::new(), 0);
    let note_count = notes.len();
    for Note { at, mut text } in notes {
        let entry = |text: &str| json!({ "at": format_rfc3339(at), "text": text });
        let mut entry_length = entry(&text).to_string().len();
        while entries.is_empty() && entry_length > MAX_LIST_BYTES {
            text.truncate(text.floor_char_boundary(text.len() / 2));
            text.push('…');
            entry_length = entry(&text).to_string().len();
        }
        length += entry_length + 1;
        if length > MAX_LIST_BYTES || entries.len() == MAX_FOUND_NOTES as usize {
            break;
        }
        entries.push(entry(&text));
    }
    if entries.len() < note_count {
        entries.push(json!({ "remark": MORE_NOTES_REMARK }));
    }
    Value::Array(entries).to_string()
}

/// Logs an error of the store, and returns the sentence for the model. The error names files of the service, so the
/// sentence does not contain it.
fn log_and_describe_failure(call: &ToolInvocation, error: &LedgerError, sentence: &str) -> String {
    tracing::warn!(agent = %call.agent, execution = %call.execution, %error, "tool call failed: {sentence}");
    sentence.to_owned()
}
