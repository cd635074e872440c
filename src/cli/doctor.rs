//! `algonius doctor`: diagnoses problems and suggests fixes.

pub(super) mod agent_environment;
pub(super) mod agent_program;
mod agents;
mod backend_program;
pub(super) mod finding;
mod listen_address;
mod machine;
mod model_provider;
mod network;
mod resource_limits;
mod service_files;
pub(super) mod version;

use std::ffi::OsString;
use std::path::Path;

use algonius_actors::model::host::host_capabilities::HostCapabilities;
use serde_json::json;

use super::client::ServiceClient;
use super::configuration::ConfigLocation;
use super::error::CliError;
use super::output::CliOutput;
use super::service::installed_unit::InstalledUnit;
use crate::config::{self, ConfigFault, LoadedConfig, Severity};
use crate::{InheritedProcessState, host_capabilities};
use agent_environment::AgentEnvironment;
use finding::{Finding, FindingLevel, print_findings};

/// Runs the checks and prints the findings. Needs no service; if one runs on the same configuration, the command
/// requests its variables.
///
/// # Errors
/// Fails if a finding prevents the service from working.
pub(super) async fn run(
    client: Result<ServiceClient, CliError>,
    named_file: Option<&Path>,
    inherited_state: &InheritedProcessState,
    out: &CliOutput,
) -> Result<(), CliError> {
    let capabilities = host_capabilities()?;
    let config_location = ConfigLocation::find(named_file);
    let config_file = config_location.file.as_deref();
    let unit = InstalledUnit::find()
        .filter(|unit| config_file.is_some_and(|file| unit.uses_config_file(file)));
    let mut findings = machine::check(&capabilities, inherited_state);
    findings.push(network::check());
    findings.push(unit.as_ref().map_or_else(not_installed_finding, InstalledUnit::finding));
    findings.push(Finding::good("configuration file", config_location.describe()));
    let load_config = |env: &dyn Fn(&str) -> Option<OsString>| match config_file {
        Some(file) => config::load(file, env),
        None => config::load_built_in(env),
    };
    let environment =
        AgentEnvironment::query_service_or_local(client.as_ref(), config_file, unit, |env| {
            _ = load_config(env);
        })
        .await;
    findings.extend(environment.findings());
    match load_config(&|name| environment.variable(name)) {
        Ok(LoadedConfig { mut settings, warnings }) => {
            findings.extend(warnings.iter().map(fault_finding));
            let environment_file = environment.unit().map(InstalledUnit::environment_file);
            findings.extend(service_files::check(&settings, config_file, environment_file));
            findings.push(listen_address::check(&settings.server).await);
            findings.extend(
                agents::decide_isolation_and_check(&mut settings, config_file, &capabilities).await,
            );
        }
        Err(faults) => {
            let fix = "correct these errors; `algonius check` lists them again";
            findings.push(Finding::bad("configuration", faults.to_string(), fix));
        }
    }
    let failed_checks =
        findings.iter().filter(|finding| finding.weight == FindingLevel::Bad).count();
    print_report(&capabilities, &findings, out);
    if failed_checks == 0 { Ok(()) } else { Err(CliError::ChecksFailed { failed_checks }) }
}

/// Converts a fault that does not prevent the start. An agent that cannot serve is a problem nevertheless.
fn fault_finding(fault: &ConfigFault) -> Finding {
    let fix = fault.hint.clone().unwrap_or_else(|| "see docs/configuration.md".to_owned());
    match fault.severity {
        Severity::AgentUnavailable => Finding::bad("configuration", fault.to_string(), fix),
        Severity::Error | Severity::Warning | Severity::WarningWhileDisabled => {
            Finding::warning("configuration", fault.to_string(), fix)
        }
    }
}

fn not_installed_finding() -> Finding {
    Finding::good("service", "not installed under systemd; agents are looked up in this PATH")
}

impl InstalledUnit {
    /// Returns the configuration and the search path of the installed service.
    pub(super) fn finding(&self) -> Finding {
        let (unit, config) = (self.unit_file.display(), self.config_file.display());
        let path = self.variable("PATH").unwrap_or_default();
        let path = path.display();
        let text = format!("{unit} starts it on {config}, and agents are looked up in {path}");
        Finding::good("service", text)
    }
}

fn print_report(capabilities: &HostCapabilities, findings: &[Finding], out: &CliOutput) {
    if out.is_json() {
        return out.print_json(&json!({"rungs": capabilities, "findings": findings}));
    }
    print_findings(findings, out);
}
