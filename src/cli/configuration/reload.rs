//! `algonius reload`: reloads the configuration of the service.

use serde_json::json;

use crate::cli::client::ServiceClient;
use crate::cli::error::CliError;
use crate::cli::output::Out;
use crate::wire::admin::{Changes, Reloaded};

/// Reloads, and prints the applied changes, the changes that need a restart, and the errors.
pub(crate) async fn run(client: &ServiceClient, out: &Out) -> Result<(), CliError> {
    let told: Reloaded = client.post("/api/v1/reload", json!({})).await?;
    if out.is_json() {
        out.shape(&told);
        return Ok(());
    }
    let applied = &told.applied;
    if applied.is_empty() {
        out.line(&format!("nothing has changed (generation {})", told.generation));
    } else {
        out.line(&format!("applied (generation {})", told.generation));
    }
    changes("agent", &applied.agents, out);
    changes("token", &applied.tokens, out);
    changes("schedule", &applied.schedules, out);
    for key in &applied.settings {
        out.line(&format!("  changed  {key}"));
    }
    for key in &told.pending {
        out.line(&format!("  pending  {key}: needs a restart of the service"));
    }
    for warning in &told.warnings {
        out.note(&format!("warning: {warning}"));
    }
    Ok(())
}

fn changes(what: &str, changes: &Changes, out: &Out) {
    let Changes { added, changed, removed } = changes;
    for (how, names) in [("added", added), ("changed", changed), ("removed", removed)] {
        for name in names {
            out.line(&format!("  {how:<8} {what} {name}"));
        }
    }
}
