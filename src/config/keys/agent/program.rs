//! Program of an agent: its start, its input, its output and its success conditions.

mod arguments;
mod control;
pub(crate) mod file_delivery;
mod interactive_commands;
pub(crate) mod mode;
mod prompt_patterns;
mod runtime;
mod session;
mod stdio_protocol;
mod success;
pub(crate) mod user;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use algonius_actors::model::agent::Access;
use algonius_actors::model::agent::success_criteria::SuccessCriteria;
use algonius_actors::model::host::resources::ResourceLimits;
use algonius_actors::model::host::sandbox::Sandbox;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::program::stdio_protocol::StdioProtocol;
use algonius_actors::model::program::{
    EnvVariable, EventDialect, InputMethod, OutputMethod, ProgramSpec, ServiceLossAction,
};

use crate::config::keys::programs::command::{self, MissingProgramReport, ProgramCommand};
use crate::config::keys::programs::environment::{self, is_identifier};
use crate::config::keys::programs::search::ProgramSearch;
use crate::config::keys::programs::working_dir;
use arguments::Arguments;

use crate::config::diagnostics::{Severity, new_diagnostic};
use crate::config::table::{Positioned, Section, value};

const INPUT_METHODS: [(&str, InputMethod); 4] = [
    ("stdin", InputMethod::Stdin),
    ("file", InputMethod::File),
    ("args", InputMethod::Args),
    ("json-rpc", InputMethod::JsonRpc),
];

const OUTPUT_METHODS: [(&str, OutputMethod); 9] = [
    ("stdout", OutputMethod::Stdout),
    ("file", OutputMethod::File),
    ("events", OutputMethod::Events),
    ("claude-stream-json", OutputMethod::Native(EventDialect::Claude)),
    ("codex-jsonl", OutputMethod::Native(EventDialect::Codex)),
    ("gemini-stream-json", OutputMethod::Native(EventDialect::Gemini)),
    ("copilot-jsonl", OutputMethod::Native(EventDialect::Copilot)),
    ("opencode-jsonl", OutputMethod::Native(EventDialect::Opencode)),
    ("json-rpc", OutputMethod::JsonRpc),
];

/// Program of an agent, as far as this machine has it.
pub(crate) struct ConfiguredProgram {
    pub(crate) spec: ProgramSpec,
    /// Search for its file.
    pub(crate) search: ProgramSearch,
    /// True if the program is not installed.
    pub(crate) is_missing: bool,
}

/// Reads the program of an agent. A fault of the machine has the severity `machine_fault_severity`.
pub(crate) fn read(
    section: &mut Section<'_>,
    (id, data_dir): (&AgentId, &Path),
    access: Access,
    machine_fault_severity: Severity,
) -> Option<ConfiguredProgram> {
    let run_as = user::read(section, machine_fault_severity);
    let mut env = environment::read_for_agent(section, access, machine_fault_severity);
    let agent_home = runtime::read_agent_home(section, (id, data_dir), run_as.is_dynamic());
    if agent_home.is_none() {
        run_as.set_variables(&mut env);
    }
    let program_runtime = runtime::read(section, agent_home, &mut env);
    let protocol = control::read_protocol(section);
    let working_dir = read_working_dir(section, machine_fault_severity, protocol.is_some());
    let path = search_path(section, &env);
    let path = path.as_deref();
    let command = command::read(section, path, machine_fault_severity, MissingProgramReport::AGENT);
    let arguments = Arguments::read(section, access, program_runtime.model.is_some());
    arguments.check_model(section, (program_runtime.model.is_some(), protocol.is_some()));
    // A program with a control protocol sends its questions to the service.
    if let Some(command) = command.as_ref().filter(|_| protocol.is_none()) {
        let words = arguments.words();
        interactive_commands::warn_if_interactive(section.reader, &command.file, &words);
    }
    let (input, output) = read_methods(section, protocol.is_some());
    if let (Some(input), Some(output)) = (input, output) {
        arguments.check_method_placeholders(section, input, output);
    }
    let input_file = arguments::read_file_name(section, "input_file", "input.txt");
    let output_file = arguments::read_file_name(section, "output_file", "output.txt");
    let (session, session_settings) = session::read(section, &arguments, input, output, protocol);
    let interactive_spec =
        protocol.map(|protocol| session_settings.into_interactive_spec(protocol));
    let stdio_protocol = stdio_protocol::read(section, input, output, interactive_spec);
    let on_loss = read_service_loss_action(section, stdio_protocol.as_ref());
    // All keys are read before a missing command ends the function, so that each fault is reported.
    let (file, search_result) = command.map(ProgramCommand::into_parts).unzip();
    let spec = ProgramSpec {
        on_service_loss: on_loss,
        params: read_params(section),
        prompt_patterns: prompt_patterns::read(section),
        success_criteria: read_success_criteria(
            section,
            (output, stdio_protocol.is_some()),
            (path, machine_fault_severity),
        ),
        failure_rules: success::read_failure_rules(section),
        usage_pattern: success::read_usage_pattern(section),
        command: file?,
        args: arguments.templates(),
        env,
        user: run_as.program_user(),
        working_dir: working_dir?,
        input_method: input?,
        output_method: output?,
        input_file_template: input_file,
        output_file_template: output_file,
        sandbox: Sandbox::default(),
        resource_limits: ResourceLimits::default(),
        runtime_settings: program_runtime,
        session_resume: session.map(Box::new),
        stdio_protocol,
        pool: None,
    };
    let (search, is_missing) = search_result?;
    Some(ConfiguredProgram { spec, search, is_missing })
}

