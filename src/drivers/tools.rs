//! Handlers of the tools that cognitive agents call: the clock and the notes.

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

/// Handlers of all tools. The run has checked the arguments against the tool's inputs.
///
/// | Handler | Arguments | Result |
/// |---|---|---|
/// | `Clock` | none | `{"time": "2027-01-15T08:00:00Z", "weekday": "Friday"}` |
/// | `AddNote` | `text`: string | `{"stored": true}` |
/// | `SearchNotes` | `query`: string, optional | `[{"at": "2027-01-15T08:00:00Z", "text": "…"}]` |
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

    fn present_time(&self) -> String {
        let now = self.clock.now();
        json!({ "time": rfc3339(now), "weekday": now.format("%A").to_string() }).to_string()
    }
}

#[async_trait]
impl Tools for ToolHandlers {
    async fn call(&self, call: ToolInvocation) -> Result<String, String> {
        match call.tool.handler {
            ToolHandler::Clock => Ok(self.present_time()),
            ToolHandler::AddNote => self.add_note(&call).await,
            ToolHandler::SearchNotes => self.search_notes(&call).await,
        }
    }
}

/// Formats a time for a model, in UTC and whole seconds.
fn rfc3339(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}
