//! `algonius tasks show --tree`: a task with the tasks of its hops.

use crate::cli::client::ServiceClient;
use crate::cli::error::CliError;
use crate::cli::output::CliOutput;
use crate::cli::output::time_text::format_duration;
use crate::cli::output::usage_text;
use crate::wire::api::tree::{ExecutionTree, HopEntry, HopStageName};

/// Shows a task with its hops.
pub(crate) async fn show_tree(
    client: &ServiceClient,
    id: &str,
    out: &CliOutput,
) -> Result<(), CliError> {
    let tree: ExecutionTree = client.get(&format!("/api/v1/executions/{id}/tree")).await?;
    if out.is_json() {
        out.print_json(&tree);
        return Ok(());
    }
    out.print_line(&format!("{} {}  {}", tree.agent, state_summary(&tree), tree.execution));
    print_hops(&tree, "", out);
    if tree.hops.is_empty() {
        out.print_note("this task has no hops: its agent is no team");
    }
    if tree.truncated {
        out.print_note("the tree has more hops than shown; `tasks show` shows each of them");
    }
    Ok(())
}

fn print_hops(tree: &ExecutionTree, indent: &str, out: &CliOutput) {
    let count = tree.hops.len();
    for (hop, number) in tree.hops.iter().zip(1..) {
        let (branch, bar) = if number == count { ("└─", "   ") } else { ("├─", "│  ") };
        out.print_line(&format!("{indent}{branch} {}", hop_line(hop)));
        if let Some(tree) = &hop.tree {
            print_hops(tree, &format!("{indent}{bar}"), out);
        }
    }
}

fn hop_line(hop: &HopEntry) -> String {
    let HopEntry { hop: number, step, agent, .. } = hop;
    let member = if step == agent { agent.clone() } else { format!("{step} by {agent}") };
    let state = match (&hop.tree, hop.outcome, hop.stage) {
        (Some(tree), _, _) => state_summary(tree),
        (None, Some(outcome), _) => outcome.to_string(),
        (None, None, HopStageName::Planned) => "planned".to_owned(),
        (None, None, HopStageName::Taken | HopStageName::Ended) => "unknown".to_owned(),
    };
    let code = hop.code.map(|code| format!(" ({code})")).unwrap_or_default();
    let execution = hop.execution.as_ref().map(|id| format!("  {id}")).unwrap_or_default();
    format!("{number} {member} {state}{code}{execution}")
}

/// Returns the state of an execution, its duration and what it has used.
fn state_summary(tree: &ExecutionTree) -> String {
    let duration = tree.duration_us.map(|duration| format!("after {}", format_duration(duration)));
    let parts = [Some(tree.state.to_string()), duration, usage_text::usage_line(tree.spent)];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}
