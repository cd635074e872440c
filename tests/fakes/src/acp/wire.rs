//! Environment, files and messages of the ACP agent.

use std::env;
use std::error::Error;
use std::fs::File;
use std::io::{self, Read, Write};

use serde_json::{Value, json};

use crate::append_to_file;

/// Settings from the environment.
pub(super) struct AcpSettings {
    pub(super) modes: Vec<String>,
    pub(super) permission_request_modes: Vec<String>,
    pub(super) mode_confirmation: String,
    pub(super) resets_mode_on_resume: bool,
    pub(super) resume_method: String,
    pub(super) can_close_sessions: bool,
    pub(super) unknown_session_code: i64,
    pub(super) rejection_behavior: String,
    pub(super) cancel_behavior: String,
    /// Kinds of parts beside text and links that the agent accepts.
    pub(super) accepted_part_kinds: Vec<String>,
}

impl AcpSettings {
    pub(super) fn from_environment() -> Self {
        let text = |name: &str, default: &str| {
            env::var(format!("FAKE_ACP_{name}")).unwrap_or_else(|_| default.to_owned())
        };
        let list = |name: &str, default: &str| {
            text(name, default).split(',').map(str::to_owned).collect::<Vec<_>>()
        };
        Self {
            modes: list("MODES", "ask,auto"),
            permission_request_modes: list("ASK_MODES", "ask"),
            mode_confirmation: text("CONFIRM", "yes"),
            resets_mode_on_resume: text("MODE_AFTER_RESUME", "kept") == "reset",
            resume_method: text("RESUME", "resume"),
            can_close_sessions: text("CLOSE", "yes") != "no",
            unknown_session_code: text("UNKNOWN", "-32002").parse().unwrap_or(-32_002),
            rejection_behavior: text("AFTER_REJECTION", "continue"),
            cancel_behavior: text("CANCEL", "end"),
            accepted_part_kinds: list("PROMPTS", "embeddedContext,image"),
        }
    }

    pub(super) fn initial_mode(&self) -> &str {
        self.modes.first().map_or("", String::as_str)
    }

    /// Returns the result of `initialize`.
    pub(super) fn capabilities(&self) -> Value {
        let mut session_capabilities = json!({});
        if let Some(session_capabilities) = session_capabilities.as_object_mut() {
            for (name, is_supported) in
                [("resume", self.resume_method == "resume"), ("close", self.can_close_sessions)]
            {
                if is_supported {
                    session_capabilities.insert(name.to_owned(), json!({}));
                }
            }
        }
        let has_kind = |kind: &str| self.accepted_part_kinds.iter().any(|other| other == kind);
        let prompt_capabilities =
            json!({"embeddedContext": has_kind("embeddedContext"), "image": has_kind("image")});
        json!({
            "protocolVersion": 1,
            "agentInfo": {"name": "fake-acp", "version": "1"},
            "agentCapabilities": {
                "loadSession": self.resume_method == "load",
                "promptCapabilities": prompt_capabilities,
                "sessionCapabilities": session_capabilities,
            },
        })
    }
}

/// Returns an id that no other process uses.
pub(crate) fn fresh_id(prefix: &str) -> Result<String, Box<dyn Error>> {
    let mut bytes = [0_u8; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(format!("{prefix}-{:016x}", u64::from_le_bytes(bytes)))
}

/// Returns the value at a JSON pointer of a message, or null if there is none.
pub(crate) fn value_at<'m>(message: &'m Value, pointer: &str) -> &'m Value {
    message.pointer(pointer).unwrap_or(&Value::Null)
}

/// Writes a message with one write.
pub(super) fn write_message(message: &Value) -> Result<(), Box<dyn Error>> {
    let mut message = message.clone();
    if let Some(fields) = message.as_object_mut() {
        fields.insert("jsonrpc".to_owned(), "2.0".into());
    }
    write_text(&format!("{message}\n"))
}

/// Writes text that need not be a message.
pub(crate) fn write_text(text: &str) -> Result<(), Box<dyn Error>> {
    let mut stdout = io::stdout().lock();
    stdout.write_all(text.as_bytes())?;
    stdout.flush()?;
    Ok(())
}

pub(crate) fn log_received_line(line: &str) -> Result<(), Box<dyn Error>> {
    append_to_file_from_env(
        "LOG",
        &format!("{:016x}\t{}\t{line}\n", hash(line.as_bytes()), std::process::id()),
    )
}

pub(crate) fn log_unexpected_answer(id: &Value) -> Result<(), Box<dyn Error>> {
    append_to_file_from_env("LOG", &format!("unexpected\t{}\t{id}\n", std::process::id()))
}

/// Appends text to the file that the environment names, if it names one.
pub(crate) fn append_to_file_from_env(name: &str, text: &str) -> Result<(), Box<dyn Error>> {
    if let Some(file) = env::var(format!("FAKE_ACP_{name}")).ok().filter(|file| !file.is_empty()) {
        append_to_file(&file, text)?;
    }
    Ok(())
}

/// Returns the FNV-1a hash of bytes.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
    })
}
