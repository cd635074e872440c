//! `/api/v1`: agents and executions, for programs and for the command line.

pub mod agents;
pub mod detail;
pub mod executions;
pub mod query;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::ExecutionId;

/// The id of an execution, as it stands in a path.
fn execution_id(id: &str) -> Result<ExecutionId, Failure> {
    ExecutionId::parse(id)
        .ok_or_else(|| Failure::new(Code::ExecutionUnknown, "there is no such execution"))
}
