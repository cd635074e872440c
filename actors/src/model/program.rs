//! A command-line program, as configured: how it is started, fed, read and judged.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use regex::Regex;

use super::contract::{FailureContract, SuccessContract, written};
use super::dialogue::{Dialogue, Keeping};
use super::outfit::Outfit;
use super::resources::Resources;
use super::sandbox::Sandbox;
use super::session::Continuity;

/// How the program receives its input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputPattern {
    /// On standard input, which is then closed.
    Stdin,
    /// In a file of mode 0600 whose path is `{{ input_file }}`.
    File,
    /// In an argument that names `{{ input }}`.
    Args,
    /// In a call of JSON-RPC on standard input, which stays open until the call is answered.
    JsonRpc,
}

/// How the program gives its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputPattern {
    /// Standard output is the answer.
    Stdout,
    /// The file whose path is `{{ output_file }}` is the answer.
    File,
    /// Each line of standard output is one JSON event.
    Events,
    /// Each line of standard output is one JSON event of the program's own kind.
    Native(Dialect),
    /// In messages of JSON-RPC on standard output.
    JsonRpc,
}

/// The events of a program that has its own kind of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `claude --output-format stream-json`, and what writes like it.
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

/// What becomes of the program when the service is killed while it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnLoss {
    /// It goes on, and the next life of the service takes it up.
    #[default]
    Reattach,
    /// It is killed at once.
    Kill,
}

/// Where the value of one environment variable comes from.
#[derive(Clone, PartialEq, Eq)]
pub enum Secrecy {
    /// May be shown.
    Plain,
    /// Came from the service's environment or a file; masked wherever it turns up.
    Secret,
}

/// One variable of the program's environment.
#[derive(Clone, PartialEq, Eq)]
pub struct Variable {
    /// The value the program sees.
    pub value: String,
    /// Whether the value is registered for redaction.
    pub secrecy: Secrecy,
}

impl std::fmt::Debug for Variable {
    /// Hides the value: a specification must be printable without giving a secret away.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self.secrecy {
            Secrecy::Plain => "Variable(plain)",
            Secrecy::Secret => "Variable(secret)",
        })
    }
}

/// How a program's question to a person looks.
#[derive(Debug, Clone)]
pub struct PromptContract {
    /// A match in the last line of an output, which has no end, is a question. Without any, nothing
    /// is one.
    pub patterns: Arc<[Regex]>,
    /// So long a silence after a question says that the program waits for its answer.
    pub silence: Duration,
}

/// A checked program. Templates are strict: an unknown variable was refused at load. Two that are
/// equal are written alike.
#[derive(Debug, Clone, PartialEq)]
pub struct ProgramSpec {
    /// Absolute path of the executable.
    pub command: PathBuf,
    /// Templates of the arguments, in order.
    pub args: Vec<String>,
    /// Values of `{{ param.x }}` when the request gives none.
    pub params: BTreeMap<String, String>,
    /// Variables besides the allow-list.
    pub env: BTreeMap<String, Variable>,
    /// Absolute folder to start in.
    pub working_dir: PathBuf,
    /// How input goes in.
    pub input: InputPattern,
    /// How the answer comes out.
    pub output: OutputPattern,
    /// File name of the input within the execution's own folder, as a template.
    pub input_file: String,
    /// File name of the output within the execution's own folder, as a template.
    pub output_file: String,
    /// When it is a success.
    pub success: SuccessContract,
    /// What its failures mean.
    pub failures: FailureContract,
    /// What becomes of it when the service is killed.
    pub on_loss: OnLoss,
    /// When it waits for a person.
    pub prompts: PromptContract,
    /// What it may change and reach.
    pub sandbox: Sandbox,
    /// How much it may take of the machine.
    pub resources: Resources,
    /// What it is given beside its arguments.
    pub outfit: Outfit,
    /// How it goes on with a conversation, where it does.
    pub session: Option<Box<Continuity>>,
    /// How it is spoken to while it runs; `None` where it reads its input to the end.
    pub dialogue: Option<Dialogue>,
    /// How it is kept between messages, where it is.
    pub keeping: Option<Keeping>,
}

impl ProgramSpec {
    /// Whether what was said before matters to it.
    #[must_use]
    pub const fn remembers(&self) -> bool {
        self.session.is_some() || self.keeping.is_some()
    }
}

impl PartialEq for PromptContract {
    fn eq(&self, other: &Self) -> bool {
        let Self { patterns, silence } = self;
        written(&**patterns) == written(&*other.patterns) && *silence == other.silence
    }
}

/// How a process ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Exit {
    /// By itself, with this code.
    Code(i32),
    /// By this signal.
    Signal(i32),
}

impl Exit {
    /// The exit code, where there is one.
    #[must_use]
    pub const fn code(self) -> Option<i32> {
        match self {
            Self::Code(code) => Some(code),
            Self::Signal(_) => None,
        }
    }
}
