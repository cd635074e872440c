//! Cognitive agent: a language model that calls tools until it has an answer.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::model::host::sandbox::BackendConfinement;

/// Name of the call with which the model gives its answer; no tool may have it.
pub const FINAL_ANSWER_CALL: &str = "final_answer";
/// Name of the only argument of [`FINAL_ANSWER_CALL`].
pub const ANSWER_ARGUMENT: &str = "answer";

/// Layer of a cognitive agent: a label for its kind of work. It has no effect on a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum CognitiveLayer {
    /// Reads inputs and extracts facts.
    Perceptual,
    /// Assigns facts to categories.
    Conceptual,
    /// Derives general statements from categorized facts.
    Abstract,
    /// Checks the results of other agents.
    Metacognitive,
    /// Coordinates the agents of the other layers.
    Consciousness,
}

impl CognitiveLayer {
    /// Every layer, the lowest first.
    pub const ALL: &[Self] = &[
        Self::Perceptual,
        Self::Conceptual,
        Self::Abstract,
        Self::Metacognitive,
        Self::Consciousness,
    ];

    /// Returns the published name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Perceptual => "perceptual",
            Self::Conceptual => "conceptual",
            Self::Abstract => "abstract",
            Self::Metacognitive => "metacognitive",
            Self::Consciousness => "consciousness",
        }
    }
}

/// Model of an agent, written `prefix/name`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct ModelReference {
    /// Name of the provider: the part of `[models.<prefix>]`.
    pub provider: String,
    /// Name of the model at its provider; it may contain slashes.
    pub name: String,
}

impl std::fmt::Display for ModelReference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}/{}", self.provider, self.name)
    }
}

/// Type of a tool's input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputType {
    /// Text.
    String,
    /// Whole number.
    Integer,
    /// Number.
    Number,
    /// True or false.
    Boolean,
    /// List.
    Array,
    /// JSON object.
    Object,
    /// Any JSON value.
    Any,
}

impl InputType {
    /// Every type.
    pub const ALL: &[Self] = &[
        Self::String,
        Self::Integer,
        Self::Number,
        Self::Boolean,
        Self::Array,
        Self::Object,
        Self::Any,
    ];

    /// Returns the name in the configuration, which is also the name in JSON Schema, except for `any`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Integer => "integer",
            Self::Number => "number",
            Self::Boolean => "boolean",
            Self::Array => "array",
            Self::Object => "object",
            Self::Any => "any",
        }
    }
}

/// Input of a tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolInput {
    /// Type of the value.
    pub input_type: InputType,
    /// Description for the model.
    pub description: String,
    /// True if a call may leave the input out.
    pub optional: bool,
}

/// Handler of a tool: the part of the service that performs its calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ToolHandler {
    /// Returns the present time.
    Clock,
    /// Stores a note of the agent.
    AddNote,
    /// Searches the notes of the agent.
    SearchNotes,
    /// Runs a program.
    Command,
    /// Calls a tool of an MCP server.
    Mcp,
}

/// Tool that a model may call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolSpec {
    /// Name for the model: letters, digits, `_` and `-`.
    pub name: String,
    /// Description for the model; empty for that of the MCP server.
    pub description: String,
    /// Inputs by name; `None` if the MCP server defines them.
    pub inputs: Option<BTreeMap<String, ToolInput>>,
    /// True if a repetition of one call, with the same execution and step, has no further effect.
    pub idempotent: bool,
    /// Time limit of a call.
    pub timeout: Duration,
    /// Handler of the calls.
    pub handler: ToolHandler,
}

/// Settings that only cognitive agents have.
#[derive(Debug, Clone, PartialEq)]
pub struct CognitiveSpec {
    /// Layer of the agent.
    pub layer: CognitiveLayer,
    /// Model that receives the requests.
    pub model: ModelReference,
    /// Instructions that precede each request; empty for none.
    pub instructions: String,
    /// Temperature of the model, from 0 to 2.
    pub temperature: f64,
    /// Greatest number of model turns of a run.
    pub max_steps: NonZeroU32,
    /// Tools, in the order of their configuration.
    pub tools: Vec<Arc<ToolSpec>>,
    /// Present confinement of the backend programs, for the status.
    pub backends: Vec<BackendConfinement>,
}

impl CognitiveSpec {
    /// Greatest value of [`max_steps`](Self::max_steps).
    pub const MAX_STEPS: u32 = 50;
    /// Default value of [`max_steps`](Self::max_steps).
    pub const DEFAULT_MAX_STEPS: u32 = 10;
    /// Greatest temperature.
    pub const MAX_TEMPERATURE: f64 = 2.0;
    /// Default temperature.
    pub const DEFAULT_TEMPERATURE: f64 = 0.2;
    /// Greatest number of tools of an agent.
    pub const MAX_TOOLS: usize = 64;

    /// Returns the tool with this name.
    #[must_use]
    pub fn tool(&self, name: &str) -> Option<&Arc<ToolSpec>> {
        self.tools.iter().find(|tool| tool.name == name)
    }
}
