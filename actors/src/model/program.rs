//! Configured command-line program: its start, its input, its output and its success criteria.

pub mod backend_program;
pub mod mcp_server;
pub mod runtime_settings;
pub mod stdio_protocol;
pub mod tool_backends;
pub mod tool_program;
pub mod version;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use regex::Regex;

use self::runtime_settings::ProgramRuntimeSettings;
use self::stdio_protocol::{InteractiveSpec, PoolSettings, StdioProtocol};
use super::agent::success_criteria::{
    FailureRules, SuccessCriteria, UsagePattern, pattern_sources,
};
use super::host::resources::ResourceLimits;
use super::host::sandbox::Sandbox;
use super::session::SessionSpec;

/// Method by which the program receives its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputMethod {
    /// Standard input, which is then closed.
    Stdin,
    /// File of mode 0600 whose path is `{{ input_file }}`.
    File,
    /// Argument that contains `{{ input }}`.
    Args,
    /// JSON-RPC call on standard input, which stays open until the program answers the call.
    JsonRpc,
}

/// Method by which the program returns its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputMethod {
    /// Standard output is the answer.
    Stdout,
    /// The file whose path is `{{ output_file }}` is the answer.
    File,
    /// Standard output with one JSON event per line.
    Events,
    /// Standard output with one JSON event per line, in the program's own format.
    Native(EventDialect),
    /// JSON-RPC messages on standard output.
    JsonRpc,
}

/// Event format of a program with its own format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EventDialect {
    /// `claude --output-format stream-json`, and compatible programs.
    Claude,
    /// `codex exec --json`.
    Codex,
    /// `gemini --output-format stream-json`.
    Gemini,
    /// `copilot --output-format json`.
    Copilot,
    /// `opencode run --format json`.
    Opencode,
}

/// Handling of a running program when the service is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ServiceLossAction {
    /// The program continues, and the next process of the service reattaches to it.
    #[default]
    Reattach,
    /// The program is killed at once.
    Kill,
}

/// Secrecy of the value of an environment variable.
#[derive(Clone, PartialEq, Eq)]
pub enum VariableSecrecy {
    /// The value may be shown.
    Plain,
    /// The value comes from the service's environment or a file; it is redacted wherever it appears.
    Secret,
}

/// Environment variable of a program.
#[derive(Clone, PartialEq, Eq)]
pub struct EnvVariable {
    /// Value of the variable.
    pub value: String,
    /// Secrecy, which determines whether the value is registered for redaction.
    pub secrecy: VariableSecrecy,
}

impl std::fmt::Debug for EnvVariable {
    /// Hides the value: a specification must be printable without its secrets.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.secrecy {
            VariableSecrecy::Plain => "Variable(plain)",
            VariableSecrecy::Secret => "Variable(secret)",
        })
    }
}

/// User as which a program runs, if it is not the service's own. It has no supplementary groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct UnixUser {
    /// Numeric id of the user.
    pub uid: u32,
    /// Numeric id of the user's group.
    pub gid: u32,
}

/// Detection of a program's question to a person.
#[derive(Debug, Clone)]
pub struct PromptPatterns {
    /// Patterns that match a question in the last, unterminated line of an output. Without a pattern, no line is a
    /// question.
    pub patterns: Arc<[Regex]>,
    /// Silence after a question that means that the program waits for its answer.
    pub silence: Duration,
}

/// Validated program. Templates are strict: loading rejects an unknown variable. Two equal programs have the same
/// source text.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramSpec {
    /// Absolute path of the executable.
    pub command: PathBuf,
    /// Templates of the arguments, in order.
    pub args: Vec<String>,
    /// Default values of `{{ param.x }}`.
    pub params: BTreeMap<String, String>,
    /// Environment variables besides the allow-list.
    pub env: BTreeMap<String, EnvVariable>,
    /// User as which the program runs.
    pub user: ProgramUser,
    /// Absolute path of the working folder.
    pub working_dir: PathBuf,
    /// Method by which the program receives its input.
    pub input_method: InputMethod,
    /// Method by which the program returns its answer.
    pub output_method: OutputMethod,
    /// File name template of the input within the execution's own folder.
    pub input_file_template: String,
    /// File name template of the output within the execution's own folder.
    pub output_file_template: String,
    /// Success criteria of an attempt.
    pub success_criteria: SuccessCriteria,
    /// Classification of failures.
    pub failure_rules: FailureRules,
    /// Format of the usage report.
    pub usage_pattern: UsagePattern,
    /// Handling of the running program when the service is killed.
    pub on_service_loss: ServiceLossAction,
    /// Detection of questions to a person.
    pub prompt_patterns: PromptPatterns,
    /// Sandbox of the program: the files and networks that it may use.
    pub sandbox: Sandbox,
    /// Resource limits.
    pub resource_limits: ResourceLimits,
    /// Runtime settings beside the arguments.
    pub runtime_settings: ProgramRuntimeSettings,
    /// Session resume, if the program supports it.
    pub session_resume: Option<Box<SessionSpec>>,
    /// Protocol of a program that reads several messages; `None` if the program reads its input to the end.
    pub stdio_protocol: Option<StdioProtocol>,
    /// Pooling of the program between messages, if configured.
    pub pool: Option<PoolSettings>,
}

/// User as which a program runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProgramUser {
    /// Ids of the user; `None` is the user of the service, or a user that the service has not assigned yet.
    pub ids: Option<UnixUser>,
    /// True if the service picks the user from its configured range.
    pub is_dynamic: bool,
    /// True if another agent runs as the same user, which is not the service's own.
    pub is_shared: bool,
}

impl ProgramSpec {
    /// Returns the settings of an interactive agent; `None` for every other program.
    #[must_use]
    pub fn interactive_spec(&self) -> Option<&InteractiveSpec> {
        self.stdio_protocol.as_ref().and_then(StdioProtocol::interactive_spec)
    }

    /// Returns true if earlier messages of the conversation influence the program.
    #[must_use]
    pub const fn keeps_conversation(&self) -> bool {
        self.session_resume.is_some() || self.pool.is_some()
    }
}

impl PartialEq for PromptPatterns {
    fn eq(&self, other: &Self) -> bool {
        let Self { patterns, silence } = self;
        pattern_sources(&**patterns) == pattern_sources(&*other.patterns)
            && *silence == other.silence
    }
}

/// Exit status of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ProcessExit {
    /// Exit with this code.
    Code(i32),
    /// Termination by this signal.
    Signal(i32),
}

impl ProcessExit {
    /// Returns the exit code; `None` after a signal.
    #[must_use]
    pub const fn code(self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(code),
            Self::Signal(_) => None,
        }
    }
}
