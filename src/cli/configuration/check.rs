//! `algonius check`: reports all errors of a configuration.

use std::collections::BTreeMap;
use std::path::Path;

use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::host::boundary::Boundary;
use algonius_actors::model::program::backend_program::{BackendProgram, BackendRole};
use serde::Serialize;
use serde_json::json;

use super::load::load;
use crate::app::confinement::{HostContext, decide_isolation};
use crate::app::file_trust;
use crate::cli::error::CliError;
use crate::cli::output::CliOutput;
use crate::cli::service::installed_unit::InstalledUnit;
use crate::config::{
    self, AgentWorker, ConfigFault, ConfiguredAgent, FaultCode, LoadedConfig, Settings, Severity,
};
use crate::host_capabilities;

/// Error or warning for JSON output.
#[derive(Debug, Serialize)]
struct Diagnostic {
    severity: &'static str,
    code: FaultCode,
    #[serde(skip_serializing_if = "Option::is_none")]
    file: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
    message: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
}

/// Checks the configuration and prints the result.
///
/// # Errors
/// Fails if the configuration is invalid; with `strict`, also if one of its agents cannot serve.
pub(crate) fn run(
    config_file: Option<&Path>,
    strict: bool,
    out: &CliOutput,
) -> Result<(), CliError> {
    let LoadedConfig { mut settings, warnings } = match load(config_file) {
        Err(CliError::InvalidConfiguration(faults)) if out.is_json() => {
            let to_diagnostic = |fault| Diagnostic::from_fault(fault, strict);
            let diagnostics: Vec<_> = faults.iter().map(to_diagnostic).collect();
            out.print_json(&json!({"diagnostics": diagnostics}));
            return Err(CliError::InvalidConfiguration(faults));
        }
        checked => checked?,
    };
    decide_isolation_of_agents(&mut settings)?;
    // Another user may run the service, so untrusted files are only a warning here.
    let account = InstalledUnit::service_account(config_file);
    let trust_faults = file_trust::trust_faults(&settings, config_file, account);
    let trust_faults: Vec<_> = trust_faults.iter().map(ToString::to_string).collect();
    let obstacle = |file| file_trust::automatic_reload_obstacle(&settings, Some(file));
    let unwatched_reason = config_file.and_then(obstacle);
    let agents: Vec<_> = settings.agents.iter().map(|agent| agent.spec.id.to_string()).collect();
    let is_unavailable = |fault: &&ConfigFault| fault.severity == Severity::AgentUnavailable;
    let unavailable_count = warnings.iter().filter(is_unavailable).count();
    if out.is_json() {
        let faults = warnings.iter().map(|fault| Diagnostic::from_fault(fault, strict));
        let machine = machine_warnings(&settings, &trust_faults, unwatched_reason.as_deref());
        let diagnostics: Vec<_> = faults.chain(machine).collect();
        let local_agents = settings.agents.iter().filter_map(agent_with_boundary);
        let boundaries: BTreeMap<_, _> =
            local_agents.map(|(agent, boundary)| (agent.spec.id.as_str(), boundary)).collect();
        out.print_json(&json!({
            "agents": agents, "boundaries": boundaries, "untrusted": trust_faults,
            "unwatched_reason": unwatched_reason, "diagnostics": diagnostics,
        }));
        return require_available_agents(strict, unavailable_count);
    }
    warnings.iter().for_each(|warning| out.print_note(&warning.to_string()));
    for fault in &trust_faults {
        out.print_note(&format!("warning: `serve` refuses to start here: {fault}"));
    }
    for (agent, boundary) in settings.agents.iter().filter_map(agent_with_boundary) {
        print_gaps(("agent", agent.spec.id.as_str()), boundary, out);
    }
    for (backend, program) in backends(&settings) {
        print_gaps((backend.kind_name(), backend.name()), &program.confinement.boundary, out);
    }
    if let Some(reason) =
        unwatched_reason.filter(|_| settings.server.configuration.reloads_on_change)
    {
        let effect = "changed files are applied only by `algonius reload`";
        out.print_note(&format!("warning: {effect}: {reason}"));
    }
    let suffix = match unavailable_count {
        0 => String::new(),
        count => format!(", {count} unavailable"),
    };
    out.print_line(&format!("good: {} agents ({}){suffix}", agents.len(), agents.join(", ")));
    print_agents(&settings.agents, out);
    require_available_agents(strict, unavailable_count)
}

/// Prints each agent with its kind.
fn print_agents(agents: &[ConfiguredAgent], out: &CliOutput) {
    for agent in agents {
        let level = agent.spec.confinement().map_or("", |it| it.boundary.level.as_str());
        let description = match &agent.worker {
            AgentWorker::Program { .. } => format!("boundary {level}"),
            AgentWorker::Remote(remote) => format!("remote, {}", remote.url),
            AgentWorker::Cognitive { .. } => format!("cognitive, {}", model_text(&agent.spec)),
            AgentWorker::Team => format!("team, {}", members_text(&agent.spec)),
        };
        out.print_line(&format!("  {}: {description}", agent.spec.id));
    }
}

