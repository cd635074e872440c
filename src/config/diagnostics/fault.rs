//! Faults of a configuration, in the form of compiler messages.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

/// Severity of a fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Severity {
    /// The configuration is not used.
    Error,
    /// The configuration is used; its author should know of the problem nevertheless.
    Warning,
    /// The configuration is used, because the fault concerns a disabled agent: for an enabled one it would be an error.
    WarningWhileDisabled,
    /// The configuration is used, and one agent accepts no work until its program is installed.
    AgentUnavailable,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning | Self::WarningWhileDisabled | Self::AgentUnavailable => "warning",
        })
    }
}

/// Kind of a fault. Public; values are only added.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FaultCode {
    /// The file is not TOML.
    Syntax,
    /// The file cannot be read.
    FileUnreadable,
    /// The key does not exist.
    UnknownKey,
    /// A required key is missing.
    MissingKey,
    /// A value is not valid for its key.
    #[default]
    InvalidValue,
    /// A program is not installed: the agent is unavailable.
    ProgramMissing,
    /// The machine lacks something that a disabled agent would need.
    MissingWhileDisabled,
    /// The configuration works; its author should know of something.
    Advice,
    /// An agent is not isolated from the service.
    OpenBoundary,
    /// The owner or the mode of a file prevents `serve` from starting here.
    UntrustedFile,
    /// Changed files are not applied automatically.
    Unwatched,
}

/// Fault at one position of the file. Displayed as one line that never contains a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigFault {
    /// Path of the file as the caller named it.
    pub file: PathBuf,
    /// Line from 1; 0 if the fault concerns the file as a whole.
    pub line: usize,
    /// Column in characters from 1; 0 if the fault concerns the file as a whole.
    pub column: usize,
    /// Key with its tables, such as `agents.echo.timeout`; empty for a syntax error.
    pub key_path: String,
    /// Value as written, shortened; absent if it may be a secret.
    pub value: Option<String>,
    /// Kind of the fault, a stable word for programs.
    pub code: FaultCode,
    /// Description of the problem, or of the permitted values.
    pub message: String,
    /// Suggestion of a correction.
    pub hint: Option<String>,
    /// Severity of the fault.
    pub severity: Severity,
}

impl fmt::Display for ConfigFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:", self.file.display())?;
        if self.line > 0 {
            write!(f, "{}:{}:", self.line, self.column)?;
        }
        write!(f, " {}: ", self.severity)?;
        if !self.key_path.is_empty() {
            f.write_str(&self.key_path)?;
            if let Some(value) = &self.value {
                write!(f, " = {value}")?;
            }
            f.write_str(": ")?;
        }
        f.write_str(&self.message)?;
        self.hint.as_ref().map_or(Ok(()), |hint| write!(f, "; {hint}"))
    }
}

/// Faults of a configuration, in the order of the file; at least one is an error.
#[derive(Clone, PartialEq, Eq, thiserror::Error)]
pub struct ConfigFaults {
    list: Vec<ConfigFault>,
    referenced_files: Vec<PathBuf>,
}

impl fmt::Debug for ConfigFaults {
    /// Omits the files: the text at the position of a path may be a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Faults").field("list", &self.list).finish_non_exhaustive()
    }
}

impl ConfigFaults {
    /// Returns the faults in the order of the file.
    pub(crate) fn new(list: Vec<ConfigFault>) -> Self {
        Self { list: sort_by_position(list), referenced_files: Vec::new() }
    }

    /// Returns the same faults, for a configuration that named these files.
    pub(crate) fn with_referenced_files(self, files: Vec<PathBuf>) -> Self {
        Self { referenced_files: files, ..self }
    }

    /// Returns the files that the configuration names, as far as it was read.
    #[must_use]
    pub fn referenced_files(&self) -> &[PathBuf] {
        &self.referenced_files
    }

    /// Returns every fault, including warnings.
    pub fn iter(&self) -> impl Iterator<Item = &ConfigFault> {
        self.list.iter()
    }

    /// Returns the number of errors.
    #[must_use]
    pub fn error_count(&self) -> usize {
        self.list.iter().filter(|fault| fault.severity == Severity::Error).count()
    }
}

impl fmt::Display for ConfigFaults {
    /// Writes one line for each fault.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.list.iter().enumerate() {
            let line_break = if index == 0 { "" } else { "\n" };
            write!(f, "{line_break}{fault}")?;
        }
        Ok(())
    }
}

/// Sorts by line and column; faults of one position keep their order.
pub(crate) fn sort_by_position(mut list: Vec<ConfigFault>) -> Vec<ConfigFault> {
    list.sort_by_key(|fault| (fault.line, fault.column));
    list
}
