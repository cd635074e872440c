//! `algonius agents add`: checks that an agent of a known program can work, writes it into the configuration,
//! reloads the service and tests the agent.

use std::ffi::OsString;
use std::io::{BufRead, IsTerminal};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::timeout;

use super::config_draft::ConfigDraft;
use super::probe;
use crate::app::confinement::{HostContext, decide_isolation};
use crate::app::program_versions::TemporaryHolder;
use crate::cli::args::AddAgentArgs;
use crate::cli::client::ServiceClient;
use crate::cli::doctor::agent_environment::{AgentEnvironment, SERVICE_TIMEOUT};
use crate::cli::doctor::agent_program;
use crate::cli::doctor::finding::{Finding, FindingLevel, print_findings};
use crate::cli::doctor::version;
use crate::cli::error::CliError;
use crate::cli::error::add_agent::AddAgentError;
use crate::cli::output::CliOutput;
use crate::cli::service::installed_unit::InstalledUnit;
use crate::config::{self, ConfiguredAgent, ServiceFiles, Settings};
use crate::wire::admin::ReloadResult;
use crate::{StartError, host_capabilities};

/// Time limit for a reload. Another program at the address may accept connections and never answer.
const RELOAD_TIMEOUT: Duration = Duration::from_secs(60);

/// Result of the command, for JSON output.
#[derive(Default)]
struct AddReport {
    findings: Vec<Finding>,
    is_applied: bool,
    probe: Option<Value>,
}

/// Checks, writes, reloads and tests.
pub(super) async fn run(
    client: Result<ServiceClient, CliError>,
    args: AddAgentArgs,
    out: &CliOutput,
) -> Result<(), CliError> {
    let id = args.id.clone().unwrap_or_else(|| args.preset.clone());
    let draft = ConfigDraft::new(&args, &id)?;
    let unit = InstalledUnit::find().filter(|unit| unit.uses_config_file(draft.file()));
    let unit_findings: Vec<_> = unit.iter().map(InstalledUnit::finding).collect();
    let trigger_variable_lookups = |env: &dyn Fn(&str) -> Option<OsString>| {
        _ = read_settings(&draft.content_with_table(), &draft, env);
    };
    let environment = AgentEnvironment::query_service_or_local(
        client.as_ref(),
        Some(draft.file()),
        unit,
        trigger_variable_lookups,
    )
    .await;
    let env = |name: &str| environment.variable(name);
    let (agent, files) = read_new_agent(&draft, &env, &id)?;
    let mut report = AddReport { findings: unit_findings, ..AddReport::default() };
    report.findings.extend(environment.findings());
    report.findings.extend(check_agent(agent.clone(), &files).await?);
    if !out.is_json() {
        print_findings(&report.findings, out);
        agent
            .preset_metadata
            .notes
            .iter()
            .for_each(|note| out.print_line(&format!("note     {note}")));
    }
    if report.findings.iter().any(|finding| finding.weight == FindingLevel::Bad) {
        print_json_report(&report, &draft, &id, out);
        return Err(AddAgentError::NotReady.into());
    }
    read_settings(&draft.content_with_table(), &draft, &env)?;
    confirm(&args, &draft, out)?;
    draft.write()?;
    if !out.is_json() {
        let creation_note = if draft.is_new() { ", which is new" } else { "" };
        out.print_line(&format!("written  {}{creation_note}", draft.file().display()));
    }
    // A service that has not answered before may be busy, but nothing suggests that it is one.
    let time_limit = if environment.is_service_silent() { SERVICE_TIMEOUT } else { RELOAD_TIMEOUT };
    let result = reload_and_test((client, time_limit), &draft, &id, (&mut report, out)).await;
    print_json_report(&report, &draft, &id, out);
    result
}

/// Checks the program of an agent in its future sandbox.
async fn check_agent(
    mut agent: ConfiguredAgent,
    files: &ServiceFiles,
) -> Result<Vec<Finding>, StartError> {
    let capabilities = host_capabilities()?;
    decide_isolation(
        &mut agent,
        &HostContext { capabilities: &capabilities, service_files: files },
    );
    let has_version_check =
        agent.program().is_some_and(|program| program.runtime_settings.version_check.is_some());
    let holder = match has_version_check {
        true => Some(TemporaryHolder::start(&capabilities, files).await),
        false => None,
    };
    let start_error = holder.as_ref().and_then(|it| it.as_ref().err());
    let start_finding = start_error.map(version::unknown_versions_finding);
    let holder = holder.and_then(Result::ok);
    let mut findings =
        agent_program::check(&agent, holder.as_ref().map(TemporaryHolder::requester)).await;
    findings.extend(start_finding);
    if let Some(holder) = holder {
        holder.shut_down().await;
    }
    Ok(findings)
}

/// Returns the agent as it will be configured, and the files that no agent may access; a missing program is checked
/// separately.
fn read_new_agent(
    draft: &ConfigDraft,
    env: &dyn Fn(&str) -> Option<OsString>,
    id: &str,
) -> Result<(ConfiguredAgent, ServiceFiles), CliError> {
    let has_id = |agent: &ConfiguredAgent| agent.spec.id.as_str() == id;
    // An agent may be added to a configuration whose only fault is that it is empty.
    if read_settings(draft.present_content(), draft, env)
        .is_ok_and(|settings| settings.agents.iter().any(has_id))
    {
        return Err(AddAgentError::AgentExists { id: id.to_owned() }.into());
    }
    let settings = read_settings(&draft.content_with_agent_disabled(), draft, env)?;
    let agent = settings.agents.into_iter().find(has_id).ok_or(AddAgentError::NotReady)?;
    Ok((agent, settings.service_files))
}

