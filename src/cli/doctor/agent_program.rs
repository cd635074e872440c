//! Check of an agent's program before its first request: its presence, its version, its key and its home directory.

use std::path::Path;
use std::sync::Arc;

use algonius_actors::model::observation::status::ProgramStatus;
use algonius_actors::model::program::ProgramSpec;
use nix::unistd::{AccessFlags, access};

use super::finding::Finding;
use crate::app::program_versions::{VersionRequester, inspect_program};
use crate::config::Agent;

/// Returns the findings, the ones to fix first at the top.
pub(in crate::cli) async fn of(
    agent: &Agent,
    requester: Option<&VersionRequester>,
) -> Vec<Finding> {
    let Some(settings) = agent.program() else { return Vec::new() };
    // A program that was not found keeps its bare name, which must not be resolved in the present directory.
    let command = &settings.command;
    let is_there =
        command.is_absolute() && command.is_file() && access(command, AccessFlags::X_OK).is_ok();
    let mut findings = vec![program(agent, settings, is_there)];
    if let Some(requester) = requester.filter(|_| is_there) {
        findings.extend(version(agent, settings, requester).await);
    }
    findings.extend(key(agent, settings));
    findings.extend(home(agent, settings));
    findings
}

fn about(agent: &Agent, what: &str) -> String {
    format!("agent {}, {what}", agent.spec.id)
}

/// Checks that the program exists; otherwise the finding explains its installation.
fn program(agent: &Agent, settings: &ProgramSpec, is_there: bool) -> Finding {
    let (what, command) = (about(agent, "program"), settings.command.display());
    if is_there {
        return Finding::good(what, command.to_string());
    }
    let steps: String =
        agent.about.install.iter().map(|step| format!("\n           {step}")).collect();
    let how = if steps.is_empty() {
        "name where it is by `command`".to_owned()
    } else {
        format!("install it:{steps}")
    };
    Finding::bad(&what, format!("{command} is not on the PATH"), how)
}

/// Checks the version, if the preset defines how to query it.
async fn version(
    agent: &Agent,
    settings: &Arc<ProgramSpec>,
    requester: &VersionRequester,
) -> Option<Finding> {
    settings.program_runtime.version.as_ref()?;
    let ProgramStatus { version, warning, tested, .. } =
        inspect_program(requester, Arc::clone(&agent.spec), Arc::clone(settings)).await;
    let what = about(agent, "version");
    Some(match (warning, version) {
        (Some(warning), _) => {
            Finding::warning(&what, warning, "install a release that was tested, or try it out")
        }
        (None, version) => {
            let version = version.unwrap_or_default();
            let tested = tested.map_or(String::new(), |tested| format!(" (tested: {tested})"));
            Finding::good(what, format!("{version}{tested}"))
        }
    })
}

/// Checks that one of the agent's keys is set.
fn key(agent: &Agent, settings: &ProgramSpec) -> Option<Finding> {
    let keys = &agent.about.keys;
    if keys.is_empty() {
        return None;
    }
    let what = about(agent, "key");
    let has = |key: &&String| settings.env.contains_key(*key);
    if let Some(key) = keys.iter().find(has) {
        return Some(Finding::good(what, format!("{key} is set")));
    }
    let one = keys.join(" or ");
    let mut text = format!("set {one} in the environment of the service");
    if let Some(login) = &agent.about.login {
        let home = settings.program_runtime.home.display();
        text.push_str(&format!(", or log in:\n           HOME={home} {login}"));
    }
    Some(Finding::warning(&what, "the agent has no key for its model", text))
}

/// Checks that the agent's own home directory can be created or written to.
fn home(agent: &Agent, settings: &ProgramSpec) -> Option<Finding> {
    let path = &settings.program_runtime.own.as_ref()?.path;
    let (what, shown) = (about(agent, "home"), path.display());
    let own = "give the folder to the user of the service";
    if path.is_dir() {
        return Some(match access(path, AccessFlags::W_OK) {
            Ok(()) => Finding::good(what, format!("{shown} can be written into")),
            Err(_) => Finding::bad(&what, format!("{shown} cannot be written into"), own),
        });
    }
    let above = path.ancestors().skip(1).find(|above| above.exists()).unwrap_or(Path::new("/"));
    // Only the nearest existing folder decides: the service creates those below it.
    let is_makeable = above.is_dir() && access(above, AccessFlags::W_OK).is_ok();
    Some(if is_makeable {
        Finding::good(what, format!("{shown} will be made"))
    } else {
        Finding::bad(&what, format!("{shown} cannot be made"), own)
    })
}
