//! Operations on executions.

use algonius_actors::model::code::Code;
use algonius_actors::model::event::Event;
use algonius_actors::model::id::ExecutionId;
use algonius_actors::model::principal::Right;

use crate::serve::api::operation::{Content, Of, Operation, shape};
use crate::serve::api::parts::{self, EventQuery, TextQuery};
use crate::serve::api::query::{ExportQuery, ListQuery, PageQuery};
use crate::serve::api::{detail, executions, export, order};
use crate::wire::api::history::{EventList, ExecutionDetail, ExportLine, TextPart, Waiting};
use crate::wire::api::order::{ExecutionOrder, RequestName};
use crate::wire::api::{ExecutionEntry, ExecutionList};
use crate::wire::problem::Problem;

/// Says which execution.
const WHICH: &str = "The execution's id, which is also the A2A task's.";

/// What keeps an agent from being asked.
const NOT_ASKED: &[Code] = &[
    Code::AgentUnknown,
    Code::AgentRemoved,
    Code::AgentDisabled,
    Code::AgentQuarantined,
    Code::RateLimited,
    Code::Draining,
    Code::Pressure,
    Code::QueueFull,
    Code::InvalidParams,
    Code::InputRejected,
    Code::InputTooLarge,
    Code::OverrideRefused,
    Code::MessageReused,
    Code::ContentType,
    Code::LedgerUnavailable,
];

pub(super) fn operations() -> Vec<Operation> {
    let mut all = reading();
    all.extend(changing());
    all
}

fn reading() -> Vec<Operation> {
    vec![
        Operation::get("/api/v1/executions", executions::list)
            .called("listExecutions", "Executions that the caller may see, newest first, by pages.")
            .needs(Right::Read)
            .asks::<ListQuery>()
            .asks::<PageQuery>()
            .tells::<ExecutionList>(200, "A page.")
            .refuses(&[Code::LedgerUnavailable]),
        Operation::get("/api/v1/executions/export", export::stream)
            .called("exportExecutions", "Executions with their events, newest first, as a stream.")
            .needs(Right::Read)
            .asks::<ListQuery>()
            .asks::<ExportQuery>()
            .answers(200, "One document for each execution, each on a line.", vec![lines()])
            .refuses(&[Code::LedgerUnavailable]),
        Operation::get("/api/v1/executions/{id}", detail::show)
            .called("showExecution", "One execution with each attempt, its events and its texts.")
            .needs(Right::Read)
            .names::<ExecutionId>("id", WHICH)
            .tells::<ExecutionDetail>(200, "The execution.")
            .refuses(&[Code::ExecutionUnknown, Code::LedgerUnavailable]),
        Operation::get("/api/v1/executions/{id}/events", parts::events)
            .called("listEvents", "Events of an execution: a part of them, or each as it happens.")
            .needs(Right::Read)
            .names::<ExecutionId>("id", WHICH)
            .asks::<EventQuery>()
            .hears::<String>(
                "Last-Event-ID",
                "The number of the last event that is known; any other text is none.",
            )
            .answers(200, "The events, as the caller accepts them.", vec![part(), stream()])
            .refuses(&[Code::ExecutionUnknown, Code::LedgerUnavailable]),
        Operation::get("/api/v1/executions/{id}/text", parts::text)
            .called("readText", "A part of a text of an execution.")
            .needs(Right::Read)
            .names::<ExecutionId>("id", WHICH)
            .asks::<TextQuery>()
            .tells::<TextPart>(200, "The part; empty where there is no such text.")
            .refuses(&[Code::ExecutionUnknown, Code::LedgerUnavailable]),
    ]
}

fn changing() -> Vec<Operation> {
    vec![
        Operation::post("/api/v1/executions", order::ask)
            .called("askAgent", "Asks an agent, and waits for the end where the caller says so.")
            .needs(Right::Run)
            .hears::<RequestName>("Idempotency-Key", "The caller's own name for the request.")
            .takes::<ExecutionOrder>()
            .tells::<ExecutionDetail>(200, "It has ended; its outcome says how.")
            .tells::<ExecutionDetail>(202, "It was accepted, and goes on.")
            .refuses(NOT_ASKED),
        Operation::post("/api/v1/executions/{id}/retry", order::retry)
            .called("retryExecution", "Asks once more what an execution was asked.")
            .needs(Right::Run)
            .names::<ExecutionId>("id", WHICH)
            .tells::<ExecutionDetail>(200, "The new execution, which has ended.")
            .tells::<ExecutionDetail>(202, "The new execution, which goes on.")
            .refuses(NOT_ASKED)
            .refuses(&[Code::ExecutionUnknown, Code::ExecutionUnfinished, Code::NotReplayable]),
        Operation::post("/api/v1/executions/{id}/cancel", executions::cancel)
            .called("cancelExecution", "Calls an execution off, and answers when it has ended.")
            .needs(Right::Run)
            .names::<ExecutionId>("id", WHICH)
            .tells::<ExecutionEntry>(200, "The execution.")
            .refuses(&[Code::ExecutionUnknown, Code::ExecutionEnded, Code::LedgerUnavailable]),
        Operation::delete("/api/v1/executions/{id}", executions::remove)
            .called(
                "removeExecution",
                "Removes an execution that has ended, with all that is kept.",
            )
            .needs(Right::Run)
            .names::<ExecutionId>("id", WHICH)
            .ends(204, "It is gone.")
            .refuses(&[Code::ExecutionUnknown, Code::ExecutionUnfinished, Code::LedgerUnavailable]),
    ]
}

fn part() -> Content {
    Content { media: "application/json", of: Of::Document(shape::<EventList>()) }
}

/// The events of a stream, by the names that they have there.
fn stream() -> Content {
    let kinds = vec![
        ("event", shape::<Event>()),
        ("queued", shape::<Waiting>()),
        ("rest", shape::<ExecutionEntry>()),
        ("error", shape::<Problem>()),
    ];
    Content { media: "text/event-stream", of: Of::Documents(kinds) }
}

fn lines() -> Content {
    let kinds = vec![("line", shape::<ExportLine>())];
    Content { media: "application/x-ndjson", of: Of::Documents(kinds) }
}
