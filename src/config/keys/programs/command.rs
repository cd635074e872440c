//! Command of a program, searched on this machine.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use super::search::ProgramSearch;
use crate::config::diagnostics::{DiagnosticBuilder, FaultCode, Severity, new_diagnostic};
use crate::config::table::{ConfigReader, Positioned, Section, SourcePosition};
use crate::platform::executable_file::ProgramFault;

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
        severity: Severity::AgentUnavailable,
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
    machine_fault_severity: Severity,
    missing_report: MissingProgramReport,
) -> Option<ProgramCommand> {
    let reader = section.reader;
    if !section.has_key("command") {
        section.entry("command");
        reader.report_error(&section.position.child("command").without_excerpt(), "is needed");
        return None;
    }
    let command = section.nonblank_text("command")?;
    let search = ProgramSearch::new(reader, &command.value, search_path);
    let file = search.find();
    if file.is_none() {
        let (severity, diagnostic) = missing_command_diagnostic(
            (&command.value, &search),
            machine_fault_severity,
            missing_report,
        );
        reader.record_fault(severity, &command.position, diagnostic);
    }
    if let Some(file) = &file {
        warn_if_unexecutable(reader, (file, search_path), &command.position);
    }
    let is_missing = file.is_none();
    let value = file.unwrap_or_else(|| PathBuf::from(&command.value));
    Some(ProgramCommand {
        file: Positioned { value, position: command.position },
        search,
        is_missing,
    })
}

/// Warns about a program that was found and cannot be executed.
pub(crate) fn warn_if_unexecutable(
    reader: &ConfigReader<'_>,
    (file, search_path): (&Path, Option<&str>),
    position: &SourcePosition,
) {
    if let Some(fault) = ProgramFault::find(file, search_path) {
        reader.record_fault(Severity::Warning, position, unexecutable_diagnostic(&fault));
    }
}

/// Returns the diagnostic about a command that was found and cannot be executed.
fn unexecutable_diagnostic(fault: &ProgramFault) -> DiagnosticBuilder {
    let diagnostic = new_diagnostic(format!("cannot be executed: {fault}"));
    match (fault, fault.interpreter_or_loader()) {
        (ProgramFault::InterpreterMissing { ends_in_carriage_return: true, .. }, _) => diagnostic
            .with_hint("save the file with the line ends of Unix; every run fails until then"),
        (_, Some(path)) if path.to_string_lossy().contains(' ') => diagnostic.with_hint(
            "write `#!/usr/bin/env -S`, which separates the words; every run fails until then",
        ),
        (_, Some(path)) => {
            let path = path.to_string_lossy();
            let hint = format!("provide {}; every run fails until then", path.escape_debug());
            diagnostic.with_hint(hint)
        }
        (ProgramFault::UnknownFormat, _) => {
            diagnostic.with_hint("begin the file with a line such as `#!/bin/sh`")
        }
        _ => diagnostic.with_hint("every run fails until the file is replaced"),
    }
}

/// Returns the diagnostic about a command that was not found, and its severity.
///
/// A command that can never be found is an error. A program that can still be installed has a report of its own.
fn missing_command_diagnostic(
    (command, search): (&str, &ProgramSearch),
    machine_fault_severity: Severity,
    missing_report: MissingProgramReport,
) -> (Severity, DiagnosticBuilder) {
    let diagnostic = new_diagnostic(describe_missing(command, search.command()));
    match command {
        _ if command.starts_with('~') => (
            machine_fault_severity,
            diagnostic.with_hint("`~` means nothing here: write the whole path"),
        ),
        _ if command.contains(' ') && !command.contains('/') => {
            (machine_fault_severity, diagnostic.with_hint("put the arguments into `args`"))
        }
        _ if machine_fault_severity == Severity::Error => {
            let diagnostic =
                diagnostic.with_hint(missing_report.hint).with_code(FaultCode::ProgramMissing);
            (missing_report.severity, diagnostic)
        }
        _ => (machine_fault_severity, diagnostic),
    }
}

/// Returns the reason for which a command is no program. `path` is its file, if the command contains a folder.
fn describe_missing(command: &str, path: &Path) -> &'static str {
    if !command.contains('/') {
        return "no such program on the PATH";
    }
    match fs::metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => "does not exist",
        Err(error) if error.kind() == ErrorKind::NotADirectory => {
            "does not exist: a part of its path is no folder"
        }
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            "the service may not enter its folder"
        }
        Err(_) => "cannot be examined",
        Ok(metadata) if metadata.is_dir() => "is a folder",
        Ok(metadata) if !metadata.is_file() => "is not a regular file",
        Ok(_) => "may not be executed; `chmod +x` permits it",
    }
}
