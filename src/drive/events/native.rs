//! Programs that have events of a kind of their own: each kind is put into ours, line by line.
//!
//! What a line of them says beyond that, and lines of a later release that nobody knows, stay in the
//! raw output and change nothing.

mod claude;
mod codex;
mod copilot;
mod draft;
mod gemini;
mod opencode;
mod words;

#[cfg(test)]
mod tests;

use algonius_actors::model::program::Dialect;
use serde_json::Value;

use super::line::Event;

/// Puts the lines of one run into events of ours.
pub(super) trait Translate: Send {
    /// What a line says.
    fn read(&mut self, line: &Value) -> Vec<Event>;

    /// What is still to be said when nothing more comes: an error after which it went silent.
    fn end(&mut self) -> Vec<Event> {
        Vec::new()
    }
}

/// One for a run that begins.
pub(super) fn translator(dialect: Dialect) -> Box<dyn Translate> {
    match dialect {
        Dialect::Claude => Box::<claude::Claude>::default(),
        Dialect::Codex => Box::<codex::Codex>::default(),
        Dialect::Gemini => Box::<gemini::Gemini>::default(),
        Dialect::Copilot => Box::<copilot::Copilot>::default(),
        Dialect::Opencode => Box::<opencode::Opencode>::default(),
    }
}
