//! Checks of each agent: its program, its version and its isolation.

use std::path::Path;
use std::sync::Arc;

use algonius_actors::model::agent::remote::RemoteSpec;
use algonius_actors::model::agent::team::TeamPlan;
use algonius_actors::model::host::boundary::{BoundaryGap, BoundaryLevel};
use algonius_actors::model::host::host_capabilities::HostCapabilities;
use algonius_actors::model::host::sandbox::{
    Confinement, Isolation, IsolationRequirement, Sandbox,
};
use algonius_actors::model::program::ProgramSpec;

use futures_util::stream::{self, StreamExt};

use super::finding::Finding;
use super::resource_limits::{CGROUP_FIX, LimitReport};
use super::{agent_program, backend_program, model_provider, version};
use crate::app::confinement::{
    HostContext, decide_isolation, has_isolation_shortfall, secret_files_visible_if_replaced,
};
use crate::app::file_trust;
use crate::app::program_versions::TemporaryHolder;
use crate::config::{AgentWorker, ConfiguredAgent, Settings};

/// Checks all agents; `config_file` is the configuration file, if there is one.
pub(super) async fn decide_isolation_and_check(
    settings: &mut Settings,
    config_file: Option<&Path>,
    capabilities: &HostCapabilities,
) -> Vec<Finding> {
    let host = HostContext { capabilities, service_files: &settings.service_files };
    settings.agents.iter_mut().for_each(|agent| decide_isolation(agent, &host));
    let mut findings: Vec<_> =
        automatic_reload_finding(settings, config_file).into_iter().collect();
    findings.extend(secret_files_finding(settings));
    // The checks of programs with a preset are more detailed.
    let has_version_query =
        |program: &Arc<ProgramSpec>| program.runtime_settings.version_check.is_some();
    let has_detailed_checks = |agent: &ConfiguredAgent| {
        agent.spec.enabled && agent.program().is_some_and(has_version_query)
    };
    let needs_version_request = |agent: &ConfiguredAgent| {
        has_detailed_checks(agent) || version::has_known_version_flag(agent)
    };
    let holder = match settings.agents.iter().any(needs_version_request) {
        true => Some(TemporaryHolder::start(capabilities, &settings.service_files).await),
        false => None,
    };
    let start_error = holder.as_ref().and_then(|it| it.as_ref().err());
    findings.extend(start_error.map(version::unknown_versions_finding));
    let holder = holder.and_then(Result::ok);
    let requester = holder.as_ref().map(TemporaryHolder::requester);
    // Several at the same time, because a program that hangs costs its whole time limit, and no more than there are
    // processors, because a program needs much of one.
    let program_checks =
        settings.agents.iter().map(async |agent| match has_detailed_checks(agent) {
            true => (String::new(), agent_program::check(agent, requester).await),
            false => match requester {
                Some(requester) => (version::version_text(agent, requester).await, Vec::new()),
                None => (String::new(), Vec::new()),
            },
        });
    let program_checks: Vec<_> =
        stream::iter(program_checks).buffered(version::max_concurrent_programs()).collect().await;
    for (agent, (version, program_findings)) in settings.agents.iter().zip(program_checks) {
        let program = agent.program().zip(agent.spec.program_worker());
        let program = program.filter(|(_, worker_spec)| worker_spec.missing_program.is_none());
        findings.extend(program.map(|(program, worker_spec)| {
            let confinement = &worker_spec.confinement;
            isolation_finding(agent, (program, confinement), (capabilities, &version))
        }));
        if let AgentWorker::Remote(remote) = &agent.worker {
            findings.push(remote_finding(agent, remote));
        }
        if let (AgentWorker::Cognitive { provider, .. }, Some(spec)) =
            (&agent.worker, agent.spec.cognitive())
        {
            findings.push(model_provider::finding(agent, spec, provider).await);
        }
        findings.extend(
            agent.backends().map(|backend| backend_program::finding(agent, backend, capabilities)),
        );
        if let Some(plan) = agent.spec.team() {
            findings.push(team_finding(agent, plan, settings));
        }
        findings.extend(program_findings);
    }
    if let Some(holder) = holder {
        holder.shut_down().await;
    }
    findings
}

/// Checks that changed configuration files are applied automatically.
fn automatic_reload_finding(settings: &Settings, config_file: Option<&Path>) -> Option<Finding> {
    let config_file = config_file.filter(|_| settings.server.configuration.reloads_on_change)?;
    let Some(reason) = file_trust::automatic_reload_obstacle(settings, Some(config_file)) else {
        return Some(Finding::good("server.watch", "changed files are applied automatically"));
    };
    let text = format!("changed files are applied only by `algonius reload`: {reason}");
    let fix = "close that way, or set `server.watch = false` to hide this line";
    Some(Finding::warning("server.watch", text, fix))
}

