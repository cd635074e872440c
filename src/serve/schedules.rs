//! `/api/v1/schedules`: what is asked for at set times.

use std::time::Duration;

use algonius_actors::decide::due::due_at;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::AgentId;
use algonius_actors::model::occurrence::{OccurrenceQuery, Verdict};
use algonius_actors::model::principal::Right;
use algonius_actors::model::schedule::{Overlap, ScheduleId, ScheduleSpec, ScheduleView};
use algonius_actors::model::timetable::Timetable;
use axum::Router;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use chrono::{DateTime, SecondsFormat, Utc};
use serde::Deserialize;
use serde::de::DeserializeOwned;

use super::answer::{Problem, ok};
use super::auth::Who;
use super::segment::Segment;
use super::status::to_json;
use super::{App, body};
use crate::wire::schedules::{
    OccurrenceList, Preview, PreviewBody, ScheduleBody, ScheduleDetail, ScheduleEntry,
    ScheduleList, Upcoming,
};

/// Entries on a page when the caller does not say, and at most.
const PAGE: (u32, u32) = (50, 1000);
/// Times that a schedule shows of itself.
const SHOWN: usize = 5;
/// The longest span that a caller may set, in seconds: a week.
const LONGEST: u64 = 7 * 86_400;

/// The paths.
pub fn routes() -> Router<App> {
    Router::new()
        .route("/api/v1/schedules", get(list).post(create))
        .route("/api/v1/schedules/preview", post(preview))
        .route("/api/v1/schedules/{id}", get(show).put(update).delete(remove))
        .route("/api/v1/schedules/{id}/pause", post(pause))
        .route("/api/v1/schedules/{id}/resume", post(resume))
        .route("/api/v1/schedules/{id}/run", post(run))
        .route("/api/v1/schedules/{id}/next", get(upcoming))
        .route("/api/v1/schedules/{id}/occurrences", get(occurrences))
}

/// Which schedules to list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    limit: Option<u32>,
    after: Option<String>,
}

/// Schedules that the caller may see, by id.
///
/// # Errors
/// `forbidden`, `invalid-params`.
pub async fn list(
    State(app): State<App>,
    who: Who,
    query: Result<Query<ListQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let caller = who.may(Right::Read, None)?;
    let Query(query) = query.map_err(|_unread| wrong("the query takes `limit` and `after`"))?;
    let limit = limit(query.limit)?;
    let after = query.after.map(|id| known(&id)).transpose()?;
    let mut views = app.gateway.schedules(&caller, after, limit as usize + 1).await?;
    let more = views.len() > limit as usize;
    views.truncate(limit as usize);
    let next = views.last().filter(|_| more).map(|view| view.schedule.spec.id.to_string());
    let schedules = views.iter().map(entry).collect();
    Ok(ok(&to_json(&ScheduleList { schedules, next })?))
}

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

/// One schedule, with its next times and how it did.
///
/// # Errors
/// `schedule-unknown`.
pub async fn show(
    State(app): State<App>,
    who: Who,
    Segment(id): Segment,
) -> Result<Response, Problem> {
    let caller = who.may(Right::Read, None)?;
    let id = known(&id)?;
    let view = app.gateway.schedule(&caller, &id).await?;
    let statistics = to_json(&app.gateway.statistics(&caller, &id).await?)?;
    let spec = &view.schedule.spec;
    let upcoming = times(spec, app.gateway.now(), SHOWN);
    let (entry, words) = (entry(&view), spec.timetable.words());
    Ok(ok(&to_json(&ScheduleDetail { entry, words, upcoming, statistics })?))
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

/// How many times to show.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CountQuery {
    count: Option<u32>,
}

/// The next times of a schedule.
///
/// # Errors
/// `schedule-unknown`, `invalid-params`.
pub async fn upcoming(
    State(app): State<App>,
    who: Who,
    Segment(id): Segment,
    query: Result<Query<CountQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let caller = who.may(Right::Read, None)?;
    let Query(query) = query.map_err(|_unread| wrong("the query takes `count`"))?;
    let view = app.gateway.schedule(&caller, &known(&id)?).await?;
    let spec = &view.schedule.spec;
    let upcoming = times(spec, app.gateway.now(), count(query.count)?);
    Ok(ok(&to_json(&Preview { words: spec.timetable.words(), upcoming })?))
}

