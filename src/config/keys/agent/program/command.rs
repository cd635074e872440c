//! Command of an agent, searched on this machine.

use std::path::PathBuf;

use crate::config::diagnostics::{DiagnosticBuilder, Severity, from_message};
use crate::config::keys::program_search::ProgramSearch;
use crate::config::table::{Section, Spanned};

/// Command of an agent.
pub(crate) struct ProgramCommand {
    /// Its file; as configured if there is none.
    pub(crate) file: Spanned<PathBuf>,
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

/// Reads `command` and searches its file, on `search_path` unless it is a path itself.
///
/// If a missing program is no error, the command stays as written.
pub(crate) fn read(
    section: &mut Section<'_>,
    search_path: Option<&str>,
    missing_severity: Severity,
) -> Option<ProgramCommand> {
    let reader = section.reader;
    if !section.has("command") {
        section.entry("command");
        reader.error(&section.position.below("command").hidden(), "is needed");
        return None;
    }
    let command = section.nonblank("command")?;
    let search = ProgramSearch::new(reader, &command.value, search_path);
    let file = search.find();
    if file.is_none() {
        let (severity, diagnostic) = missing_command(&command.value, missing_severity);
        reader.record(severity, &command.position, diagnostic);
    }
    let is_missing = file.is_none();
    let value = file.unwrap_or_else(|| PathBuf::from(&command.value));
    Some(ProgramCommand { file: Spanned { value, position: command.position }, search, is_missing })
}

/// Returns the diagnostic about a command that was not found, and its severity.
///
/// A command that can never be found is an error. A program that can still be installed
/// makes only its agent unavailable.
fn missing_command(command: &str, missing_severity: Severity) -> (Severity, DiagnosticBuilder) {
    let diagnostic = if command.contains('/') {
        from_message("is not an executable file")
    } else {
        from_message("no such program on the PATH")
    };
    match command {
        _ if command.starts_with('~') => {
            (missing_severity, diagnostic.hint("`~` means nothing here: write the whole path"))
        }
        _ if command.contains(' ') && !command.contains('/') => {
            (missing_severity, diagnostic.hint("put the arguments into `args`"))
        }
        _ if missing_severity == Severity::Error => {
            let hint = "install it; the agent is unavailable until then";
            (Severity::Unavailable, diagnostic.hint(hint))
        }
        _ => (missing_severity, diagnostic),
    }
}
