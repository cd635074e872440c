//! Programs with native events: an adapter for each kind converts them line by line.
//!
//! Other content of a native line, and unknown lines of later releases, stay in the raw output and change nothing.

mod claude;
mod codex;
mod copilot;
mod draft_message;
pub(super) mod event_line;
pub(super) mod event_reader;
pub(super) mod failure;
mod file_parts;
mod gemini;
mod line_conversion;
mod opencode;

use algonius_actors::model::program::EventDialect;
use serde_json::Value;

use self::event_line::ProgramEvent;

/// Adapter that converts the lines of one run into events of this project.
pub(super) trait EventAdapter: Send {
    /// Returns the events of a line.
    fn convert_line(&mut self, line: &Value) -> Vec<ProgramEvent>;

    /// Types of the lines without which the result of a run is incomplete.
    fn result_line_types(&self) -> &'static [&'static str];

    /// Returns true if a line brings only a piece of text that a later line brings as a whole. The raw output omits
    /// such a line, because pieces would multiply its size.
    fn is_omitted_from_raw_output(&self, _line: &Value) -> bool {
        false
    }

    /// Returns the events that remain at the end of the output: an error after which the program went silent.
    fn finish_output(&mut self) -> Vec<ProgramEvent> {
        Vec::new()
    }
}

/// Returns a new adapter for a run.
pub(super) fn new_adapter(dialect: EventDialect) -> Box<dyn EventAdapter> {
    match dialect {
        EventDialect::Claude => Box::<claude::ClaudeAdapter>::default(),
        EventDialect::Codex => Box::<codex::CodexAdapter>::default(),
        EventDialect::Gemini => Box::<gemini::GeminiAdapter>::default(),
        EventDialect::Copilot => Box::<copilot::CopilotAdapter>::default(),
        EventDialect::Opencode => Box::<opencode::OpencodeAdapter>::default(),
    }
}
