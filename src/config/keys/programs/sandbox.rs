//! `sandbox` of an agent and of a backend program: restrictions of their programs by the system.

use std::path::{Component, Path, PathBuf};

use algonius_actors::model::agent::Access;
use algonius_actors::model::host::sandbox::{
    Isolation, IsolationRequirement, Sandbox, SharedMemoryAccess,
};
use algonius_actors::model::program::ProgramSpec;

use crate::config::diagnostics::{Severity, new_diagnostic};
use crate::config::table::{ConfigReader, Positioned, Section, SourcePosition, ValueShape};
use crate::platform::executable_file::PathVisibility;

const ISOLATIONS: [(&str, Isolation); 2] =
    [("landlock", Isolation::Landlock), ("bubblewrap", Isolation::Bubblewrap)];

const MISSING_WRITABLE_HINT: &str = "make it: only what is there can be made writable";
const MISSING_HIDDEN_HINT: &str = "leave it out: only what is there can be hidden";
const HIDDEN_INTERPRETER_HINT: &str =
    "hide other folders, or move the interpreter: the sandbox would not let it be executed";
const MISSING_PROTECTED_HINT: &str = "make it: only what is there can be protected";

/// Program whose sandbox is read, as far as it is known.
pub(crate) struct SandboxContext<'p> {
    pub(crate) access: Access,
    /// Home in which paths with `~/` start.
    pub(crate) home: Option<String>,
    pub(crate) command: Option<&'p Path>,
    pub(crate) working_dir: Option<&'p Path>,
    /// True if the program may use the network by default.
    pub(crate) allows_network_by_default: bool,
    /// True if the program may use the shared memory of the machine by default.
    pub(crate) allows_shared_memory_by_default: bool,
    /// True if each sandbox is required by default, and not only one with more restrictions than the access implies.
    pub(crate) is_required_by_default: bool,
    /// Severity of a fault of the machine.
    pub(crate) machine_fault_severity: Severity,
}

/// Reads the sandbox into the program. A fault of the machine has the severity `machine_fault_severity`.
pub(crate) fn read_into_program(
    agent: &mut Section<'_>,
    program: Option<&mut ProgramSpec>,
    access: Access,
    machine_fault_severity: Severity,
) {
    let home = program.as_ref().and_then(|program| program.env.get("HOME"));
    let home = home.map(|home| home.value.clone()).or_else(|| agent.reader.nonempty_env("HOME"));
    let context = SandboxContext {
        access,
        home,
        command: program.as_ref().map(|program| program.command.as_path()),
        working_dir: program.as_ref().map(|program| program.working_dir.as_path()),
        allows_network_by_default: true,
        allows_shared_memory_by_default: true,
        is_required_by_default: false,
        machine_fault_severity,
    };
    let sandbox = read(agent, &context);
    if let Some(program) = program {
        program.sandbox = sandbox;
    }
}

/// Reads the sandbox of a program.
pub(crate) fn read(table: &mut Section<'_>, context: &SandboxContext<'_>) -> Sandbox {
    let SandboxContext { access, command, working_dir, machine_fault_severity, .. } = *context;
    let mut section = table.section("sandbox");
    let enforce = section.flag("enforce", true);
    let nested = section.flag("nested", false);
    let network = section.flag("network", context.allows_network_by_default);
    let shared_memory = match section.flag("shared_memory", context.allows_shared_memory_by_default)
    {
        true => SharedMemoryAccess::Allowed,
        false => SharedMemoryAccess::Refused,
    };
    let path_resolver = SandboxPathResolver { home: context.home.clone(), machine_fault_severity };
    let configured_writable = section.text_list("writable");
    let writable: Option<Vec<_>> = configured_writable.as_ref().map(|configured| {
        configured
            .iter()
            .map(|path| path_resolver.resolve(&section, path, MISSING_WRITABLE_HINT))
            .collect()
    });
    let isolation = section.keyword("isolation", &ISOLATIONS);
    let visible_paths: Vec<_> =
        writable.iter().flatten().map(PathBuf::as_path).chain(working_dir).collect();
    let hidden = read_hidden_paths(&mut section, &path_resolver, (command, &visible_paths));
    let protected = read_protected_paths(&mut section, &path_resolver);
    let sockets = read_sockets(&mut section);
    let sandbox = Sandbox {
        is_enforced: enforce,
        has_inner_sandbox: nested,
        isolation_requirement: IsolationRequirement::Nothing,
        writable,
        allows_network: network,
        shared_memory,
        isolation: isolation.as_ref().map(|found| found.value),
        hidden,
        protected,
        allowed_sockets: sockets,
        canonical_paths: None,
    };
    refuse_unsuitable_landlock(&section, isolation, &sandbox);
    check_nested_sandbox(&section, &sandbox);
    let isolation_requirement = read_requirement(&mut section, context, &sandbox);
    if let (Access::ReadOnly, Some(working_dir)) = (access, working_dir) {
        warn_if_workspace_writable(
            &section,
            &configured_writable.unwrap_or_default(),
            &sandbox,
            working_dir,
        );
    }
    section.report_unknown_keys();
    Sandbox { isolation_requirement, ..sandbox }
}

