//! `algonius doctor`: what this machine lacks for the service to work as promised.

use std::fs;
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

use algonius_actors::decide::resources::{holding, wanting};
use algonius_actors::decide::sandbox::enforcement;
use algonius_actors::model::resources::Controllers;
use algonius_actors::model::rungs::{Presence, Rungs};
use nix::unistd::geteuid;
use serde::Serialize;
use serde_json::json;

use super::fault::CliError;
use super::out::Out;
use super::{agents, check};
use crate::config::{Agent, Settings};
use crate::rungs;

/// How much a finding weighs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Weight {
    Good,
    Warning,
    Bad,
}

/// Something that was looked at.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    pub(super) about: String,
    pub(super) weight: Weight,
    pub(super) text: String,
}

pub(super) fn found(about: impl Into<String>, weight: Weight, text: impl Into<String>) -> Finding {
    Finding { about: about.into(), weight, text: text.into() }
}

/// The oldest kernel on which programs can be started.
const OLDEST: (u32, u32) = (5, 9);
/// Fewer descriptors end soon: a running execution takes five.
const FEWEST_FILES: u64 = 1024;

/// Looks and prints. Needs no service.
///
/// # Errors
/// When something keeps the service from working.
pub(super) async fn run(file: Option<&Path>, out: &Out) -> Result<(), CliError> {
    let rungs = rungs();
    let mut findings = of_machine(&rungs);
    match check::load(file) {
        Ok(checked) => {
            let faults = checked.warnings.iter().map(ToString::to_string);
            findings.extend(faults.map(|fault| found("configuration", Weight::Warning, fault)));
            findings.extend(of_settings(&checked.settings, &rungs));
            for agent in known(&checked.settings) {
                findings.extend(agents::look::of(agent).await);
            }
        }
        Err(error) => findings.push(found("configuration", Weight::Bad, error.to_string())),
    }
    let bad = findings.iter().filter(|finding| finding.weight == Weight::Bad).count();
    print(&rungs, &findings, out);
    if bad == 0 { Ok(()) } else { Err(CliError::Unsound { bad }) }
}

fn print(rungs: &Rungs, findings: &[Finding], out: &Out) {
    if out.is_json() {
        return out.shape(&json!({"rungs": rungs, "findings": findings}));
    }
    print_findings(findings, out);
}

/// A line for each.
pub(super) fn print_findings(findings: &[Finding], out: &Out) {
    for Finding { about, weight, text } in findings {
        let mark = match weight {
            Weight::Good => "good   ",
            Weight::Warning => "warning",
            Weight::Bad => "BAD    ",
        };
        out.line(&format!("{mark}  {about}: {text}"));
    }
}

fn of_machine(rungs: &Rungs) -> Vec<Finding> {
    let (now, most) = rungs.open_files;
    let landlock = match rungs.landlock {
        None if rungs.means().bubblewrap => {
            (Weight::Good, "absent: bubblewrap holds read-only agents".to_owned())
        }
        None => (Weight::Warning, "absent: nothing holds read-only agents".to_owned()),
        Some(version @ ..3) => {
            (Weight::Warning, format!("version {version}: cannot refuse the emptying of files"))
        }
        Some(version) => (Weight::Good, format!("version {version}")),
    };
    let labels = match rungs.labels {
        true => (Weight::Good, "processes can be labelled"),
        false => (Weight::Bad, "the hard limit of file locks (ulimit -x) must be open"),
    };
    let user = match rungs.root {
        true => (Weight::Warning, "root, and so are the agents: make a user for the service"),
        false => (Weight::Good, "not root"),
    };
    let kernel = weigh(is_new_enough(&rungs.kernel), Weight::Bad);
    let files = weigh(most >= FEWEST_FILES, Weight::Warning);
    vec![
        found("kernel", kernel, format!("{} (5.9 or later is needed)", rungs.kernel)),
        found("labels", labels.0, labels.1),
        found("landlock", landlock.0, landlock.1),
        found("bubblewrap", Weight::Good, wrapping(rungs.bubblewrap)),
        found("cgroup", Weight::Good, groups(rungs)),
        found("user", user.0, user.1),
        found("open files", files, format!("{now}, up to {most}")),
    ]
}

/// Nobody needs it but for an agent that asks for it, whose own finding says so.
fn wrapping(presence: Presence) -> String {
    let what = match presence {
        Presence::Usable => "wraps agents that ask for it, or that Landlock cannot hold",
        Presence::Unusable => "it is there, but may not make namespaces here",
        Presence::Absent => "agents can be neither wrapped nor have hidden or protected paths",
    };
    format!("{}: {what}", presence.as_str())
}

