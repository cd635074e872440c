//! Handlers of the tools that cognitive agents call: the clock, the notes, and programs.

mod command;
mod notes;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::sync::Arc;

use algonius_actors::model::agent::cognitive::ToolHandler;
use algonius_actors::model::program::tool_program::ToolProgram;
use algonius_actors::ports::clock::Clock;
use algonius_actors::ports::notes::Notes;
use algonius_actors::ports::tools::{CallStop, ToolInvocation, Tools};
use async_trait::async_trait;
use chrono::{DateTime, SecondsFormat, Utc};
use serde_json::json;

use super::program::tool_process::ToolLauncher;

/// Programs of tools by the names of the tools.
pub type ToolPrograms = BTreeMap<String, Arc<ToolProgram>>;

/// Services that the handlers of all agents share. Cheap to clone.
#[derive(Clone)]
pub struct ToolServices {
    /// Clock of the service.
    pub clock: Arc<dyn Clock>,
    /// Notes of all agents.
    pub notes: Arc<dyn Notes>,
    /// Starter of programs.
    pub launcher: ToolLauncher,
}

/// Handlers of the tools of an agent. The run has checked the arguments against the tool's inputs.
///
/// | Handler | Arguments | Result |
/// |---|---|---|
/// | `Clock` | none | `{"time": "2027-01-15T08:00:00Z", "weekday": "Friday"}` |
/// | `AddNote` | `text`: string | `{"stored": true}` |
/// | `SearchNotes` | `query`: string, optional | `[{"at": "2027-01-15T08:00:00Z", "text": "…"}]` |
/// | `Command` | those of the tool | standard output of the program |
pub struct ToolHandlers {
    services: ToolServices,
    programs: ToolPrograms,
}

impl ToolHandlers {
    /// Creates the handlers of an agent whose tools have these programs.
    #[must_use]
    pub const fn new(services: ToolServices, programs: ToolPrograms) -> Self {
        Self { services, programs }
    }

    fn present_time(&self) -> String {
        let now = self.services.clock.now();
        json!({ "time": rfc3339(now), "weekday": now.format("%A").to_string() }).to_string()
    }
}

#[async_trait]
impl Tools for ToolHandlers {
    async fn call(&self, call: ToolInvocation, mut stop: CallStop) -> Result<String, String> {
        match call.tool.handler {
            ToolHandler::Clock => Ok(self.present_time()),
            ToolHandler::AddNote => stop.interrupt(self.add_note(&call)).await,
            ToolHandler::SearchNotes => stop.interrupt(self.search_notes(&call)).await,
            // Its processes would outlive a dropped future.
            ToolHandler::Command => self.run_command(call, stop).await,
        }
    }
}

/// Formats a time for a model, in UTC and whole seconds.
fn rfc3339(time: DateTime<Utc>) -> String {
    time.to_rfc3339_opts(SecondsFormat::Secs, true)
}