/// Checks that no agent in bubblewrap sees a secret file that is replaced while it runs.
fn secret_files_finding(settings: &Settings) -> Option<Finding> {
    let visible_files = secret_files_visible_if_replaced(settings);
    if visible_files.is_empty() {
        return None;
    }
    let files: Vec<_> = visible_files.iter().map(|file| file.display().to_string()).collect();
    let text = format!(
        "if one of these files is replaced, agents that run in bubblewrap at that moment can read the new one: {}",
        files.join(", ")
    );
    let fix =
        "move each into a folder with nothing but files of the service, outside of working folders";
    Some(Finding::warning("secret files", text, fix))
}

/// Returns the finding about an agent whose program was found, with its isolation.
fn isolation_finding(
    agent: &ConfiguredAgent,
    (program, confinement): (&ProgramSpec, &Confinement),
    (capabilities, version): (&HostCapabilities, &str),
) -> Finding {
    let spec = &agent.spec;
    let limits = LimitReport::new(&program.resource_limits, capabilities, spec.enabled);
    let (disabled_note, command) =
        (if spec.enabled { "" } else { " (disabled)" }, program.command.display());
    let clause = |isolation: Isolation| format!(" by {}", isolation.as_str());
    let isolation_clause = confinement.isolation.map(clause).unwrap_or_default();
    let (enforcement, boundary) = (confinement.enforcement, &confinement.boundary);
    let level = enforcement.as_str();
    let text = format!(
        "runs {command}{version}{disabled_note}; sandbox {level}{isolation_clause}; boundary {boundary}{}",
        limits.clause
    );
    let subject = format!("agent {}", spec.id);
    let is_insufficient = enforcement.is_incomplete() || !boundary.gaps.is_empty();
    match is_insufficient && spec.enabled {
        true if has_isolation_shortfall(
            (spec.access, confinement),
            &program.sandbox,
            &capabilities.sockets,
        ) =>
        {
            Finding::bad(&subject, text, suggested_fix(confinement, &program.sandbox))
        }
        true => Finding::warning(&subject, text, suggested_fix(confinement, &program.sandbox)),
        false if limits.lacks_cgroup => Finding::warning(&subject, text, CGROUP_FIX),
        false => Finding::good(subject, text),
    }
}

/// Returns the finding about a remote agent. The remote service is not called.
fn remote_finding(agent: &ConfiguredAgent, remote: &RemoteSpec) -> Finding {
    let disabled_note = if agent.spec.enabled { "" } else { " (disabled)" };
    let RemoteSpec { url, version, binding, .. } = remote;
    let text =
        format!("calls {url} by A2A {} over {}{disabled_note}", version.as_str(), binding.as_str());
    Finding::good(format!("agent {}", agent.spec.id), text)
}

/// Returns the finding about a team: a run fails at a member that accepts no requests.
fn team_finding(agent: &ConfiguredAgent, plan: &TeamPlan, settings: &Settings) -> Finding {
    let subject = format!("agent {}", agent.spec.id);
    let is_member =
        |member: &&ConfiguredAgent| plan.steps.iter().any(|step| step.agent == member.spec.id);
    let is_unavailable = |member: &&ConfiguredAgent| {
        !member.spec.enabled || member.spec.unavailable_reason().is_some()
    };
    let mut unavailable_members = settings.agents.iter().filter(is_member).filter(is_unavailable);
    if let Some(member) = unavailable_members.next().filter(|_| agent.spec.enabled) {
        let id = &member.spec.id;
        let text = format!("its member `{id}` accepts no requests, so that each run fails");
        return Finding::warning(&subject, text, "enable the member, or install its program");
    }
    let disabled_note = if agent.spec.enabled { "" } else { " (disabled)" };
    let members: Vec<_> = plan.steps.iter().map(|step| step.agent.as_str()).collect();
    Finding::good(subject, format!("passes requests to {}{disabled_note}", members.join(", ")))
}

/// Returns the fix for the widest isolation gap of an agent.
fn suggested_fix(confinement: &Confinement, sandbox: &Sandbox) -> String {
    let has_gap = |gap| confinement.boundary.gaps.contains(&gap);
    let is_sandbox_off = !sandbox.is_enforced;
    let fix = if is_sandbox_off {
        "leave out `sandbox.enforce = false`"
    } else if has_gap(BoundaryGap::OtherAgents) {
        "install bubblewrap, or give each agent a user of its own (`user`)"
    } else if has_gap(BoundaryGap::ServiceFiles)
        && confinement.boundary.level == BoundaryLevel::OwnUser
    {
        "install bubblewrap, or `chmod 600` the secret files that the user of the agent can read"
    } else if has_gap(BoundaryGap::ServiceFiles) || confinement.enforcement.is_incomplete() {
        "install bubblewrap, give the agent a user of its own (`user`), or confine it to its folder \
         (`sandbox.writable = []`)"
    } else if has_gap(BoundaryGap::Configuration) {
        "move the configuration out of the folders in which the agent works"
    } else if has_gap(BoundaryGap::UserFiles) {
        "confine the agent to its folder (`sandbox.writable = []`), or give it a user of its own (`user`)"
    } else {
        "install bubblewrap or a newer kernel"
    };
    let is_required = sandbox.isolation_requirement != IsolationRequirement::Nothing;
    let hint = if is_required { "; `sandbox.required = false` starts it nevertheless" } else { "" };
    format!("{fix}{hint}")
}
