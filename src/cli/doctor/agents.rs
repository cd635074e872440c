//! Each agent: whether its program is there, which release it is, how far it is held.

use algonius_actors::decide::resources::{holding, wanting};
use algonius_actors::decide::sandbox::enforcement;
use algonius_actors::model::rungs::{Presence, Rungs};

use super::{Finding, version};
use crate::cli::agents::look;
use crate::config::{Agent, Settings};

/// Looks at all of them. Programs are looked up in this path.
pub(super) async fn look(settings: &Settings, rungs: &Rungs, path: Option<String>) -> Vec<Finding> {
    let mut findings = Vec::new();
    for agent in &settings.agents {
        // More can be said of known programs than of any other.
        let is_known = agent.spec.enabled && agent.program.outfit.version.is_some();
        let version = match is_known {
            true => String::new(),
            false => version::of(&agent.program.command, path.as_deref()).await,
        };
        findings.push(finding(agent, rungs, &version));
        if is_known {
            findings.extend(look::of(agent).await);
        }
    }
    findings
}

/// An agent whose program was found, and how far it is held.
fn finding(agent: &Agent, rungs: &Rungs, version: &str) -> Finding {
    let Agent { spec, program, .. } = agent;
    let (enforcement, isolation) = enforcement(spec.access, &program.sandbox, rungs.means());
    let groups = (rungs.cgroup == Presence::Usable).then_some(rungs.controllers);
    let lack = wanting(&program.resources, groups).filter(|_| spec.enabled);
    let (state, command) =
        (if spec.enabled { "" } else { " (disabled)" }, program.command.display());
    let means = isolation.map_or(String::new(), |isolation| format!(" by {}", isolation.as_str()));
    let limits = match (lack, holding(&program.resources, groups)) {
        (Some(lack), _) => format!("; requires a control group, and from here {lack}"),
        (None, holding) if holding.is_empty() => String::new(),
        (None, holding) => format!("; {holding}"),
    };
    let word = enforcement.as_str();
    let text = format!("runs {command}{version}{state}; sandbox {word}{means}{limits}");
    let about = format!("agent {}", spec.id);
    let hold = "install bubblewrap or a newer kernel; `sandbox.required = false` runs it unheld";
    match (spec.enabled && enforcement.is_wanting(), program.sandbox.required) {
        (true, true) => Finding::bad(&about, text, hold),
        (true, false) => Finding::warning(&about, text, hold),
        // The service may stand in another group than who asks here.
        (false, _) if lack.is_some() => Finding::warning(
            &about,
            text,
            "delegate a control group to the service (docs/service.md)",
        ),
        (false, _) => Finding::good(about, text),
    }
}