/// Returns the model of a cognitive agent.
fn model_text(spec: &AgentSpec) -> String {
    spec.cognitive().map(|cognitive| cognitive.model.to_string()).unwrap_or_default()
}

/// Returns the members of a team in the order of their steps.
fn members_text(spec: &AgentSpec) -> String {
    let steps = spec.team().map(|plan| plan.steps.as_slice()).unwrap_or_default();
    steps.iter().map(|step| step.agent.as_str()).collect::<Vec<_>>().join(" → ")
}

impl Diagnostic {
    fn from_fault(fault: &ConfigFault, strict: bool) -> Self {
        let nonzero = |number: usize| (number > 0).then_some(number);
        let severity = match fault.severity {
            Severity::Error => "error",
            Severity::AgentUnavailable if strict => "error",
            Severity::Warning | Severity::WarningWhileDisabled | Severity::AgentUnavailable => {
                "warning"
            }
        };
        Self {
            severity,
            code: fault.code,
            file: Some(fault.file.display().to_string()),
            line: nonzero(fault.line),
            column: nonzero(fault.column),
            key: Some(fault.key_path.clone()).filter(|key| !key.is_empty()),
            message: fault.message.clone(),
            hint: fault.hint.clone(),
        }
    }

    /// Creates a warning about this machine, which has no position in the file.
    fn for_machine(code: FaultCode, key: Option<String>, message: String, hint: &str) -> Self {
        let (file, line, column, hint) = (None, None, None, Some(hint.to_owned()));
        Self { severity: "warning", code, file, line, column, key, message, hint }
    }
}

/// Returns an agent with the boundary between it and the service, if it runs on this machine.
fn agent_with_boundary(agent: &ConfiguredAgent) -> Option<(&ConfiguredAgent, &Boundary)> {
    Some((agent, &agent.spec.confinement()?.boundary))
}

/// Returns the backend programs that agents use, each once.
fn backends(settings: &Settings) -> BTreeMap<BackendRole, &BackendProgram> {
    settings.agents.iter().flat_map(ConfiguredAgent::backends).collect()
}

fn print_gaps((kind, name): (&str, &str), boundary: &Boundary, out: &CliOutput) {
    if let Some(gaps) = boundary.describe_gaps(&format!("the {kind}")) {
        let level = boundary.level.as_str();
        out.print_note(&format!("warning: {kind} {name}: boundary {level}: {gaps}"));
    }
}

/// Returns the warnings about this machine: ways of agents and backend programs to the service, files that `serve` does
/// not trust, and reasons why changes are not applied automatically.
fn machine_warnings(
    settings: &Settings,
    trust_faults: &[String],
    unwatched_reason: Option<&str>,
) -> Vec<Diagnostic> {
    let machine_warning = Diagnostic::for_machine;
    let agents = settings.agents.iter().filter_map(agent_with_boundary);
    let agents = agents.map(|(agent, boundary)| {
        (format!("agents.{}", agent.spec.id), boundary.describe_gaps("the agent"))
    });
    let backends = backends(settings).into_iter().map(|(backend, program)| {
        let subject = format!("the {}", backend.kind_name());
        (backend.section(), program.confinement.boundary.describe_gaps(&subject))
    });
    let open_boundaries = agents.chain(backends).filter_map(|(key, gaps)| {
        let hint = "`algonius doctor` suggests a fix";
        Some(machine_warning(FaultCode::OpenBoundary, Some(key), gaps?, hint))
    });
    let untrusted = trust_faults.iter().map(|fault| {
        machine_warning(
            FaultCode::UntrustedFile,
            None,
            fault.clone(),
            "`serve` refuses to start until it is repaired",
        )
    });
    let unwatched_warning = unwatched_reason
        .filter(|_| settings.server.configuration.reloads_on_change)
        .map(|reason| {
            let key = Some("server.watch".to_owned());
            machine_warning(
                FaultCode::Unwatched,
                key,
                reason.to_owned(),
                "apply changes by `algonius reload`",
            )
        });
    open_boundaries.chain(untrusted).chain(unwatched_warning).collect()
}

/// Fails a strict check of a configuration in which some agents cannot serve.
const fn require_available_agents(strict: bool, unavailable_count: usize) -> Result<(), CliError> {
    if strict && unavailable_count > 0 {
        return Err(CliError::UnavailableAgents { agents: unavailable_count });
    }
    Ok(())
}

/// Decides how this machine isolates each agent.
fn decide_isolation_of_agents(settings: &mut Settings) -> Result<(), CliError> {
    let capabilities = host_capabilities()?;
    let host = HostContext { capabilities: &capabilities, service_files: &settings.service_files };
    settings.agents.iter_mut().for_each(|agent| decide_isolation(agent, &host));
    Ok(())
}

/// Prints the schema of configurations.
pub(crate) fn print_schema(out: &CliOutput) {
    out.print_json(&config::schema());
}

/// Prints the OpenAPI document of the service.
pub(crate) fn print_openapi(out: &CliOutput) {
    out.print_json(&crate::openapi());
}
