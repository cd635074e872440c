//! Keys of a backend program, such as that of a tool: its command, its environment, its sandbox and its limits.

use std::path::PathBuf;

use algonius_actors::model::host::sandbox::{Confinement, Sandbox};
use algonius_actors::model::program::backend_program::BackendProgram;

use crate::config::diagnostics::Severity;
use crate::config::keys::programs::command::{self, MissingProgramReport};
use crate::config::keys::programs::sandbox::{self, SandboxContext};
use crate::config::keys::programs::{environment, resources, working_dir};
use crate::config::table::Section;

/// Key of agents' programs that a backend program does not have yet.
const UNSUPPORTED_KEYS: [&str; 1] = ["user"];

/// Backend program that is read.
pub(super) struct BackendReadContext {
    /// Its kind with an article, for diagnostics.
    pub(super) noun: &'static str,
    /// Report on a program that is not installed.
    pub(super) missing_report: MissingProgramReport,
    /// Severity of a fault of the machine.
    pub(super) machine_fault_severity: Severity,
}

/// Reads a backend program; `None` without a command.
pub(super) fn read(
    table: &mut Section<'_>,
    context: &BackendReadContext,
) -> Option<BackendProgram> {
    let (reader, machine_fault_severity) = (table.reader, context.machine_fault_severity);
    let env = environment::read_for_backend(table, machine_fault_severity);
    let variable = |name: &str| {
        let configured = env.get(name).map(|variable| variable.value.clone());
        configured.or_else(|| reader.nonempty_env(name))
    };
    let search_path = variable("PATH");
    let command = command::read(
        table,
        search_path.as_deref(),
        machine_fault_severity,
        context.missing_report,
    );
    let command = command.map(|command| command.file.value);
    let working_dir = working_dir::read(table, machine_fault_severity);
    let home = variable("HOME");
    let sandbox_context = SandboxContext {
        access: BackendProgram::ACCESS,
        home: home.clone(),
        command: command.as_deref(),
        // Without it there is no warning about a writable working folder: a backend claims no workspace.
        working_dir: None,
        allows_network_by_default: false,
        allows_shared_memory_by_default: false,
        is_required_by_default: true,
        machine_fault_severity,
    };
    let sandbox = read_sandbox(table, &sandbox_context, (context.noun, working_dir.is_some()));
    let mut resources_section = table.section("resources");
    let resource_limits = resources::read(&mut resources_section);
    resources_section.report_unknown_keys();
    table.refuse_unsupported_keys(&UNSUPPORTED_KEYS);
    Some(BackendProgram {
        command: command?,
        env,
        working_dir,
        home: home.map(PathBuf::from).unwrap_or_default(),
        sandbox,
        resource_limits,
        confinement: Confinement::default(),
    })
}

/// Reads the sandbox, and reports keys that a backend program does not support.
fn read_sandbox(
    table: &mut Section<'_>,
    context: &SandboxContext<'_>,
    (noun, has_working_dir): (&str, bool),
) -> Sandbox {
    let sandbox = sandbox::read(table, context);
    if sandbox.has_inner_sandbox {
        let position = table.position.child("sandbox.nested").without_excerpt();
        table.reader.report_error(&position, format!("is not supported for {noun}"));
    }
    if !has_working_dir && sandbox.protected.iter().any(|path| path.is_relative()) {
        let position = table.position.child("sandbox.protected").without_excerpt();
        table.reader.report_error(&position, "a relative path needs `working_dir`");
    }
    sandbox
}