/// What groups of this very process would do; those of the service may be made elsewhere.
fn groups(rungs: &Rungs) -> String {
    let Controllers { memory, pids } = rungs.controllers;
    let limits = match (memory, pids) {
        (true, true) => "with limits of memory and of processes",
        (true, false) => "with limits of memory",
        (false, true) => "with limits of processes",
        (false, false) => "without limits, which the service watches itself",
    };
    match rungs.cgroup {
        Presence::Usable => format!("usable from here, {limits}"),
        word => format!("{} from here: the service watches limits itself", word.as_str()),
    }
}

const fn weigh(is_good: bool, otherwise: Weight) -> Weight {
    if is_good { Weight::Good } else { otherwise }
}

fn is_new_enough(release: &str) -> bool {
    let mut numbers = release.split(|char: char| !char.is_ascii_digit()).map(str::parse);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) >= OLDEST,
        _ => false,
    }
}

/// The agents of known programs, of which more can be said than of any other.
fn known(settings: &Settings) -> impl Iterator<Item = &Agent> {
    settings.agents.iter().filter(|it| it.spec.enabled && it.program.outfit.version.is_some())
}

fn of_settings(settings: &Settings, rungs: &Rungs) -> Vec<Finding> {
    let server = &settings.server;
    let folders = [("data_dir", &server.data_dir), ("runtime_dir", &server.runtime_dir)];
    let folders = folders.into_iter().map(|(name, folder)| of_folder(name, folder));
    folders.chain(settings.agents.iter().map(|agent| of_agent(agent, rungs))).collect()
}

/// A folder of ours, which nobody else may look into.
fn of_folder(name: &str, folder: &Path) -> Finding {
    let shown = folder.display();
    match fs::metadata(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            found(name, Weight::Good, format!("{shown} will be made"))
        }
        Err(error) => found(name, Weight::Bad, format!("{shown} cannot be looked at: {error}")),
        Ok(facts) if !facts.is_dir() => found(name, Weight::Bad, format!("{shown} is no folder")),
        Ok(facts) if facts.uid() != geteuid().as_raw() => {
            found(name, Weight::Bad, format!("{shown} is another user's"))
        }
        Ok(facts) if facts.permissions().mode() & 0o077 != 0 => {
            found(name, Weight::Warning, format!("{shown} is open to others (chmod 700)"))
        }
        Ok(_) => found(name, Weight::Good, format!("{shown} is ours alone")),
    }
}

/// An agent whose program was found, and how far it is held.
fn of_agent(Agent { spec, program, .. }: &Agent, rungs: &Rungs) -> Finding {
    let (enforcement, isolation) = enforcement(spec.access, &program.sandbox, rungs.means());
    let groups = (rungs.cgroup == Presence::Usable).then_some(rungs.controllers);
    let lack = wanting(&program.resources, groups).filter(|_| spec.enabled);
    let weight = match (spec.enabled && enforcement.is_wanting(), program.sandbox.required) {
        (true, true) => Weight::Bad,
        (true, false) => Weight::Warning,
        // The service may stand in another group than who asks here.
        (false, _) if lack.is_some() => Weight::Warning,
        (false, _) => Weight::Good,
    };
    let (state, command) =
        (if spec.enabled { "" } else { " (disabled)" }, program.command.display());
    let means = isolation.map_or(String::new(), |isolation| format!(" by {}", isolation.as_str()));
    let limits = match (lack, holding(&program.resources, groups)) {
        (Some(lack), _) => format!("; requires a control group, and from here {lack}"),
        (None, holding) if holding.is_empty() => String::new(),
        (None, holding) => format!("; {holding}"),
    };
    let text = format!("runs {command}{state}; sandbox {}{means}{limits}", enforcement.as_str());
    found(format!("agent {}", spec.id), weight, text)
}

#[cfg(test)]
mod tests {
    use super::is_new_enough;

    #[test]
    fn a_kernel_is_new_enough_by_its_first_two_numbers() {
        for (release, expected) in [
            ("5.9.0", true),
            ("5.10.0-28-amd64", true),
            ("6.1", true),
            ("5.8.18", false),
            ("4.19", false),
            ("", false),
        ] {
            assert_eq!(is_new_enough(release), expected, "{release}");
        }
    }
}
