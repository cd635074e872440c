//! Operations on schedules.

use algonius_actors::model::code::Code;
use algonius_actors::model::principal::Right;
use algonius_actors::model::schedule::ScheduleId;

use crate::serve::api::operation::Operation;
use crate::serve::api::schedules::changing;
use crate::serve::api::schedules::reading::{self, CountQuery, ListQuery, OccurrencesQuery};
use crate::wire::api::schedules::{
    OccurrenceList, Preview, PreviewBody, ScheduleBody, ScheduleDetail, ScheduleEntry, ScheduleList,
};

/// Says which schedule.
const WHICH: &str = "The schedule's id.";

/// What keeps one schedule from being told or changed.
const OF_ONE: &[Code] = &[Code::ScheduleUnknown, Code::LedgerUnavailable, Code::Draining];

/// What keeps a schedule from being written.
const NOT_WRITTEN: &[Code] =
    &[Code::AgentUnknown, Code::AgentDisabled, Code::LedgerUnavailable, Code::Draining];

pub(super) fn operations() -> Vec<Operation> {
    let mut all = reading();
    all.extend(changing());
    all
}

fn reading() -> Vec<Operation> {
    vec![
        Operation::get("/api/v1/schedules", reading::list)
            .called("listSchedules", "Schedules that the caller may see, by their ids.")
            .needs(Right::Read)
            .asks::<ListQuery>()
            .tells::<ScheduleList>(200, "A page.")
            .refuses(&[Code::ScheduleUnknown, Code::LedgerUnavailable, Code::Draining]),
        Operation::post("/api/v1/schedules/preview", reading::preview)
            .called("previewTimes", "When an expression would be due.")
            .needs(Right::Read)
            .takes::<PreviewBody>()
            .tells::<Preview>(200, "The next times."),
        Operation::get("/api/v1/schedules/{id}", reading::show)
            .called("showSchedule", "One schedule, with its next times and how it did.")
            .needs(Right::Read)
            .names::<ScheduleId>("id", WHICH)
            .tells::<ScheduleDetail>(200, "The schedule.")
            .refuses(OF_ONE),
        Operation::get("/api/v1/schedules/{id}/next", reading::upcoming)
            .called("listTimes", "The next times of a schedule.")
            .needs(Right::Read)
            .names::<ScheduleId>("id", WHICH)
            .asks::<CountQuery>()
            .tells::<Preview>(200, "The next times.")
            .refuses(OF_ONE),
        Operation::get("/api/v1/schedules/{id}/occurrences", reading::occurrences)
            .called("listOccurrences", "What became of a schedule's times, the latest first.")
            .needs(Right::Read)
            .names::<ScheduleId>("id", WHICH)
            .asks::<OccurrencesQuery>()
            .tells::<OccurrenceList>(200, "A page.")
            .refuses(OF_ONE),
    ]
}

fn changing() -> Vec<Operation> {
    vec![
        Operation::post("/api/v1/schedules", changing::create)
            .called("createSchedule", "Makes a schedule that belongs to the caller.")
            .needs(Right::Run)
            .takes::<ScheduleBody>()
            .tells::<ScheduleEntry>(201, "The schedule.")
            .refuses(NOT_WRITTEN)
            .refuses(&[Code::ScheduleExists]),
        Operation::put("/api/v1/schedules/{id}", changing::update)
            .called("updateSchedule", "Puts another schedule into the place of one.")
            .needs(Right::Run)
            .names::<ScheduleId>("id", WHICH)
            .takes::<ScheduleBody>()
            .tells::<ScheduleEntry>(200, "The schedule as it is now.")
            .refuses(NOT_WRITTEN)
            .refuses(&[Code::ScheduleUnknown, Code::ScheduleFixed, Code::ScheduleExists]),
        Operation::delete("/api/v1/schedules/{id}", changing::remove)
            .called("removeSchedule", "Removes a schedule. What it asked for goes on.")
            .needs(Right::Run)
            .names::<ScheduleId>("id", WHICH)
            .ends(204, "It is gone.")
            .refuses(OF_ONE)
            .refuses(&[Code::ScheduleFixed]),
        Operation::post("/api/v1/schedules/{id}/pause", changing::pause)
            .called("pauseSchedule", "Holds a schedule back.")
            .needs(Right::Run)
            .names::<ScheduleId>("id", WHICH)
            .tells::<ScheduleEntry>(200, "The schedule as it is now.")
            .refuses(OF_ONE),
        Operation::post("/api/v1/schedules/{id}/resume", changing::resume)
            .called("resumeSchedule", "Lets a schedule go on from now.")
            .needs(Right::Run)
            .names::<ScheduleId>("id", WHICH)
            .tells::<ScheduleEntry>(200, "The schedule as it is now.")
            .refuses(OF_ONE),
        Operation::post("/api/v1/schedules/{id}/run", changing::run)
            .called("runSchedule", "Asks for what a schedule asks for, now.")
            .needs(Right::Run)
            .names::<ScheduleId>("id", WHICH)
            .tells::<ScheduleEntry>(202, "The schedule, which was asked for.")
            .refuses(OF_ONE),
    ]
}
