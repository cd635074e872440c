//! `algonius agents presets`: lists the known programs, and those that are installed.

use std::path::{Path, PathBuf};

use futures_util::stream::{self, StreamExt};
use serde_json::json;

use crate::app::confinement::{HostContext, decide_isolation};
use crate::app::program_versions::{TemporaryHolder, VersionRequester, inspect_program};
use crate::cli::configuration::{ConfigLocation, load};
use crate::cli::doctor::version::{self, PRESET_VERSION_TIMEOUT};
use crate::cli::error::CliError;
use crate::cli::output::CliOutput;
use crate::config::presets::{PresetSummary, available_presets};
use crate::config::{self, ConfigFault, ConfiguredAgent, Severity};
use crate::host_capabilities;

/// Preset with its program on this machine.
struct PresetRow {
    summary: PresetSummary,
    program: Option<PathBuf>,
    version: Option<String>,
    warning: Option<String>,
}

/// Prints the presets. Needs no service.
pub(super) async fn run(config_path: Option<&Path>, out: &CliOutput) -> Result<(), CliError> {
    let config_location = ConfigLocation::find(config_path);
    let config_file = config_location.file.as_deref();
    // The shipped configuration has the default files.
    let settings = load(config_file)?.settings;
    let (presets_folder, service_files) =
        (config_file.map(|_| settings.server.configuration.presets_dir), settings.service_files);
    let capabilities = host_capabilities()?;
    let host = HostContext { capabilities: &capabilities, service_files: &service_files };
    let summaries = available_presets(presets_folder.as_deref());
    let summaries = summaries.map_err(|source| CliError::File {
        problem: "cannot read the folder of presets,",
        file: presets_folder.clone().unwrap_or_default(),
        source,
    })?;
    let holder = TemporaryHolder::start(&capabilities, &service_files).await;
    if let Err(error) = &holder {
        out.print_note(&format!("the versions of programs are unknown: {error}"));
    }
    let holder = holder.ok();
    let requester = holder.as_ref().map(TemporaryHolder::requester);
    let summaries = summaries.into_iter();
    let rows = summaries
        .map(|summary| inspect_preset(summary, presets_folder.as_deref(), (requester, &host)));
    let rows: Vec<_> =
        stream::iter(rows).buffered(version::max_concurrent_programs()).collect().await;
    if let Some(holder) = holder {
        holder.shut_down().await;
    }
    if out.is_json() {
        let presets: Vec<_> = rows.iter().map(to_json).collect();
        out.print_json(&json!({ "presets": presets }));
        return Ok(());
    }
    out.print_table(
        ["PRESET", "AGENT", "PROGRAM", "VERSION", ""],
        rows.iter().map(preset_columns).collect(),
        "",
    );
    Ok(())
}

async fn inspect_preset(
    summary: PresetSummary,
    presets_folder: Option<&Path>,
    (requester, host): (Option<&VersionRequester>, &HostContext<'_>),
) -> PresetRow {
    let (agent, fault) = match agent_from_preset(&summary, presets_folder) {
        Ok(agent) => (agent, None),
        Err(reason) => (None, Some(reason)),
    };
    let program =
        agent.as_ref().and_then(ConfiguredAgent::program).map(|program| program.command.clone());
    let program = program.filter(|program| program.is_file());
    let status = match agent.filter(|_| program.is_some()).zip(requester) {
        Some((mut agent, requester)) => {
            decide_isolation(&mut agent, host);
            match agent.program().cloned() {
                Some(program) => {
                    inspect_program(requester, (agent.spec, program), PRESET_VERSION_TIMEOUT).await
                }
                None => <_>::default(),
            }
        }
        None => <_>::default(),
    };
    PresetRow { summary, program, version: status.version, warning: fault.or(status.warning) }
}

/// Returns an agent of a preset with default settings; none if the preset alone does not make an agent. Fails with the
/// first fault of the preset's file.
fn agent_from_preset(
    preset: &PresetSummary,
    presets_folder: Option<&Path>,
) -> Result<Option<ConfiguredAgent>, String> {
    if let Some(error) = &preset.read_error {
        return Err(format!("cannot be read: {error}"));
    }
    let text = format!("[agents.x]\nenabled = false\npreset = {}\n", json!(preset.name));
    let env = |name: &str| std::env::var_os(name);
    let loaded = match presets_folder {
        // The text stands in the folder itself, whose name need not be UTF-8.
        Some(folder) => {
            let text = format!("[server]\npresets = '.'\n{text}");
            config::load_text(&folder.join(".agent"), &text, &env)
        }
        None => config::load_built_in_text(&text, &env),
    };
    let faults = match loaded {
        Ok(loaded) => return Ok(loaded.settings.agents.into_iter().next()),
        Err(faults) => faults,
    };
    let is_in_preset = |fault: &&ConfigFault| {
        fault.severity == Severity::Error && preset.file.as_ref() == Some(&fault.file)
    };
    match faults.iter().find(is_in_preset) {
        Some(fault) => Err(format!("line {}: {}", fault.line, fault.message)),
        None => Ok(None), // The preset leaves a key to the configuration, such as the command.
    }
}

fn to_json(row: &PresetRow) -> serde_json::Value {
    // A path that is not UTF-8 has no JSON form.
    let path_text = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string());
    json!({
        "preset": row.summary.name,
        "title": row.summary.metadata.title,
        "verified": row.summary.metadata.is_verified,
        "command": row.summary.command,
        "program": path_text(&row.program),
        "version": row.version,
        "warning": row.warning,
        "file": path_text(&row.summary.file),
    })
}

fn preset_columns(row: &PresetRow) -> [String; 5] {
    let program = match (&row.program, &row.summary.command) {
        (Some(program), _) => program.display().to_string(),
        (None, Some(command)) => format!("no `{command}` on the PATH"),
        (None, None) => "-".to_owned(),
    };
    let mut remarks: Vec<String> = row.warning.iter().cloned().collect();
    if !row.summary.metadata.is_verified && row.summary.read_error.is_none() {
        remarks.push("written from documents, never run".to_owned());
    }
    if row.summary.file.is_some() {
        remarks.push("your own".to_owned());
    }
    [
        row.summary.name.clone(),
        row.summary.metadata.title.clone(),
        program,
        row.version.clone().unwrap_or_else(|| "-".to_owned()),
        remarks.join("; "),
    ]
}
