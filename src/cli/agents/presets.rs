//! `algonius agents presets`: lists the known programs, and those that are installed.

use std::path::{Path, PathBuf};

use futures_util::future::join_all;
use serde_json::json;

use crate::app::confinement::{HostContext, decide_isolation};
use crate::app::program_versions::{TemporaryHolder, VersionRequester, inspect_program};
use crate::cli::configuration::{ConfigLocation, load};
use crate::cli::error::CliError;
use crate::cli::output::CliOutput;
use crate::config::presets::{PresetSummary, available_presets};
use crate::config::{self, ConfiguredAgent};
use crate::host_capabilities;

/// Preset with its program on this machine.
struct PresetRow {
    summary: PresetSummary,
    program: Option<PathBuf>,
    version: Option<String>,
    warning: Option<String>,
}

/// Prints the presets. Needs no service.
pub(super) async fn run(config: Option<&Path>, out: &CliOutput) -> Result<(), CliError> {
    let configuration = ConfigLocation::find(config);
    let config = configuration.file.as_deref();
    // The shipped configuration has the default files.
    let settings = load(config)?.settings;
    let (folder, files) =
        (config.map(|_| settings.server.configuration.presets_dir), settings.service_files);
    let capabilities = host_capabilities()?;
    let host = HostContext { capabilities: &capabilities, files: &files };
    let holder = TemporaryHolder::start(&capabilities, &files).await.ok();
    let requester = holder.as_ref().map(TemporaryHolder::requester);
    let summaries = available_presets(folder.as_deref()).into_iter();
    let rows = join_all(
        summaries.map(|summary| preset_row(summary, folder.as_deref(), (requester, &host))),
    )
    .await;
    if let Some(holder) = holder {
        holder.end().await;
    }
    if out.is_json() {
        let presets: Vec<_> = rows.iter().map(to_json).collect();
        out.print_json(&json!({ "presets": presets }));
        return Ok(());
    }
    out.print_table(
        ["PRESET", "AGENT", "PROGRAM", "VERSION", ""],
        rows.iter().map(columns).collect(),
        "",
    );
    Ok(())
}

async fn preset_row(
    summary: PresetSummary,
    folder: Option<&Path>,
    (requester, host): (Option<&VersionRequester>, &HostContext<'_>),
) -> PresetRow {
    let agent = default_agent(&summary.name, folder);
    let program =
        agent.as_ref().and_then(ConfiguredAgent::program).map(|program| program.command.clone());
    let program = program.filter(|program| program.is_file());
    let status = match agent.filter(|_| program.is_some()).zip(requester) {
        Some((mut agent, requester)) => {
            decide_isolation(&mut agent, host);
            match agent.program().cloned() {
                Some(program) => inspect_program(requester, agent.spec, program).await,
                None => <_>::default(),
            }
        }
        None => <_>::default(),
    };
    PresetRow { summary, program, version: status.version, warning: status.warning }
}

/// Returns an agent of a preset with default settings.
fn default_agent(preset: &str, folder: Option<&Path>) -> Option<ConfiguredAgent> {
    let server_section = folder.map_or(String::new(), |folder| {
        format!("[server]\npresets = {}\n", json!(folder.to_string_lossy()))
    });
    let text = format!("{server_section}[agents.x]\nenabled = false\npreset = {}\n", json!(preset));
    let env = |name: &str| std::env::var_os(name);
    let checked = config::load_text(Path::new("preset.toml"), &text, &env).ok()?;
    checked.settings.agents.into_iter().next()
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

fn columns(row: &PresetRow) -> [String; 5] {
    let program = match (&row.program, &row.summary.command) {
        (Some(program), _) => program.display().to_string(),
        (None, Some(command)) => format!("no `{command}` on the PATH"),
        (None, None) => "-".to_owned(),
    };
    let mut remarks: Vec<String> = row.warning.iter().cloned().collect();
    if !row.summary.metadata.is_verified {
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
