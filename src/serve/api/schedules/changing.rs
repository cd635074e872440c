//! Schedules are made, changed, held back, run and removed.

use std::time::Duration;

use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::principal::Right;
use algonius_actors::model::schedule::{Overlap, ScheduleId, ScheduleSpec};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::{entry, known, read, timetable};
use crate::serve::App;
use crate::serve::answer::{Problem, ok};
use crate::serve::api::query::wrong;
use crate::serve::auth::Who;
use crate::serve::segment::Segment;
use crate::serve::status::to_json;
use crate::wire::api::schedules::{LONGEST, MOST_MISSED, ScheduleBody};

/// Makes a schedule that belongs to the caller.
///
/// # Errors
/// `schedule-exists`, `invalid-params`, `agent-unknown`, `forbidden`.
pub async fn create(
    State(app): State<App>,
    who: Who,
    request: Request,
) -> Result<Response, Problem> {
    let caller = who.may(Right::Run, None)?;
    let spec = spec(&app, read(&app, request).await?)?;
    let view = app.gateway.put_schedule(&caller, spec, true).await?;
    Ok((StatusCode::CREATED, ok(&to_json(&entry(&view))?)).into_response())
}

/// Puts another schedule into the place of one; whose it is stays.
///
/// # Errors
/// `schedule-unknown`, `schedule-fixed`, `invalid-params`, `agent-unknown`, `forbidden`.
pub async fn update(
    State(app): State<App>,
    who: Who,
    Segment(id): Segment,
    request: Request,
) -> Result<Response, Problem> {
    let caller = who.may(Right::Run, None)?;
    let body: ScheduleBody = read(&app, request).await?;
    if body.id != id {
        return Err(wrong("`id` must be the one of the path").into());
    }
    app.gateway.schedule(&caller, &known(&id)?).await?;
    let view = app.gateway.put_schedule(&caller, spec(&app, body)?, false).await?;
    Ok(ok(&to_json(&entry(&view))?))
}

/// Removes a schedule. What it asked for goes on, and what happened stays known.
///
/// # Errors
/// `schedule-unknown`, `schedule-fixed`.
pub async fn remove(
    State(app): State<App>,
    who: Who,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let caller = who.may(Right::Run, None)?;
    app.gateway.remove_schedule(&caller, &known(&id)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Holds a schedule back.
///
/// # Errors
/// `schedule-unknown`.
pub async fn pause(state: State<App>, who: Who, id: Segment) -> Result<Response, Problem> {
    hold(state, who, id, true).await
}

/// Lets a schedule go on from now.
///
/// # Errors
/// `schedule-unknown`.
pub async fn resume(state: State<App>, who: Who, id: Segment) -> Result<Response, Problem> {
    hold(state, who, id, false).await
}

async fn hold(
    State(app): State<App>,
    who: Who,
    Segment(id): Segment,
    paused: bool,
) -> Result<Response, Problem> {
    let caller = who.may(Right::Run, None)?;
    let view = app.gateway.pause_schedule(&caller, &known(&id)?, paused).await?;
    Ok(ok(&to_json(&entry(&view))?))
}

/// Asks for what a schedule asks for, now.
///
/// # Errors
/// `schedule-unknown`, `forbidden`.
pub async fn run(
    State(app): State<App>,
    who: Who,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let caller = who.may(Right::Run, None)?;
    let view = app.gateway.run_schedule(&caller, &known(&id)?).await?;
    Ok((StatusCode::ACCEPTED, ok(&to_json(&entry(&view))?)).into_response())
}

/// What a caller wrote, with what is usual where it says nothing.
fn spec(app: &App, body: ScheduleBody) -> Result<ScheduleSpec, Failure> {
    let id = ScheduleId::new(body.id.as_str()).map_err(|error| wrong(&error.to_string()))?;
    let agent = AgentId::new(body.agent.as_str()).map_err(|error| wrong(&error.to_string()))?;
    let unknown = || Failure::new(Code::AgentUnknown, "there is no such agent");
    let known = app.agents.get(&agent).ok_or_else(unknown)?;
    if body.enabled && !known.enabled {
        return Err(Failure::new(Code::AgentDisabled, "the agent is switched off"));
    }
    let missed = body.missed();
    let overlap = body.overlap.unwrap_or_else(|| Overlap::usual(missed, known.access));
    if overlap.loses(missed) {
        return Err(wrong("this `overlap` would lose what `missed` makes up for"));
    }
    let spans = [Some(body.jitter), body.deadline, body.missed_window];
    let name = body.name.unwrap_or_else(|| body.id.clone());
    let is_fit = spans.into_iter().flatten().all(|span| span <= LONGEST)
        && body.missed_max.is_none_or(|max| (1..=MOST_MISSED).contains(&max))
        && (1..=200).contains(&name.chars().count())
        && !body.input.trim().is_empty();
    if !is_fit {
        let bounds = "spans are at most a week, `missedMax` is 1 to 1000, `name` has 1 to 200 \
                      characters, and `input` is not blank";
        return Err(wrong(bounds));
    }
    Ok(ScheduleSpec {
        timetable: timetable(app, &body.cron, body.timezone.as_deref())?,
        id,
        name,
        agent,
        input: body.input,
        params: body.params,
        missed,
        overlap,
        jitter: Duration::from_secs(body.jitter),
        deadline: body.deadline.map(Duration::from_secs),
        alert_after: body.alert_after.unwrap_or(3),
        enabled: body.enabled,
    })
}