/// Returns the path on which the command is searched: that of the program, as it starts with it. An empty one is none.
fn search_path(section: &Section<'_>, env: &BTreeMap<String, EnvVariable>) -> Option<String> {
    let configured = env.get("PATH").map(|variable| variable.value.clone());
    configured.or_else(|| section.reader.env("PATH")).filter(|path| !path.is_empty())
}

/// Reads the treatment of the program after a loss of the service. A program with a protocol has no partner then, and
/// ends.
fn read_service_loss_action(
    section: &mut Section<'_>,
    stdio_protocol: Option<&StdioProtocol>,
) -> ServiceLossAction {
    let keywords = [("reattach", ServiceLossAction::Reattach), ("kill", ServiceLossAction::Kill)];
    let has_rpc_or_turns =
        stdio_protocol.is_some_and(|stdio_protocol| stdio_protocol.interactive_spec().is_none());
    let found = section.keyword("on_supervisor_loss", &keywords);
    let default =
        if has_rpc_or_turns { ServiceLossAction::Kill } else { ServiceLossAction::default() };
    if let Some(found) = found.as_ref().filter(|found| has_rpc_or_turns && found.value != default) {
        let diagnostic = "must be \"kill\": no service continues the protocol of the program";
        section.reader.report_error(&found.position, diagnostic);
    }
    found.map_or(default, |found| found.value)
}

/// Reads the conditions of success. Only a program whose whole output is the answer may write a document.
fn read_success_criteria(
    section: &mut Section<'_>,
    (output, has_protocol): (Option<OutputMethod>, bool),
    search_context: (Option<&str>, Severity),
) -> SuccessCriteria {
    let is_text = matches!(output, None | Some(OutputMethod::Stdout | OutputMethod::File));
    success::read_criteria(section.section("success"), is_text && !has_protocol, search_context)
}

/// Reads the methods of input and output. The control protocol changes their default values.
fn read_methods(
    section: &mut Section<'_>,
    has_control_protocol: bool,
) -> (Option<InputMethod>, Option<OutputMethod>) {
    let (default_input, default_output) = match has_control_protocol {
        true => (InputMethod::JsonRpc, OutputMethod::JsonRpc),
        false => (InputMethod::Stdin, OutputMethod::Stdout),
    };
    let input = read_method(section, "input", &INPUT_METHODS, default_input);
    let output = read_method(section, "output", &OUTPUT_METHODS, default_output);
    (input, output)
}

/// Reads a method of input or output; `None` if an unknown one is given.
fn read_method<T: Copy>(
    section: &mut Section<'_>,
    key: &'static str,
    known: &[(&str, T)],
    default: T,
) -> Option<T> {
    let is_absent = !section.has_key(key);
    section.keyword(key, known).map(|found| found.value).or(is_absent.then_some(default))
}

/// Reads the working directory: as configured, or the one in which the service was started. Control protocols have its
/// path in JSON, so it `must_be_text` for them.
fn read_working_dir(
    section: &mut Section<'_>,
    machine_fault_severity: Severity,
    must_be_text: bool,
) -> Option<PathBuf> {
    let folder = read_working_dir_or_current(section, machine_fault_severity)?;
    if must_be_text && folder.to_str().is_none() {
        let diagnostic = new_diagnostic("the path is not UTF-8, which `protocol` requires")
            .with_hint("rename the folder, or reach it by a link");
        let position = section.position.child("working_dir").without_excerpt();
        section.reader.record_fault(machine_fault_severity, &position, diagnostic);
    }
    Some(folder)
}

fn read_working_dir_or_current(
    section: &mut Section<'_>,
    machine_fault_severity: Severity,
) -> Option<PathBuf> {
    let configured = working_dir::read(section, machine_fault_severity);
    // A key with a fault has no folder either.
    if configured.is_some() || section.has_key("working_dir") {
        return configured;
    }
    let current = std::env::current_dir();
    let report = |error: std::io::Error| {
        let diagnostic = new_diagnostic(format!("the service's own folder is not known: {error}"));
        let position = section.position.child("working_dir").without_excerpt();
        section.reader.record_fault(Severity::Error, &position, diagnostic);
    };
    current.map_err(report).ok()
}

/// Reads the default values of parameters.
fn read_params(section: &mut Section<'_>) -> BTreeMap<String, String> {
    let reader = section.reader;
    let mut params = BTreeMap::new();
    for (name, entry) in section.section("params").entries() {
        if !is_identifier(&name.value) {
            reader.report_error(
                &name.position,
                "the name of a parameter has letters, digits and `_` only",
            );
        }
        let entry = Positioned { position: entry.position.without_excerpt(), ..entry };
        params.extend(value::scalar(reader, &entry).map(|text| (name.value, text)));
    }
    params
}