/// Returns the weakest isolation with which the program is started. By default, each sandbox of a backend program is
/// required, and a sandbox of an agent with more restrictions than `access` implies.
fn read_requirement(
    section: &mut Section<'_>,
    context: &SandboxContext<'_>,
    sandbox: &Sandbox,
) -> IsolationRequirement {
    let limits_writes = context.access == Access::ReadWrite && sandbox.writable.is_some();
    let is_restricted = sandbox.needs_bubblewrap() || !sandbox.allows_network || limits_writes;
    let is_given = section.has_key("required");
    let required = section
        .flag("required", (is_restricted || context.is_required_by_default) && sandbox.is_enforced);
    // The schema knows no default that depends on other keys.
    section.record_shape("required", || ValueShape::Flag(None));
    if !sandbox.is_enforced && (is_restricted || required) {
        let position = section.position.child("enforce").without_excerpt();
        let diagnostic = new_diagnostic("`enforce = false` leaves nothing to require or to refuse");
        let is_default_refusal = !context.allows_network_by_default && !section.has_key("network");
        let hint = "write `network = true` too: by default the network is refused";
        let diagnostic = if is_default_refusal { diagnostic.with_hint(hint) } else { diagnostic };
        section.reader.report_error(&position, diagnostic);
    }
    match (required, is_given) {
        (false, _) => IsolationRequirement::Nothing,
        (true, false) => IsolationRequirement::Sandbox,
        (true, true) => IsolationRequirement::SandboxAndServiceFiles,
    }
}

/// Refuses folders with `nested`, because the service does not restrict the folders of such a program.
fn check_nested_sandbox(section: &Section<'_>, sandbox: &Sandbox) {
    if sandbox.has_inner_sandbox && (!sandbox.is_enforced || sandbox.writable.is_some()) {
        let diagnostic =
            new_diagnostic("with `nested = true` the program decides itself what it may change")
                .with_hint("leave out `writable` and `enforce = false`, or leave out `nested`");
        section
            .reader
            .report_error(&section.position.child("nested").without_excerpt(), diagnostic);
    }
}

/// Returns the sockets of other programs that the agent may reach. A missing one may be created later.
fn read_sockets(section: &mut Section<'_>) -> Vec<PathBuf> {
    let configured_sockets = section.text_list("sockets").unwrap_or_default();
    let is_absolute = |socket: &Positioned<String>| socket.value.starts_with('/');
    for socket in configured_sockets.iter().filter(|socket| !is_absolute(socket)) {
        section.reader.report_error(&socket.position, "must be an absolute path");
    }
    configured_sockets.into_iter().map(|socket| socket.value.into()).collect()
}

/// Refuses Landlock if the sandbox has exceptions, because Landlock has no deny rules.
fn refuse_unsuitable_landlock(
    section: &Section<'_>,
    isolation: Option<Positioned<Isolation>>,
    sandbox: &Sandbox,
) {
    let landlock = isolation.filter(|isolation| isolation.value == Isolation::Landlock);
    if let Some(isolation) = landlock.filter(|_| sandbox.needs_bubblewrap()) {
        let diagnostic = new_diagnostic("Landlock can neither hide nor protect a path")
            .with_hint("leave it out, or write \"bubblewrap\"");
        section.reader.report_error(&isolation.position, diagnostic);
    }
}

/// Lookup of paths in a sandbox section.
struct SandboxPathResolver {
    home: Option<String>,
    /// Severity of a missing path.
    machine_fault_severity: Severity,
}

