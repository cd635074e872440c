//! Lookup of the task that a request names.

use algonius_actors::model::access::principal::Caller;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::record::ExecutionRecord;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::{AgentId, ExecutionId};

use crate::serve::AppState;

/// Returns an execution of this agent that the caller may see; every other execution counts as unknown.
pub(in crate::serve::a2a) async fn find_by_text_id(
    app: &AppState,
    caller: &Caller,
    agent: &AgentId,
    id: &str,
) -> Result<ExecutionRecord, Failure> {
    match ExecutionId::parse(id) {
        Some(id) => find_by_id(app, caller, agent, id).await,
        None => Err(unknown_task()),
    }
}

/// Returns an execution of this agent that the caller may see, by its id.
pub(super) async fn find_by_id(
    app: &AppState,
    caller: &Caller,
    agent: &AgentId,
    id: ExecutionId,
) -> Result<ExecutionRecord, Failure> {
    match app.api.reader.execution(caller, id).await {
        Ok(record) => require_visible_record(caller, agent, record),
        Err(failure) if failure.code != Code::ExecutionUnknown => Err(failure),
        // The domain speaks of executions; a client of A2A knows tasks only.
        Err(_) => Err(unknown_task()),
    }
}

/// Returns the record if it belongs to this agent and the caller may see it.
pub(super) fn require_visible_record(
    caller: &Caller,
    agent: &AgentId,
    record: ExecutionRecord,
) -> Result<ExecutionRecord, Failure> {
    // Both cases give the same failure, so that nobody learns which tasks of others exist.
    let is_visible = record.agent == *agent && caller.may_see(record.owner, &record.agent);
    if is_visible { Ok(record) } else { Err(unknown_task()) }
}

fn unknown_task() -> Failure {
    Failure::new(Code::ExecutionUnknown, "task not found")
}
