//! Operations on executions.

use algonius_a2a::problem::Problem;
use algonius_actors::model::access::principal::Right;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::event::Event;
use algonius_actors::model::id::ExecutionId;

use crate::serve::api::endpoint::{ApiEndpoint, BodyContent, ContentSchema, schema_fn};
use crate::serve::api::executions::events_and_texts::{self, EventQuery, TextQuery};
use crate::serve::api::executions::query::{ExportQuery, ListQuery, PageParameters};
use crate::serve::api::executions::steps::StepQuery;
use crate::serve::api::executions::{self, create, detail, export, steps, tree};
use crate::wire::api::create_execution::{ExecutionRequest, IdempotencyKeyHeader};
use crate::wire::api::history::{
    EventList, ExecutionDetail, ExportLine, TextPart, TextUpdate, WaitingPosition,
};
use crate::wire::api::steps::StepList;
use crate::wire::api::tree::ExecutionTree;
use crate::wire::api::{ExecutionEntry, ExecutionList};

/// Description of the path parameter.
const ID_DESCRIPTION: &str = "Id of the execution, which is also the id of its A2A task.";

/// Errors that refuse a request to an agent.
const SUBMIT_ERRORS: &[Code] = &[
    Code::AgentUnknown,
    Code::AgentRemoved,
    Code::AgentDisabled,
    Code::AgentQuarantined,
    Code::RateLimited,
    Code::Draining,
    Code::Pressure,
    Code::ServiceUnready,
    Code::QueueFull,
    Code::InvalidParams,
    Code::InputRejected,
    Code::InputTooLarge,
    Code::OverrideRefused,
    Code::MessageReused,
    Code::ContentType,
    Code::LedgerUnavailable,
    Code::AcceptTimeout,
];

pub(super) fn operations() -> Vec<ApiEndpoint> {
    let mut endpoints = query_endpoints();
    endpoints.extend(hop_and_step_endpoints());
    endpoints.extend(mutation_endpoints());
    endpoints
}

fn query_endpoints() -> Vec<ApiEndpoint> {
    vec![
        ApiEndpoint::get("/api/v1/executions", executions::list)
            .with_operation(
                "listExecutions",
                "List executions that the caller may read, newest first, by page.",
            )
            .with_required_right(Right::Read)
            .with_query::<ListQuery>()
            .with_query::<PageParameters>()
            .with_response::<ExecutionList>(200, "A page of executions.")
            .with_errors(&[Code::LedgerUnavailable]),
        ApiEndpoint::get("/api/v1/executions/export", export::stream)
            .with_operation(
                "exportExecutions",
                "Export executions with their events, newest first, as a stream.",
            )
            .with_required_right(Right::Read)
            .with_query::<ListQuery>()
            .with_query::<ExportQuery>()
            .with_response_contents(
                200,
                "One JSON document per execution, one per line.",
                vec![export_content()],
            )
            .with_errors(&[Code::LedgerUnavailable]),
        ApiEndpoint::get("/api/v1/executions/{id}", detail::show)
            .with_operation(
                "getExecution",
                "Get one execution with its attempts, events and texts.",
            )
            .with_required_right(Right::Read)
            .with_path_parameter::<ExecutionId>("id", ID_DESCRIPTION)
            .with_response::<ExecutionDetail>(200, "The execution.")
            .with_errors(&[Code::ExecutionUnknown, Code::LedgerUnavailable]),
        ApiEndpoint::get("/api/v1/executions/{id}/events", events_and_texts::events)
            .with_operation(
                "listEvents",
                "List events of an execution, or follow them as a stream.",
            )
            .with_required_right(Right::Read)
            .with_path_parameter::<ExecutionId>("id", ID_DESCRIPTION)
            .with_query::<EventQuery>()
            .with_header::<String>(
                "Last-Event-ID",
                "Id of the last event that the client received. An unknown id is ignored.",
            )
            .with_response_contents(
                200,
                "Events, as JSON or as server-sent events (`Accept`).",
                vec![event_list_content(), event_stream_content()],
            )
            .with_errors(&[Code::ExecutionUnknown, Code::LedgerUnavailable]),
        ApiEndpoint::get("/api/v1/executions/{id}/text", events_and_texts::text)
            .with_operation("getText", "Get a range of a text of an execution.")
            .with_required_right(Right::Read)
            .with_path_parameter::<ExecutionId>("id", ID_DESCRIPTION)
            .with_query::<TextQuery>()
            .with_response::<TextPart>(200, "The range; empty if the execution has no such text.")
            .with_errors(&[Code::ExecutionUnknown, Code::LedgerUnavailable]),
    ]
}

