//! Operations on schedules.

use algonius_actors::model::access::principal::Right;
use algonius_actors::model::code::Code;
use algonius_actors::model::id::ScheduleId;

use crate::serve::api::endpoint::ApiEndpoint;
use crate::serve::api::schedules::mutations;
use crate::serve::api::schedules::queries::{
    self, CountQuery, OccurrencesQuery, ScheduleListQuery,
};
use crate::wire::api::schedules::{
    OccurrenceList, Preview, PreviewRequest, ScheduleDetail, ScheduleEntry, ScheduleList,
    ScheduleRequest,
};

/// Description of the path parameter.
const ID_DESCRIPTION: &str = "Id of the schedule.";

/// Errors of operations on one schedule.
const LOOKUP_ERRORS: &[Code] = &[Code::ScheduleUnknown, Code::LedgerUnavailable, Code::Draining];

/// Errors that refuse a new or changed schedule.
const WRITE_ERRORS: &[Code] = &[
    Code::AgentUnknown,
    Code::AgentDisabled,
    Code::OverrideRefused,
    Code::LedgerUnavailable,
    Code::Draining,
];

pub(super) fn operations() -> Vec<ApiEndpoint> {
    let mut endpoints = query_endpoints();
    endpoints.extend(mutation_endpoints());
    endpoints
}

fn query_endpoints() -> Vec<ApiEndpoint> {
    vec![
        ApiEndpoint::get("/api/v1/schedules", queries::list)
            .with_operation(
                "listSchedules",
                "List schedules that the caller may read, sorted by id.",
            )
            .with_required_right(Right::Read)
            .with_query::<ScheduleListQuery>()
            .with_response::<ScheduleList>(200, "A page of schedules.")
            .with_errors(&[Code::ScheduleUnknown, Code::LedgerUnavailable, Code::Draining]),
        ApiEndpoint::post("/api/v1/schedules/preview", queries::preview)
            .with_operation("previewSchedule", "Preview the due times of a cron expression.")
            .with_required_right(Right::Read)
            .with_body::<PreviewRequest>()
            .with_response::<Preview>(200, "Next due times."),
        ApiEndpoint::get("/api/v1/schedules/{id}", queries::show)
            .with_operation(
                "getSchedule",
                "Get one schedule with its next due times and statistics.",
            )
            .with_required_right(Right::Read)
            .with_path_parameter::<ScheduleId>("id", ID_DESCRIPTION)
            .with_response::<ScheduleDetail>(200, "The schedule.")
            .with_errors(LOOKUP_ERRORS),
        ApiEndpoint::get("/api/v1/schedules/{id}/next", queries::upcoming)
            .with_operation("listDueTimes", "List the next due times of a schedule.")
            .with_required_right(Right::Read)
            .with_path_parameter::<ScheduleId>("id", ID_DESCRIPTION)
            .with_query::<CountQuery>()
            .with_response::<Preview>(200, "Next due times.")
            .with_errors(LOOKUP_ERRORS),
        ApiEndpoint::get("/api/v1/schedules/{id}/occurrences", queries::occurrences)
            .with_operation("listOccurrences", "List past occurrences of a schedule, newest first.")
            .with_required_right(Right::Read)
            .with_path_parameter::<ScheduleId>("id", ID_DESCRIPTION)
            .with_query::<OccurrencesQuery>()
            .with_response::<OccurrenceList>(200, "A page of occurrences.")
            .with_errors(LOOKUP_ERRORS),
    ]
}

fn mutation_endpoints() -> Vec<ApiEndpoint> {
    vec![
        ApiEndpoint::post("/api/v1/schedules", mutations::create)
            .with_operation("createSchedule", "Create a schedule that the caller owns.")
            .with_required_right(Right::Run)
            .with_body::<ScheduleRequest>()
            .with_response::<ScheduleEntry>(201, "The schedule.")
            .with_errors(WRITE_ERRORS)
            .with_errors(&[Code::ScheduleExists]),
        ApiEndpoint::put("/api/v1/schedules/{id}", mutations::update)
            .with_operation("replaceSchedule", "Replace a schedule.")
            .with_required_right(Right::Run)
            .with_path_parameter::<ScheduleId>("id", ID_DESCRIPTION)
            .with_body::<ScheduleRequest>()
            .with_response::<ScheduleEntry>(200, "The schedule after the change.")
            .with_errors(WRITE_ERRORS)
            .with_errors(&[Code::ScheduleUnknown, Code::ScheduleFixed, Code::ScheduleExists]),
        ApiEndpoint::delete("/api/v1/schedules/{id}", mutations::remove)
            .with_operation("deleteSchedule", "Delete a schedule. Its executions continue.")
            .with_required_right(Right::Run)
            .with_path_parameter::<ScheduleId>("id", ID_DESCRIPTION)
            .with_empty_response(204, "The schedule is deleted.")
            .with_errors(LOOKUP_ERRORS)
            .with_errors(&[Code::ScheduleFixed]),
        ApiEndpoint::post("/api/v1/schedules/{id}/pause", mutations::pause)
            .with_operation("pauseSchedule", "Pause a schedule.")
            .with_required_right(Right::Run)
            .with_path_parameter::<ScheduleId>("id", ID_DESCRIPTION)
            .with_response::<ScheduleEntry>(200, "The schedule after the change.")
            .with_errors(LOOKUP_ERRORS),
        ApiEndpoint::post("/api/v1/schedules/{id}/resume", mutations::resume)
            .with_operation("resumeSchedule", "Resume a schedule from now on.")
            .with_required_right(Right::Run)
            .with_path_parameter::<ScheduleId>("id", ID_DESCRIPTION)
            .with_response::<ScheduleEntry>(200, "The schedule after the change.")
            .with_errors(LOOKUP_ERRORS),
        ApiEndpoint::post("/api/v1/schedules/{id}/run", mutations::trigger)
            .with_operation("triggerSchedule", "Trigger a schedule now.")
            .with_required_right(Right::Run)
            .with_path_parameter::<ScheduleId>("id", ID_DESCRIPTION)
            .with_response::<ScheduleEntry>(202, "The schedule is triggered.")
            .with_errors(LOOKUP_ERRORS),
    ]
}
