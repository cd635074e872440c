//! `algonius reload`: reloads the configuration of the service.

use serde_json::json;

use crate::cli::client::ServiceClient;
use crate::cli::error::CliError;
use crate::cli::output::CliOutput;
use crate::wire::admin::{Changes, ReloadResult};

/// Reloads, and prints the applied changes, the changes that need a restart, and the errors.
pub(crate) async fn run(client: &ServiceClient, out: &CliOutput) -> Result<(), CliError> {
    let reloaded: ReloadResult = client.post("/api/v1/reload", json!({})).await?;
    if out.is_json() {
        out.print_json(&reloaded);
        return Ok(());
    }
    let applied = &reloaded.applied;
    if applied.is_empty() {
        out.print_line(&format!("nothing has changed (generation {})", reloaded.generation));
    } else {
        out.print_line(&format!("applied (generation {})", reloaded.generation));
    }
    print_changes("agent", &applied.agents, out);
    print_changes("token", &applied.tokens, out);
    print_changes("schedule", &applied.schedules, out);
    for key in &applied.settings {
        out.print_line(&format!("  changed  {key}"));
    }
    for key in &reloaded.pending {
        out.print_line(&format!("  pending  {key}: needs a restart of the service"));
    }
    for warning in &reloaded.warnings {
        out.print_note(&format!("warning: {warning}"));
    }
    Ok(())
}

fn print_changes(kind: &str, changes: &Changes, out: &CliOutput) {
    let Changes { added, changed, removed } = changes;
    for (verb, names) in [("added", added), ("changed", changed), ("removed", removed)] {
        for name in names {
            out.print_line(&format!("  {verb:<8} {kind} {name}"));
        }
    }
}
