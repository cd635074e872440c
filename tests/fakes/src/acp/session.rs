//! Sessions of the ACP agent, which a folder keeps beyond the process.

use std::collections::VecDeque;
use std::env;
use std::error::Error;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

use super::turn::FakeTurn;
use super::wire::{AcpSettings, fresh_id, value_at, write_message};

/// Conversation with its turns; the first turn runs, the others wait.
pub(super) struct FakeSession {
    pub(super) id: String,
    pub(super) mode: String,
    pub(super) prompts: Vec<String>,
    pub(super) turns: VecDeque<FakeTurn>,
}

impl FakeSession {
    /// Creates a session with an id that no other process uses.
    pub(super) fn create(settings: &AcpSettings) -> Result<Self, Box<dyn Error>> {
        let id = fresh_id("session")?;
        let mode = settings.initial_mode().to_owned();
        let session = Self { id, mode, prompts: Vec::new(), turns: VecDeque::new() };
        session.save()?;
        Ok(session)
    }

    /// Reads a session from the folder; `None` if there is none with this id.
    pub(super) fn load(id: &str) -> Result<Option<Self>, Box<dyn Error>> {
        let Some(file) = session_file(id).filter(|file| file.is_file()) else { return Ok(None) };
        let stored_session: Value = serde_json::from_str(&fs::read_to_string(file)?)?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let prompts = value_at(&stored_session, "/prompts").as_array().cloned().unwrap_or_default();
        Ok(Some(Self {
            id: id.to_owned(),
            mode: text(value_at(&stored_session, "/mode")),
            prompts: prompts.iter().map(text).collect(),
            turns: VecDeque::new(),
        }))
    }

    /// Writes the session to the folder. The rename keeps the former content if the process is killed.
    pub(super) fn save(&self) -> Result<(), Box<dyn Error>> {
        if let Some(file) = session_file(&self.id) {
            let draft_file = file.with_extension("draft");
            fs::write(
                &draft_file,
                json!({"mode": self.mode, "prompts": self.prompts}).to_string(),
            )?;
            fs::rename(draft_file, file)?;
        }
        Ok(())
    }

    /// Returns the modes as the responses report them.
    pub(super) fn modes_json(&self, settings: &AcpSettings) -> Value {
        let modes: Vec<_> = settings.modes.iter().map(|id| json!({"id": id, "name": id})).collect();
        json!({"modes": {"currentModeId": self.mode, "availableModes": modes}})
    }

    pub(super) fn change_mode(&mut self, mode: &str) -> Result<(), Box<dyn Error>> {
        self.mode = mode.to_owned();
        self.save()?;
        self.report_mode()
    }

    pub(super) fn report_mode(&self) -> Result<(), Box<dyn Error>> {
        self.send_update(
            &json!({"sessionUpdate": "current_mode_update", "currentModeId": self.mode}),
        )
    }

    pub(super) fn send_update(&self, update: &Value) -> Result<(), Box<dyn Error>> {
        let params = json!({"sessionId": self.id, "update": update});
        write_message(&json!({"method": "session/update", "params": params}))
    }

    /// Writes a chunk of text of the running turn.
    pub(super) fn send_text(&self, kind: &str, text: &str) -> Result<(), Box<dyn Error>> {
        let message_number = self.turns.front().map_or(0, |turn| turn.message_number);
        self.send_update(&json!({
            "sessionUpdate": kind,
            "messageId": format!("message-{}-{message_number}", self.prompts.len()),
            "content": {"type": "text", "text": text},
        }))
    }
}

/// Returns the file of a session; `None` if sessions are not kept, or if the id is no file name.
fn session_file(id: &str) -> Option<PathBuf> {
    let folder = env::var_os("FAKE_ACP_STATE").filter(|folder| !folder.is_empty())?;
    let is_file_name =
        !id.is_empty() && id.chars().all(|char| char.is_ascii_alphanumeric() || char == '-');
    is_file_name.then(|| PathBuf::from(folder).join(format!("{id}.json")))
}
