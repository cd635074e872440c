//! Operations of the service itself.

use algonius_actors::model::code::Code;
use algonius_actors::model::principal::Right;
use serde_json::{Map, Value};

use crate::serve::api::openapi;
use crate::serve::api::operation::{Content, Of, Operation};
use crate::serve::status;
use crate::wire::api::ServiceStatus;
use crate::wire::api::service::{Liveness, Readiness};

pub(super) fn operations() -> Vec<Operation> {
    let numbers = Content { media: status::OPENMETRICS, of: Of::Text };
    vec![
        Operation::get("/health", status::health)
            .called("showHealth", "Says that the service answers. Open to everybody.")
            .tells::<Liveness>(200, "It answers."),
        Operation::get("/ready", status::ready)
            .called("showReadiness", "Says whether work can be taken now. Open to everybody.")
            .tells::<Readiness>(200, "It can.")
            .tells::<Readiness>(503, "It cannot, for these reasons."),
        Operation::get("/status", status::tree)
            .called("showStatus", "The whole tree, as far as the caller's token goes.")
            .needs(Right::Read)
            .tells::<ServiceStatus>(200, "The tree."),
        Operation::get("/metrics", status::metrics)
            .called("showMetrics", "The numbers, as Prometheus reads them, where they are told.")
            .needs(Right::Read)
            .answers(200, "The numbers, in OpenMetrics 1.0.", vec![numbers])
            .refuses(&[Code::PathUnknown]),
        Operation::get("/api/v1/openapi.json", openapi::show)
            .called("showDescription", "This description.")
            .needs(Right::Read)
            .tells::<Map<String, Value>>(200, "The description, in OpenAPI 3.1."),
    ]
}
