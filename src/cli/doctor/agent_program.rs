//! Check of an agent's program before its first request: its presence, its version, its key and its home directory.

use std::path::Path;
use std::sync::Arc;

use algonius_actors::model::observation::status::ProgramStatus;
use algonius_actors::model::program::ProgramSpec;
use nix::unistd::{AccessFlags, access};

use super::finding::Finding;
use super::version::PRESET_VERSION_TIMEOUT;
use crate::app::program_versions::{VersionRequester, inspect_program};
use crate::config::ConfiguredAgent;

/// Returns the findings, the ones to fix first at the top.
pub(in crate::cli) async fn check(
    agent: &ConfiguredAgent,
    requester: Option<&VersionRequester>,
) -> Vec<Finding> {
    let Some(program) = agent.program() else { return Vec::new() };
    // A program that was not found keeps its bare name, which must not be resolved in the present directory.
    let command = &program.command;
    let is_executable =
        command.is_absolute() && command.is_file() && access(command, AccessFlags::X_OK).is_ok();
    let mut findings = vec![program_finding(agent, program, is_executable)];
    if let Some(requester) = requester.filter(|_| is_executable) {
        findings.extend(version_finding(agent, program, requester).await);
    }
    findings.extend(credential_finding(agent, program));
    findings.extend(home_finding(agent, program));
    findings
}

fn finding_subject(agent: &ConfiguredAgent, aspect: &str) -> String {
    format!("agent {}, {aspect}", agent.spec.id)
}

/// Checks that the program exists; otherwise the finding explains its installation.
fn program_finding(agent: &ConfiguredAgent, program: &ProgramSpec, is_executable: bool) -> Finding {
    let (subject, command) = (finding_subject(agent, "program"), program.command.display());
    if is_executable {
        return Finding::good(subject, command.to_string());
    }
    let steps: String = agent
        .preset_metadata
        .install_instructions
        .iter()
        .map(|step| format!("\n           {step}"))
        .collect();
    let fix = if steps.is_empty() {
        "name where it is by `command`".to_owned()
    } else {
        format!("install it:{steps}")
    };
    Finding::bad(&subject, format!("{command} is not on the PATH"), fix)
}

/// Checks the version, if the preset defines how to query it.
async fn version_finding(
    agent: &ConfiguredAgent,
    program: &Arc<ProgramSpec>,
    requester: &VersionRequester,
) -> Option<Finding> {
    program.runtime_settings.version_check.as_ref()?;
    let agent_and_program = (Arc::clone(&agent.spec), Arc::clone(program));
    let ProgramStatus { version, warning, tested, .. } =
        inspect_program(requester, agent_and_program, PRESET_VERSION_TIMEOUT).await;
    let subject = finding_subject(agent, "version");
    Some(match (warning, version) {
        (Some(warning), _) => {
            Finding::warning(&subject, warning, "install a release that was tested, or try it out")
        }
        (None, version) => {
            let version = version.unwrap_or_default();
            let tested = tested.map_or(String::new(), |tested| format!(" (tested: {tested})"));
            Finding::good(subject, format!("{version}{tested}"))
        }
    })
}

/// Checks that one of the agent's keys is set.
fn credential_finding(agent: &ConfiguredAgent, program: &ProgramSpec) -> Option<Finding> {
    let keys = &agent.preset_metadata.credential_variables;
    if keys.is_empty() {
        return None;
    }
    let subject = finding_subject(agent, "key");
    let is_set =
        |key: &&String| program.env.get(*key).is_some_and(|variable| !variable.value.is_empty());
    if let Some(key) = keys.iter().find(is_set) {
        return Some(Finding::good(subject, format!("{key} is set")));
    }
    let names = keys.join(" or ");
    let mut fix = format!("set {names} in the environment of the service");
    if let Some(login) = &agent.preset_metadata.login_command {
        let home = program.runtime_settings.home.display();
        fix.push_str(&format!(", or log in:\n           HOME={home} {login}"));
    }
    Some(Finding::warning(&subject, "the agent has no key for its model", fix))
}

/// Checks that the agent's own home directory can be created or written to.
fn home_finding(agent: &ConfiguredAgent, program: &ProgramSpec) -> Option<Finding> {
    let path = &program.runtime_settings.agent_home.as_ref()?.path;
    let (subject, path_text) = (finding_subject(agent, "home"), path.display());
    let fix = "give the folder to the user of the service";
    if path.is_dir() {
        return Some(match access(path, AccessFlags::W_OK) {
            Ok(()) => Finding::good(subject, format!("{path_text} can be written into")),
            Err(_) => Finding::bad(&subject, format!("{path_text} cannot be written into"), fix),
        });
    }
    let ancestor =
        path.ancestors().skip(1).find(|ancestor| ancestor.exists()).unwrap_or(Path::new("/"));
    // Only the nearest existing folder decides: the service creates those below it.
    let can_be_created = ancestor.is_dir() && access(ancestor, AccessFlags::W_OK).is_ok();
    Some(if can_be_created {
        Finding::good(subject, format!("{path_text} will be made"))
    } else {
        Finding::bad(&subject, format!("{path_text} cannot be made"), fix)
    })
}
