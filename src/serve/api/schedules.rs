//! `/api/v1/schedules`: what is asked for at set times.

pub mod changing;
pub mod reading;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::schedule::{ScheduleId, ScheduleView};
use algonius_actors::model::timetable::Timetable;
use axum::extract::Request;
use serde::de::DeserializeOwned;

use super::query::wrong;
use crate::serve::{App, body};
use crate::wire::api::schedules::{ScheduleBody, ScheduleEntry};

async fn read<T: DeserializeOwned>(app: &App, request: Request) -> Result<T, Failure> {
    let bytes = body::json(app, request).await?;
    let value: serde_json::Value = serde_json::from_slice(&bytes)
        .map_err(|_unread| Failure::new(Code::MalformedJson, "the body is not JSON"))?;
    serde_json::from_value(value)
        .map_err(|error| wrong(&format!("the body cannot be read: {error}")))
}

fn timetable(app: &App, cron: &str, zone: Option<&str>) -> Result<Timetable, Failure> {
    let table = Timetable::new(cron, zone.unwrap_or(&app.zone), app.seconds);
    table.map_err(|error| wrong(&error.to_string()))
}

fn entry(view: &ScheduleView) -> ScheduleEntry {
    let ScheduleView { schedule, standing, next, working, waiting, streak } = view;
    let after = schedule.spec.alert_after;
    ScheduleEntry {
        body: ScheduleBody::of(&schedule.spec),
        owner: schedule.owner.to_string(),
        origin: schedule.origin,
        standing: *standing,
        next: *next,
        working: working.iter().map(ToString::to_string).collect(),
        waiting: *waiting,
        failures_in_a_row: *streak,
        alert: after > 0 && *streak >= after,
        created_at: schedule.created_at,
        changed_at: schedule.changed_at,
    }
}

fn known(id: &str) -> Result<ScheduleId, Failure> {
    ScheduleId::new(id)
        .map_err(|_no_id| Failure::new(Code::ScheduleUnknown, "there is no such schedule"))
}
