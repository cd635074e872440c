//! The API for programs and for the command line: `/api/v1`, and what is told of the service itself.

pub mod agents;
mod attempts;
pub mod detail;
pub mod executions;
pub mod export;
mod line;
mod live;
pub mod openapi;
mod operation;
pub mod order;
pub mod parts;
pub mod query;
pub mod schedules;
mod table;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::ExecutionId;
use axum::Router;

use super::App;

/// The paths.
pub(super) fn routes() -> Router<App> {
    operation::routes(table::operations())
}

/// The id of an execution, as it stands in a path.
fn execution_id(id: &str) -> Result<ExecutionId, Failure> {
    ExecutionId::parse(id)
        .ok_or_else(|| Failure::new(Code::ExecutionUnknown, "there is no such execution"))
}
