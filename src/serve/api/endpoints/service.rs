//! Operations of the service itself.

use algonius_actors::model::access::principal::Right;
use algonius_actors::model::code::Code;

use crate::serve::api::endpoint::{ApiEndpoint, BodyContent, ContentSchema};
use crate::serve::ops::{error_pages, status};
use crate::wire::api::ServiceStatus;
use crate::wire::api::service::{HealthStatus, Readiness};

/// Media types of pages about errors.
fn error_page_contents() -> Vec<BodyContent> {
    [error_pages::MARKDOWN, error_pages::HTML]
        .map(|media_type| BodyContent { media_type, schema: ContentSchema::Text })
        .into()
}

pub(super) fn operations() -> Vec<ApiEndpoint> {
    let metrics_content =
        BodyContent { media_type: status::OPENMETRICS, schema: ContentSchema::Text };
    vec![
        ApiEndpoint::get("/health", status::health)
            .with_operation("getHealth", "Check that the service responds. Needs no token.")
            .with_response::<HealthStatus>(200, "The service responds."),
        ApiEndpoint::get("/ready", status::readiness)
            .with_operation(
                "getReadiness",
                "Check whether the service accepts requests. Needs no token.",
            )
            .with_response::<Readiness>(200, "The service accepts requests.")
            .with_response::<Readiness>(503, "The service refuses requests for these reasons."),
        ApiEndpoint::get("/status", status::service_status)
            .with_operation("getStatus", "Get the supervision tree, as far as the token permits.")
            .with_required_right(Right::Read)
            .with_response::<ServiceStatus>(200, "The supervision tree."),
        ApiEndpoint::get("/metrics", status::metrics)
            .with_operation("getMetrics", "Get metrics for Prometheus, where they are enabled.")
            .with_required_right(Right::Read)
            .with_response_contents(200, "Metrics in OpenMetrics 1.0.", vec![metrics_content])
            .with_errors(&[Code::PathUnknown]),
        ApiEndpoint::get("/errors", error_pages::index)
            .with_operation("listErrors", "List all error codes. Needs no token.")
            .with_response_contents(
                200,
                "List of codes, as HTML for browsers, else as Markdown.",
                error_page_contents(),
            ),
        ApiEndpoint::get("/errors/{code}", error_pages::page)
            .with_operation("getErrorPage", "Get the page about an error code. Needs no token.")
            .with_path_parameter::<String>("code", "Error code.")
            .with_response_contents(
                200,
                "The page, as HTML for browsers, else as Markdown.",
                error_page_contents(),
            )
            .with_errors(&[Code::PathUnknown]),
    ]
}
