//! `algonius check`: every fault of a configuration at once.

use std::path::Path;

use super::fault::CliError;
use super::out::Out;
use crate::config::{self, Checked};

/// Checks and prints what a writer should know.
pub(super) fn run(file: Option<&Path>, out: &Out) -> Result<(), CliError> {
    let Checked { settings, warnings } = load(file)?;
    for warning in &warnings {
        out.note(&warning.to_string());
    }
    let agents: Vec<_> = settings.agents.iter().map(|agent| agent.spec.id.to_string()).collect();
    if out.is_json() {
        let warnings: Vec<_> = warnings.iter().map(ToString::to_string).collect();
        out.shape(&serde_json::json!({"agents": agents, "warnings": warnings}));
    } else {
        out.line(&format!("good: {} agents ({})", agents.len(), agents.join(", ")));
    }
    Ok(())
}

/// Prints the schema of configurations.
pub(super) fn schema(out: &Out) {
    out.shape(&config::schema());
}

/// Prints what programs can ask of the service.
pub(super) fn openapi(out: &Out) {
    out.shape(&crate::openapi());
}

/// The configuration of a file, or the shipped one.
pub(super) fn load(file: Option<&Path>) -> Result<Checked, CliError> {
    let env = |name: &str| std::env::var(name).ok();
    let checked = match file {
        Some(file) => config::load(file, &env),
        None => config::load_shipped(&env),
    };
    checked.map_err(CliError::Configuration)
}