impl SandboxPathResolver {
    /// Returns a path relative to the home or to the file's folder. The system accepts only existing paths.
    fn resolve(&self, section: &Section<'_>, path: &Positioned<String>, hint: &str) -> PathBuf {
        let resolved = self.expand_tilde(&path.value);
        if resolved.is_none() && path.value.starts_with("~/") {
            let diagnostic = new_diagnostic("has no meaning: `HOME` is not set, empty or relative")
                .with_hint("set `HOME` to the folder, or write its whole path");
            section.reader.record_fault(self.machine_fault_severity, &path.position, diagnostic);
            return section.reader.resolve_path(&path.value);
        }
        let resolved = resolved.unwrap_or_else(|| section.reader.resolve_path(&path.value));
        if !resolved.exists() {
            let diagnostic = new_diagnostic("there is no such file or folder").with_hint(hint);
            section.reader.record_fault(self.machine_fault_severity, &path.position, diagnostic);
        }
        resolved
    }

    fn expand_tilde(&self, path: &str) -> Option<PathBuf> {
        let (rest, home) = path.strip_prefix("~/").zip(self.home.as_ref())?;
        Some(Path::new(home)).filter(|home| home.is_absolute()).map(|home| home.join(rest))
    }
}

/// Reads the hidden paths. The program itself must stay visible, as the `visible` paths do.
fn read_hidden_paths(
    section: &mut Section<'_>,
    path_resolver: &SandboxPathResolver,
    (command, visible_paths): (Option<&Path>, &[&Path]),
) -> Vec<PathBuf> {
    let configured_hidden = section.text_list("hidden").unwrap_or_default();
    let hidden: Vec<_> = configured_hidden
        .iter()
        .map(|path| path_resolver.resolve(section, path, MISSING_HIDDEN_HINT))
        .collect();
    if let Some(program) = command.and_then(|command| command.canonicalize().ok()) {
        for (path, folder) in configured_hidden.iter().zip(&hidden) {
            report_if_program_hidden(
                section.reader,
                (&program, folder, visible_paths),
                &path.position,
            );
        }
    }
    hidden
}

/// Reports that the sandbox would hide a program without links, or its interpreter.
fn report_if_program_hidden(
    reader: &ConfigReader<'_>,
    (program, folder, visible_paths): (&Path, &Path, &[&Path]),
    position: &SourcePosition,
) {
    if folder.canonicalize().is_ok_and(|folder| program.starts_with(folder)) {
        reader.report_error(position, "the program is in it, and could not be started");
        return;
    }
    let visible_paths = visible_paths.iter().copied().map(Path::to_owned).collect();
    let path_visibility =
        PathVisibility { hidden: vec![folder.to_owned()], visible: visible_paths };
    if let Some(file) = path_visibility.find_hidden_executed_file(program, None) {
        let name = file.file_name().unwrap_or(file.as_os_str()).to_string_lossy();
        let message = format!("the interpreter `{}` of the program is in it", name.escape_debug());
        let diagnostic = new_diagnostic(message).with_hint(HIDDEN_INTERPRETER_HINT);
        reader.record_fault(Severity::Warning, position, diagnostic);
    }
}

/// Reads the protected paths. A relative one is in the working directory, which a caller may choose, so its existence
/// is checked when an attempt starts.
fn read_protected_paths(
    section: &mut Section<'_>,
    path_resolver: &SandboxPathResolver,
) -> Vec<PathBuf> {
    let configured_protected = section.text_list("protected").unwrap_or_default();
    let resolve = |path: &Positioned<String>| {
        let relative = Path::new(&path.value);
        if relative.is_absolute() || path.value.starts_with("~/") {
            return path_resolver.resolve(section, path, MISSING_PROTECTED_HINT);
        }
        let mut parts = relative.components().peekable();
        let has_components = parts.peek().is_some();
        if !has_components || !parts.all(|part| matches!(part, Component::Normal(_))) {
            let diagnostic =
                new_diagnostic("must be absolute, or below the working folder without `..`");
            section.reader.report_error(&path.position, diagnostic);
        }
        relative.to_owned()
    };
    configured_protected.iter().map(resolve).collect()
}

/// Warns about a read-only agent whose working directory is writable.
fn warn_if_workspace_writable(
    section: &Section<'_>,
    configured: &[Positioned<String>],
    sandbox: &Sandbox,
    working_dir: &Path,
) {
    let Ok(workspace) = working_dir.canonicalize() else { return };
    let writable = sandbox.writable.as_deref().unwrap_or_default();
    for (path, folder) in configured.iter().zip(writable) {
        if folder.canonicalize().is_ok_and(|folder| workspace.starts_with(folder)) {
            let diagnostic =
                new_diagnostic("the agent's working folder is in it, and so may be changed")
                    .with_hint("with `access = \"read-write\"` agents would not meet there");
            section.reader.report_warning(&path.position, diagnostic);
        }
    }
}
