//! Command of a program, searched on this machine.

use std::path::PathBuf;

use super::search::ProgramSearch;
use crate::config::diagnostics::{DiagnosticBuilder, FaultCode, Severity, new_diagnostic};
use crate::config::table::{Positioned, Section};

/// Command of a program.
pub(crate) struct ProgramCommand {
    /// Its file; as configured if there is none.
    pub(crate) file: Positioned<PathBuf>,
    /// Search for its file.
    pub(crate) search: ProgramSearch,
    /// True if the file does not exist.
    pub(crate) is_missing: bool,
}

impl ProgramCommand {
    /// Separates the file from the result of the search.
    pub(crate) fn into_parts(self) -> (PathBuf, (ProgramSearch, bool)) {
        (self.file.value, (self.search, self.is_missing))
    }
}

/// Severity and hint of the report on a program that is not installed.
#[derive(Clone, Copy)]
pub(crate) struct MissingProgramReport {
    pub(crate) severity: Severity,
    pub(crate) hint: &'static str,
}

impl MissingProgramReport {
    /// The agent accepts no work without its program.
    pub(crate) const AGENT: Self = Self {
        severity: Severity::Unavailable,
        hint: "install it; the agent is unavailable until then",
    };
    /// Only the calls of the tool fail without its program.
    pub(crate) const TOOL: Self = Self {
        severity: Severity::Warning,
        hint: "install it, and run `algonius reload`; calls of the tool fail until then",
    };
    /// Only the calls of the server's tools fail without its program.
    pub(crate) const MCP_SERVER: Self = Self {
        severity: Severity::Warning,
        hint: "install it, and run `algonius reload`; calls of its tools fail until then",
    };
}

/// Reads `command` and searches its file, on `search_path` unless it is a path itself.
///
/// If a missing program is no error, the command stays as written.
pub(crate) fn read(
    section: &mut Section<'_>,
    search_path: Option<&str>,
    missing_severity: Severity,
    missing_report: MissingProgramReport,
) -> Option<ProgramCommand> {
    let reader = section.reader;
    if !section.has("command") {
        section.entry("command");
        reader.error(&section.position.below("command").unprintable(), "is needed");
        return None;
    }
    let command = section.nonblank("command")?;
    let search = ProgramSearch::new(reader, &command.value, search_path);
    let file = search.find();
    if file.is_none() {
        let (severity, diagnostic) =
            missing_command(&command.value, missing_severity, missing_report);
        reader.record_fault(severity, &command.position, diagnostic);
    }
    let is_missing = file.is_none();
    let value = file.unwrap_or_else(|| PathBuf::from(&command.value));
    Some(ProgramCommand {
        file: Positioned { value, position: command.position },
        search,
        is_missing,
    })
}

/// Returns the diagnostic about a command that was not found, and its severity.
///
/// A command that can never be found is an error. A program that can still be installed has a report of its own.
fn missing_command(
    command: &str,
    missing_severity: Severity,
    missing_report: MissingProgramReport,
) -> (Severity, DiagnosticBuilder) {
    let diagnostic = if command.contains('/') {
        new_diagnostic("is not an executable file")
    } else {
        new_diagnostic("no such program on the PATH")
    };
    match command {
        _ if command.starts_with('~') => {
            (missing_severity, diagnostic.with_hint("`~` means nothing here: write the whole path"))
        }
        _ if command.contains(' ') && !command.contains('/') => {
            (missing_severity, diagnostic.with_hint("put the arguments into `args`"))
        }
        _ if missing_severity == Severity::Error => {
            let diagnostic =
                diagnostic.with_hint(missing_report.hint).with_code(FaultCode::ProgramMissing);
            (missing_report.severity, diagnostic)
        }
        _ => (missing_severity, diagnostic),
    }
}