fn mutation_endpoints() -> Vec<ApiEndpoint> {
    vec![
        ApiEndpoint::post("/api/v1/executions", create::create)
            .with_operation("createExecution", "Send a request to an agent. Optionally wait for the outcome.")
            .with_required_right(Right::Run)
            .with_header::<IdempotencyKeyHeader>("Idempotency-Key", "Key of the request, chosen by the caller. A repeated key returns the same execution.")
            .with_body::<ExecutionRequest>()
            .with_response::<ExecutionDetail>(200, "The execution has ended.")
            .with_response::<ExecutionDetail>(202, "The execution is accepted and has not ended.")
            .with_errors(SUBMIT_ERRORS),
        ApiEndpoint::post("/api/v1/executions/{id}/retry", create::retry)
            .with_operation("retryExecution", "Retry an ended execution as a new execution.")
            .with_required_right(Right::Run)
            .with_path_parameter::<ExecutionId>("id", ID_DESCRIPTION)
            .with_response::<ExecutionDetail>(200, "The new execution has ended.")
            .with_response::<ExecutionDetail>(202, "The new execution is accepted and has not ended.")
            .with_errors(SUBMIT_ERRORS)
            .with_errors(&[Code::ExecutionUnknown, Code::ExecutionUnfinished, Code::NotReplayable]),
        ApiEndpoint::post("/api/v1/executions/{id}/cancel", executions::cancel)
            .with_operation("cancelExecution", "Cancel an execution. The response follows when it has ended.")
            .with_required_right(Right::Run)
            .with_path_parameter::<ExecutionId>("id", ID_DESCRIPTION)
            .with_response::<ExecutionEntry>(200, "The execution.")
            .with_errors(&[Code::ExecutionUnknown, Code::ExecutionEnded, Code::LedgerUnavailable]),
        ApiEndpoint::delete("/api/v1/executions/{id}", executions::remove)
            .with_operation(
                "deleteExecution",
                "Delete an ended execution with its events and texts.",
            )
            .with_required_right(Right::Run)
            .with_path_parameter::<ExecutionId>("id", ID_DESCRIPTION)
            .with_empty_response(204, "The execution is deleted.")
            .with_errors(&[Code::ExecutionUnknown, Code::ExecutionUnfinished, Code::LedgerUnavailable]),
    ]
}

fn event_list_content() -> BodyContent {
    BodyContent {
        media_type: "application/json",
        schema: ContentSchema::Document(schema_fn::<EventList>()),
    }
}

/// Describes the events of an event stream by their names.
fn event_stream_content() -> BodyContent {
    let kinds = vec![
        ("event", schema_fn::<Event>()),
        ("text", schema_fn::<TextUpdate>()),
        ("queued", schema_fn::<WaitingPosition>()),
        ("rest", schema_fn::<ExecutionEntry>()),
        ("error", schema_fn::<Problem>()),
    ];
    BodyContent { media_type: "text/event-stream", schema: ContentSchema::DocumentSequence(kinds) }
}

fn export_content() -> BodyContent {
    let kinds = vec![("line", schema_fn::<ExportLine>())];
    BodyContent {
        media_type: "application/x-ndjson",
        schema: ContentSchema::DocumentSequence(kinds),
    }
}

/// Returns the endpoints of runs, which consist of hops or of steps.
fn hop_and_step_endpoints() -> Vec<ApiEndpoint> {
    vec![
        ApiEndpoint::get("/api/v1/executions/{id}/tree", tree::show)
            .with_operation("getExecutionTree", "Get one execution with the hops of its run.")
            .with_required_right(Right::Read)
            .with_path_parameter::<ExecutionId>("id", ID_DESCRIPTION)
            .with_response::<ExecutionTree>(200, "The execution.")
            .with_errors(&[Code::ExecutionUnknown, Code::LedgerUnavailable]),
        ApiEndpoint::get("/api/v1/executions/{id}/steps", steps::list)
            .with_operation("listSteps", "List the steps of a cognitive agent's run.")
            .with_required_right(Right::Read)
            .with_path_parameter::<ExecutionId>("id", ID_DESCRIPTION)
            .with_query::<StepQuery>()
            .with_response::<StepList>(200, "A page of steps.")
            .with_errors(&[Code::ExecutionUnknown, Code::LedgerUnavailable]),
    ]
}
