//! Schedules are looked at: what they say, when they are due, what became of that.

use algonius_actors::decide::due::due_at;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::occurrence::{OccurrenceQuery, Verdict};
use algonius_actors::model::principal::Right;
use algonius_actors::model::schedule::{ScheduleId, ScheduleSpec};
use algonius_actors::model::timetable::Timetable;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::response::Response;
use chrono::{DateTime, SecondsFormat, Utc};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{entry, known, read, timetable};
use crate::serve::App;
use crate::serve::answer::{Problem, ok};
use crate::serve::api::query::wrong;
use crate::serve::auth::Who;
use crate::serve::segment::Segment;
use crate::serve::status::to_json;
use crate::wire::api::schedules::{
    MOST_TIMES, OccurrenceList, Preview, PreviewBody, ScheduleDetail, ScheduleList, Upcoming,
};

/// Entries on a page when the caller does not say, and at most.
const PAGE: (u32, u32) = (50, 1000);
/// Times that a schedule shows of itself.
const SHOWN: usize = 5;

/// Which schedules to list.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// At most so many; 50 where nothing is said.
    #[schemars(range(min = 1, max = PAGE.1))]
    limit: Option<u32>,
    /// Those that follow this one.
    #[schemars(with = "Option<ScheduleId>")]
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
    let statistics = app.gateway.statistics(&caller, &id).await?;
    let spec = &view.schedule.spec;
    let upcoming = times(spec, app.gateway.now(), SHOWN);
    let (entry, words) = (entry(&view), spec.timetable.words());
    Ok(ok(&to_json(&ScheduleDetail { entry, words, upcoming, statistics })?))
}

/// How many times to show.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CountQuery {
    /// How many times; 10 where nothing is said.
    #[schemars(range(min = 1, max = MOST_TIMES))]
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
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OccurrencesQuery {
    /// Only those of which this was decided.
    #[schemars(with = "Option<Verdict>")]
    verdict: Option<String>,
    /// Only those of this time or later.
    since: Option<DateTime<Utc>>,
    /// Only those of an earlier time: the `next` of the page before.
    before: Option<DateTime<Utc>>,
    /// At most so many; 50 where nothing is said.
    #[schemars(range(min = 1, max = PAGE.1))]
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

fn times(spec: &ScheduleSpec, now: DateTime<Utc>, count: usize) -> Vec<Upcoming> {
    let table = &spec.timetable;
    table
        .after(now)
        .take(count)
        .map(|planned| shown(table, planned, due_at(&spec.id, spec.jitter, planned)))
        .collect()
}

fn shown(table: &Timetable, planned: DateTime<Utc>, due: DateTime<Utc>) -> Upcoming {
    let here = planned.with_timezone(&table.zone());
    Upcoming { planned, local: here.to_rfc3339_opts(SecondsFormat::Secs, true), due }
}

fn limit(given: Option<u32>) -> Result<u32, Failure> {
    let limit = given.unwrap_or(PAGE.0);
    (1..=PAGE.1).contains(&limit).then_some(limit).ok_or_else(|| wrong("`limit` must be 1 to 1000"))
}

fn count(given: Option<u32>) -> Result<usize, Failure> {
    let count = given.unwrap_or(10);
    let is_fit = (1..=MOST_TIMES).contains(&count);
    is_fit.then_some(count as usize).ok_or_else(|| wrong("`count` must be 1 to 1000"))
}
