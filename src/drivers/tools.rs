//! Handlers of the tools that cognitive agents call: the clock and the notes.

mod arguments;
mod notes;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use algonius_actors::model::agent::cognitive::ToolHandler;
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::notes::Notes;
use algonius_actors::ports::tools::{ToolInvocation, Tools};
use async_trait::async_trait;
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::json;

use self::arguments::ToolArguments;

/// Handlers of all tools.
///
/// | Handler | Arguments | Result |
/// |---|---|---|
/// | clock | none | `{"time": "2027-01-15T08:00:00Z", "weekday": "Friday"}` |
/// | add-note | `text`: string | `{"stored": true}` |
/// | search-notes | `query`: string, optional | `[{"at": "2027-01-15T08:00:00Z", "text": "…"}]` |
pub struct ToolHandlers {
    clock: Arc<dyn Clock>,
    notes: Arc<dyn Notes>,
}

impl ToolHandlers {
    /// Creates the handlers.
    #[must_use]
    pub fn new(clock: Arc<dyn Clock>, notes: Arc<dyn Notes>) -> Self {
        Self { clock, notes }
    }

    fn present_time(&self, arguments: &ToolArguments<'_>) -> Result<String, String> {
        arguments.refuse_all_except(&[])?;
        let now = self.clock.now();
        Ok(json!({ "time": rfc3339(now), "weekday": now.format("%A").to_string() }).to_string())
    }
}

#[async_trait]
impl Tools for ToolHandlers {
    async fn call(&self, call: ToolInvocation) -> Result<String, String> {
        let arguments = ToolArguments(&call.arguments);
        match call.tool.handler {
            ToolHandler::Clock => self.present_time(&arguments),
            ToolHandler::AddNote => self.add_note(&call, &arguments).await,
            ToolHandler::SearchNotes => self.search_notes(&call, &arguments).await,
        }
    }
}

/// Formats a time for a model, in UTC and whole seconds.
fn rfc3339(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}