/// When an expression would be due.
///
/// # Errors
/// `invalid-params`.
pub async fn preview(
    State(app): State<App>,
    who: Who,
    request: Request,
) -> Result<Response, Problem> {
    who.may(Right::Read, None)?;
    let body: PreviewBody = read(&app, request).await?;
    let table = timetable(&app, &body.cron, body.timezone.as_deref())?;
    let from = body.from.unwrap_or_else(|| app.gateway.now());
    let plain = |planned| shown(&table, planned, planned);
    let upcoming = table.after(from).take(count(body.count)?).map(plain).collect();
    Ok(ok(&to_json(&Preview { words: table.words(), upcoming })?))
}

/// Which occurrences to list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OccurrencesQuery {
    verdict: Option<String>,
    since: Option<DateTime<Utc>>,
    before: Option<DateTime<Utc>>,
    limit: Option<u32>,
}

/// What became of a schedule's times, the latest first.
///
/// # Errors
/// `invalid-params`.
pub async fn occurrences(
    State(app): State<App>,
    who: Who,
    Segment(id): Segment,
    query: Result<Query<OccurrencesQuery>, QueryRejection>,
) -> Result<Response, Problem> {
    let caller = who.may(Right::Read, None)?;
    let unread = "the query takes `verdict`, `since`, `before` (RFC 3339) and `limit`";
    let Query(query) = query.map_err(|_unread| wrong(unread))?;
    let (id, limit) = (known(&id)?, limit(query.limit)?);
    let verdict = query.verdict.map(|word| {
        Verdict::parse(&word).ok_or_else(|| wrong("`verdict` is not one that there is"))
    });
    let query = OccurrenceQuery {
        schedule: Some(id.clone()),
        owner: None,
        agents: None,
        verdict: verdict.transpose()?,
        since: query.since,
        before: query.before.map(|before| (before, id)),
        limit: limit + 1, // One more tells whether there is a next page.
    };
    let mut found = app.gateway.occurrences(&caller, query).await?;
    let more = found.len() > limit as usize;
    found.truncate(limit as usize);
    let next = found.last().filter(|_| more).map(|last| last.planned);
    let occurrences = found.iter().map(Into::into).collect();
    Ok(ok(&to_json(&OccurrenceList { occurrences, next })?))
}

async fn read<T: DeserializeOwned>(app: &App, request: Request) -> Result<T, Failure> {
    let bytes = body::json(app, request).await?;
    let value: serde_json::Value = serde_json::from_slice(&bytes)
        .map_err(|_unread| Failure::new(Code::MalformedJson, "the body is not JSON"))?;
    serde_json::from_value(value)
        .map_err(|error| wrong(&format!("the body cannot be read: {error}")))
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
        && body.missed_max.is_none_or(|max| (1..=1000).contains(&max))
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

fn times(spec: &ScheduleSpec, now: DateTime<Utc>, count: usize) -> Vec<Upcoming> {
    let table = &spec.timetable;
    table
        .after(now)
        .take(count)
        .map(|planned| shown(table, planned, due_at(spec, planned)))
        .collect()
}

fn shown(table: &Timetable, planned: DateTime<Utc>, due: DateTime<Utc>) -> Upcoming {
    let here = planned.with_timezone(&table.zone());
    Upcoming { planned, local: here.to_rfc3339_opts(SecondsFormat::Secs, true), due }
}

fn known(id: &str) -> Result<ScheduleId, Failure> {
    ScheduleId::new(id)
        .map_err(|_no_id| Failure::new(Code::ScheduleUnknown, "there is no such schedule"))
}

fn limit(given: Option<u32>) -> Result<u32, Failure> {
    let limit = given.unwrap_or(PAGE.0);
    (1..=PAGE.1).contains(&limit).then_some(limit).ok_or_else(|| wrong("`limit` must be 1 to 1000"))
}

fn count(given: Option<u32>) -> Result<usize, Failure> {
    let count = given.unwrap_or(10);
    let is_fit = (1..=1000).contains(&count);
    is_fit.then_some(count as usize).ok_or_else(|| wrong("`count` must be 1 to 1000"))
}

fn wrong(text: &str) -> Failure {
    Failure::new(Code::InvalidParams, text)
}
