//! Strict templates of arguments and file names.

use std::collections::BTreeMap;

use minijinja::{Environment, UndefinedBehavior};
use serde::Serialize;

/// Why a template could not be read or rendered. Holds no value.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{cause}")]
pub struct TemplateError {
    cause: String,
}

impl From<minijinja::Error> for TemplateError {
    fn from(error: minijinja::Error) -> Self {
        let detail = error.detail().unwrap_or("no detail");
        Self { cause: format!("{}: {detail}", error.kind()) }
    }
}

/// What a template may name.
#[derive(Clone, Default, Serialize)]
pub struct Values {
    /// The text for the agent.
    pub input: String,
    /// Path of the input file.
    pub input_file: String,
    /// Path of the output file.
    pub output_file: String,
    /// Parameters: those of the request over those of the configuration.
    pub param: BTreeMap<String, String>,
    /// The execution.
    pub execution_id: String,
    /// The agent.
    pub agent_id: String,
    /// The conversation.
    pub context_id: String,
    /// The caller's message.
    pub message_id: String,
    /// Which try.
    pub attempt: u32,
    /// Which turn.
    pub turn: u32,
    /// When, in RFC 3339.
    pub timestamp: String,
}

/// A checked template.
#[derive(Debug, Clone)]
pub struct Template {
    source: String,
}

impl Template {
    /// Reads a template.
    ///
    /// # Errors
    /// When it is not well formed.
    pub fn new(source: &str) -> Result<Self, TemplateError> {
        environment().template_from_str(source)?;
        Ok(Self { source: source.to_owned() })
    }

    /// Fills it in.
    ///
    /// # Errors
    /// When it names what there is not.
    pub fn render(&self, values: &Values) -> Result<String, TemplateError> {
        Ok(environment().render_str(&self.source, minijinja::value::Serde(values))?)
    }
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::new();
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    environment.set_fuel(Some(100_000));
    environment
}
