//! Looks at the program of an agent before it is asked anything: is it there, which version, can it be
//! let in by its model, can it write into its home.

use std::path::Path;

use algonius_actors::model::status::ProgramStatus;
use nix::unistd::{AccessFlags, access};

use crate::cli::doctor::Finding;
use crate::config::Agent;
use crate::programs::look;

/// What was found, the graver first to be done first.
pub(in crate::cli) async fn of(agent: &Agent) -> Vec<Finding> {
    // What is not found has its bare name still, which says nothing about a file of this folder.
    let command = &agent.program.command;
    let is_there =
        command.is_absolute() && command.is_file() && access(command, AccessFlags::X_OK).is_ok();
    let mut findings = vec![program(agent, is_there)];
    if is_there {
        findings.extend(version(agent).await);
    }
    findings.extend(key(agent));
    findings.extend(home(agent));
    findings
}

fn about(agent: &Agent, what: &str) -> String {
    format!("agent {}, {what}", agent.spec.id)
}

/// Whether the program is there, and how it comes there.
fn program(agent: &Agent, is_there: bool) -> Finding {
    let (what, command) = (about(agent, "program"), agent.program.command.display());
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

/// Which version it is, where it is asked for one.
async fn version(agent: &Agent) -> Option<Finding> {
    agent.program.outfit.version.as_ref()?;
    let ProgramStatus { version, warning, tested, .. } = look(&agent.program).await;
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

/// Whether one of the keys is there that let it in.
fn key(agent: &Agent) -> Option<Finding> {
    let keys = &agent.about.keys;
    if keys.is_empty() {
        return None;
    }
    let what = about(agent, "key");
    let has = |key: &&String| agent.program.env.contains_key(*key);
    if let Some(key) = keys.iter().find(has) {
        return Some(Finding::good(what, format!("{key} is set")));
    }
    let one = keys.join(" or ");
    let mut text = format!("set {one} in the environment of the service");
    if let Some(login) = &agent.about.login {
        let home = agent.program.outfit.home.display();
        text.push_str(&format!(", or log in:\n           HOME={home} {login}"));
    }
    Some(Finding::warning(&what, "it has no key that lets it in", text))
}

/// Whether a home of its own can be made, or written into.
fn home(agent: &Agent) -> Option<Finding> {
    let path = &agent.program.outfit.own.as_ref()?.path;
    let (what, shown) = (about(agent, "home"), path.display());
    let own = "give the folder to the user of the service";
    if path.is_dir() {
        return Some(match access(path, AccessFlags::W_OK) {
            Ok(()) => Finding::good(what, format!("{shown} can be written into")),
            Err(_) => Finding::bad(&what, format!("{shown} cannot be written into"), own),
        });
    }
    let above = path.ancestors().skip(1).find(|above| above.exists()).unwrap_or(Path::new("/"));
    let is_makeable = above.is_dir() && access(above, AccessFlags::W_OK).is_ok();
    Some(if is_makeable {
        Finding::good(what, format!("{shown} will be made"))
    } else {
        Finding::bad(&what, format!("{shown} cannot be made"), own)
    })
}
