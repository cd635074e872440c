//! `algonius agents presets`: the known programs, and which of them are here.

use std::path::{Path, PathBuf};

use futures_util::future::join_all;
use serde_json::json;

use crate::cli::check;
use crate::cli::fault::CliError;
use crate::cli::out::Out;
use crate::config::presets::{Offer, offers};
use crate::config::{self, Agent};
use crate::programs::look;

/// A preset, and the program of it on this machine.
struct Row {
    offer: Offer,
    program: Option<PathBuf>,
    version: Option<String>,
    warning: Option<String>,
}

/// Looks and prints. Needs no service.
pub(super) async fn run(config: Option<&Path>, out: &Out) -> Result<(), CliError> {
    let folder = match config {
        Some(file) => Some(check::load(Some(file))?.settings.server.presets),
        None => None,
    };
    let rows = join_all(offers(folder.as_deref()).into_iter().map(|offer| {
        let folder = folder.clone();
        async move { row(offer, folder.as_deref()).await }
    }));
    let rows = rows.await;
    if out.is_json() {
        let presets: Vec<_> = rows.iter().map(shape).collect();
        out.shape(&json!({ "presets": presets }));
        return Ok(());
    }
    out.table(["PRESET", "AGENT", "PROGRAM", "VERSION", ""], rows.iter().map(line).collect(), "");
    Ok(())
}

async fn row(offer: Offer, folder: Option<&Path>) -> Row {
    let agent = agent(&offer.name, folder);
    let program = agent.as_ref().map(|agent| agent.program.command.clone());
    let program = program.filter(|program| program.is_file());
    let told = match agent.filter(|_| program.is_some()) {
        Some(agent) => look(&agent.program).await,
        None => <_>::default(),
    };
    Row { offer, program, version: told.version, warning: told.warning }
}

/// An agent of a preset, as it would be without another word.
fn agent(preset: &str, folder: Option<&Path>) -> Option<Agent> {
    let folder = folder.map_or(String::new(), |folder| {
        format!("[server]\npresets = {}\n", json!(folder.to_string_lossy()))
    });
    let text = format!("{folder}[agents.x]\nenabled = false\npreset = {}\n", json!(preset));
    let env = |name: &str| std::env::var(name).ok();
    let checked = config::load_text(Path::new("preset.toml"), &text, &env).ok()?;
    checked.settings.agents.into_iter().next()
}

fn shape(row: &Row) -> serde_json::Value {
    json!({
        "preset": row.offer.name,
        "title": row.offer.about.title,
        "verified": row.offer.about.is_verified,
        "command": row.offer.command,
        "program": row.program,
        "version": row.version,
        "warning": row.warning,
        "file": row.offer.file,
    })
}

fn line(row: &Row) -> [String; 5] {
    let program = match (&row.program, &row.offer.command) {
        (Some(program), _) => program.display().to_string(),
        (None, Some(command)) => format!("no `{command}` on the PATH"),
        (None, None) => "-".to_owned(),
    };
    let mut remarks: Vec<String> = row.warning.iter().cloned().collect();
    if !row.offer.about.is_verified {
        remarks.push("written from documents, never run".to_owned());
    }
    if row.offer.file.is_some() {
        remarks.push("your own".to_owned());
    }
    [
        row.offer.name.clone(),
        row.offer.about.title.clone(),
        program,
        row.version.clone().unwrap_or_else(|| "-".to_owned()),
        remarks.join("; "),
    ]
}
