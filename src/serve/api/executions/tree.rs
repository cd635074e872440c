//! An execution with its hops.

use algonius_actors::api::{RunTree, TreeHop};
use algonius_actors::decide::runs::team::Hop;
use algonius_actors::model::access::principal::Right;
use axum::extract::State;
use axum::response::Response;

use super::parse_execution_id;
use crate::serve::AppState;
use crate::serve::auth::caller::AuthenticatedCaller;
use crate::serve::http::path_param::PathParam;
use crate::serve::http::response::{ProblemBody, ok_response, to_json};
use crate::wire::api::ExecutionEntry;
use crate::wire::api::tree::{ExecutionTree, HopEntry, HopStageName};

/// Returns an execution with its hops.
///
/// # Errors
/// `execution-unknown`; fails also if the ledger cannot be read.
pub async fn show(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    PathParam(id): PathParam,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Read, None)?;
    let tree = app.api.reader.run_tree(&caller, parse_execution_id(&id)?).await?;
    Ok(ok_response(&to_json(&execution_tree(tree))?))
}

fn execution_tree(tree: RunTree) -> ExecutionTree {
    let ExecutionEntry { id, agent, state, outcome, duration_us, error, usage: spent, .. } =
        ExecutionEntry::from(&tree.record);
    ExecutionTree {
        execution: id,
        agent,
        state,
        outcome,
        duration_us,
        error,
        spent,
        hops: tree.hops.into_iter().map(hop_entry).collect(),
        truncated: tree.is_truncated,
    }
}

fn hop_entry(TreeHop { hop, tree }: TreeHop) -> HopEntry {
    let Hop { number, step, agent, execution, end, .. } = hop;
    let stage = match (execution, end) {
        (_, Some(_)) => HopStageName::Ended,
        (Some(_), None) => HopStageName::Taken,
        (None, None) => HopStageName::Planned,
    };
    HopEntry {
        hop: number,
        step,
        agent: agent.to_string(),
        stage,
        outcome: end.map(|end| end.outcome),
        code: end.and_then(|end| end.code),
        execution: execution.map(|execution| execution.to_string()),
        tree: tree.map(|tree| Box::new(execution_tree(tree))),
    }
}
