//! `/api/v1`: agents and executions, for programs and for the command line.

pub mod agents;
mod attempts;
pub mod detail;
pub mod executions;
pub mod export;
mod line;
mod live;
pub mod order;
pub mod parts;
pub mod query;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::ExecutionId;
use axum::Router;
use axum::routing::{get, post};

use super::{App, admin};

/// The paths.
pub(super) fn routes() -> Router<App> {
    Router::new()
        .route("/api/v1/agents", get(agents::list))
        .route("/api/v1/agents/{id}", get(agents::show))
        .route("/api/v1/agents/{id}/wait", post(agents::wait))
        .route("/api/v1/agents/{id}/enable", post(admin::enable))
        .route("/api/v1/agents/{id}/disable", post(admin::disable))
        .route("/api/v1/executions", get(executions::list).post(order::ask))
        .route("/api/v1/executions/export", get(export::stream))
        .route("/api/v1/executions/{id}", get(detail::show).delete(executions::remove))
        .route("/api/v1/executions/{id}/cancel", post(executions::cancel))
        .route("/api/v1/executions/{id}/retry", post(order::retry))
        .route("/api/v1/executions/{id}/events", get(parts::events))
        .route("/api/v1/executions/{id}/text", get(parts::text))
}

/// The id of an execution, as it stands in a path.
fn execution_id(id: &str) -> Result<ExecutionId, Failure> {
    ExecutionId::parse(id)
        .ok_or_else(|| Failure::new(Code::ExecutionUnknown, "there is no such execution"))
}