/// Reads a text as if it were in the file, with the variables of this environment.
fn read_settings(
    text: &str,
    draft: &ConfigDraft,
    env: &dyn Fn(&str) -> Option<OsString>,
) -> Result<Settings, CliError> {
    let checked = config::load_text(draft.file(), text, env);
    checked.map(|checked| checked.settings).map_err(CliError::InvalidConfiguration)
}

/// Requests the consent of the person at the terminal, unless `--yes` was given.
fn confirm(args: &AddAgentArgs, draft: &ConfigDraft, out: &CliOutput) -> Result<(), CliError> {
    if args.yes {
        return Ok(());
    }
    out.print_note(&format!("to be added to {}:\n\n{}", draft.file().display(), draft.table()));
    if !std::io::stdin().is_terminal() {
        return Err(AddAgentError::NotConfirmed.into());
    }
    out.print_stderr("Add it? [Y/n] ");
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).map_err(|source| CliError::Input { source })?;
    let is_yes = matches!(answer.trim().to_ascii_lowercase().as_str(), "" | "y" | "yes");
    if is_yes { Ok(()) } else { Err(AddAgentError::NotConfirmed.into()) }
}

/// Reloads the running service and tests the agent. A service that does not run is not an error.
async fn reload_and_test(
    (client, time_limit): (Result<ServiceClient, CliError>, Duration),
    draft: &ConfigDraft,
    id: &str,
    (report, out): (&mut AddReport, &CliOutput),
) -> Result<(), CliError> {
    let Ok(client) = &client else { return print_next_steps(draft, id, out) };
    match reload_and_verify_agent((client, time_limit), draft, id).await {
        Ok(()) => report.is_applied = true,
        Err(CliError::Unreachable { .. }) => return print_next_steps(draft, id, out),
        Err(error) => return Err(error),
    }
    let probe_result = probe::run_probe(client, id, None, out).await?;
    report.probe = Some(probe_result.to_json());
    probe_result.report_or_fail(out)
}

/// Reloads the running service, and checks that it has the agent.
async fn reload_and_verify_agent(
    (client, time_limit): (&ServiceClient, Duration),
    draft: &ConfigDraft,
    id: &str,
) -> Result<(), CliError> {
    let no_reply = || {
        let (file, url) = (draft.file().to_owned(), client.url().to_owned());
        CliError::from(AddAgentError::NoReply { file, url, timeout: time_limit })
    };
    let reload_request = client.post::<ReloadResult>("/api/v1/reload", json!({}));
    match timeout(time_limit, reload_request).await.map_err(|_elapsed| no_reply())? {
        Ok(reloaded) => {
            roll_back_if_program_missing((client, time_limit), &reloaded, draft, id).await?;
        }
        Err(error @ CliError::ConfigurationRejected { .. }) => {
            draft.restore()?;
            let (file, message) = (draft.file().to_owned(), error.to_string());
            return Err(AddAgentError::RejectedByService { file, reason: message }.into());
        }
        Err(error) => return Err(error),
    }
    let path = format!("/api/v1/agents/{id}");
    let agent_response = timeout(time_limit, client.get::<Value>(&path)).await;
    if agent_response.map_err(|_elapsed| no_reply())?.is_err() {
        return Err(AddAgentError::ServiceReadsOtherFile { file: draft.file().to_owned() }.into());
    }
    Ok(())
}

/// Removes the agent again if the service does not find the program that this terminal finds.
async fn roll_back_if_program_missing(
    (client, time_limit): (&ServiceClient, Duration),
    reloaded: &ReloadResult,
    draft: &ConfigDraft,
    id: &str,
) -> Result<(), CliError> {
    let key = format!("agents.{id}.command");
    let Some(warning) = reloaded.warnings.iter().find(|it| it.key.as_ref() == Some(&key)) else {
        return Ok(());
    };
    draft.restore()?;
    let reload_request = client.post::<ReloadResult>("/api/v1/reload", json!({}));
    let is_restored =
        timeout(time_limit, reload_request).await.is_ok_and(|reloaded| reloaded.is_ok());
    let mut reason = warning.to_string();
    if !is_restored {
        reason.push_str("\nthe service still has the agent until it reads the file again");
    }
    Err(AddAgentError::RejectedByService { file: draft.file().to_owned(), reason }.into())
}

fn print_next_steps(draft: &ConfigDraft, id: &str, out: &CliOutput) -> Result<(), CliError> {
    if !out.is_json() {
        out.print_line("next     no service runs here yet:");
        out.print_line(&format!("           algonius serve --config {}", draft.file().display()));
        out.print_line(&format!("           algonius agents test {id}"));
    }
    Ok(())
}

/// Prints the result as JSON.
fn print_json_report(report: &AddReport, draft: &ConfigDraft, id: &str, out: &CliOutput) {
    if out.is_json() {
        out.print_json(&json!({
            "agent": id,
            "file": draft.file().display().to_string(),
            "table": draft.table(),
            "findings": report.findings,
            "applied": report.is_applied,
            "probe": report.probe,
        }));
    }
}
