//! Operations that read schedules, their times and their occurrences.

use algonius_actors::decide::schedule::due::due_time;
use algonius_actors::model::access::principal::Right;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::ScheduleId;
use algonius_actors::model::schedule::ScheduleSpec;
use algonius_actors::model::schedule::occurrence::{OccurrenceQuery, OccurrenceStatus};
use algonius_actors::model::schedule::recurrence::RecurrenceRule;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, Request, State};
use axum::response::Response;
use chrono::{DateTime, SecondsFormat, Utc};
use schemars::JsonSchema;
use serde::Deserialize;

use super::{parse_recurrence_rule, parse_schedule_id, schedule_entry};
use crate::serve::AppState;
use crate::serve::api::invalid_params;
use crate::serve::api::read_json_body;
use crate::serve::auth::caller::AuthenticatedCaller;
use crate::serve::http::path_param::PathParam;
use crate::serve::http::response::{ProblemBody, ok_response, to_json};
use crate::wire::api::schedules::{
    MAX_UPCOMING_OCCURRENCES, OccurrenceList, Preview, PreviewRequest, ScheduleDetail,
    ScheduleList, Upcoming,
};

/// Default and maximum number of entries on a page.
const DEFAULT_AND_MAX_PAGE_SIZE: (u32, u32) = (50, 1000);
/// Number of future occurrences in the details of a schedule.
const UPCOMING_COUNT: usize = 5;

/// Requested page of schedules.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ScheduleListQuery {
    /// Maximum number of schedules; by default 50.
    #[schemars(range(min = 1, max = DEFAULT_AND_MAX_PAGE_SIZE.1))]
    limit: Option<u32>,
    /// Id of the schedule after which the page starts.
    #[schemars(with = "Option<ScheduleId>")]
    after: Option<String>,
}

/// Lists the schedules that the caller may see, by id.
///
/// # Errors
/// `forbidden`, `invalid-params`.
pub async fn list(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    query: Result<Query<ScheduleListQuery>, QueryRejection>,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Read, None)?;
    let Query(query) =
        query.map_err(|_unread| invalid_params("the query takes `limit` and `after`"))?;
    let limit = page_size(query.limit)?;
    let after = query.after.map(|id| parse_schedule_id(&id)).transpose()?;
    let mut views = app.api.schedules.schedules(&caller, after, limit as usize + 1).await?;
    let has_more = views.len() > limit as usize;
    views.truncate(limit as usize);
    let next = views.last().filter(|_| has_more).map(|view| view.schedule.spec.id.to_string());
    let schedules = views.iter().map(schedule_entry).collect();
    Ok(ok_response(&to_json(&ScheduleList { schedules, next })?))
}

/// Returns one schedule with its next occurrences and statistics.
///
/// # Errors
/// `schedule-unknown`.
pub async fn show(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    PathParam(id): PathParam,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Read, None)?;
    let id = parse_schedule_id(&id)?;
    let view = app.api.schedules.schedule(&caller, &id).await?;
    let statistics = app.api.schedules.statistics(&caller, &id).await?;
    let spec = &view.schedule.spec;
    let upcoming = upcoming_occurrences(spec, app.api.reader.now(), UPCOMING_COUNT);
    let (entry, description) = (schedule_entry(&view), spec.recurrence.description());
    Ok(ok_response(&to_json(&ScheduleDetail { entry, description, upcoming, statistics })?))
}

/// Requested number of occurrences.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CountQuery {
    /// Number of occurrences; by default 10.
    #[schemars(range(min = 1, max = MAX_UPCOMING_OCCURRENCES))]
    count: Option<u32>,
}

/// Returns the next occurrences of a schedule.
///
/// # Errors
/// `schedule-unknown`, `invalid-params`.
pub async fn upcoming(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    PathParam(id): PathParam,
    query: Result<Query<CountQuery>, QueryRejection>,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Read, None)?;
    let Query(query) = query.map_err(|_unread| invalid_params("the query takes `count`"))?;
    let view = app.api.schedules.schedule(&caller, &parse_schedule_id(&id)?).await?;
    let spec = &view.schedule.spec;
    let upcoming = upcoming_occurrences(spec, app.api.reader.now(), occurrence_count(query.count)?);
    Ok(ok_response(&to_json(&Preview { description: spec.recurrence.description(), upcoming })?))
}

/// Returns a preview of a cron expression.
///
/// # Errors
/// `invalid-params`.
pub async fn preview(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    request: Request,
) -> Result<Response, ProblemBody> {
    caller.require_right(Right::Read, None)?;
    let body: PreviewRequest = read_json_body(&app, request).await?;
    let rule = parse_recurrence_rule(&app, &body.cron, body.timezone.as_deref())?;
    let from = body.from.unwrap_or_else(|| app.api.reader.now());
    // An expression alone has no id, from which the delay of a schedule is derived.
    let to_upcoming = |planned| upcoming_occurrence(&rule, planned, planned);
    let upcoming = rule
        .planned_times_after(from)
        .take(occurrence_count(body.count)?)
        .map(to_upcoming)
        .collect();
    Ok(ok_response(&to_json(&Preview { description: rule.description(), upcoming })?))
}

/// Filter of occurrences.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct OccurrencesQuery {
    /// Status of the occurrences.
    #[schemars(with = "Option<OccurrenceStatus>")]
    status: Option<String>,
    /// Earliest planned time of the occurrences.
    since: Option<DateTime<Utc>>,
    /// Time before which the occurrences were planned: the value of `next` of the previous page.
    before: Option<DateTime<Utc>>,
    /// Maximum number of occurrences; by default 50.
    #[schemars(range(min = 1, max = DEFAULT_AND_MAX_PAGE_SIZE.1))]
    limit: Option<u32>,
}

/// Lists the occurrences of a schedule, latest first.
///
/// # Errors
/// `invalid-params`.
pub async fn occurrences(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    PathParam(id): PathParam,
    query: Result<Query<OccurrencesQuery>, QueryRejection>,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Read, None)?;
    let message = "the query takes `status`, `since`, `before` (RFC 3339) and `limit`";
    let Query(query) = query.map_err(|_unread| invalid_params(message))?;
    let (id, limit) = (parse_schedule_id(&id)?, page_size(query.limit)?);
    let status = query.status.map(|word| {
        OccurrenceStatus::parse(&word)
            .ok_or_else(|| invalid_params("`status` is not a known status"))
    });
    let query = OccurrenceQuery {
        schedule: Some(id.clone()),
        owner: None,
        agents: None,
        status: status.transpose()?,
        since: query.since,
        before: query.before.map(|before| (before, id)),
        limit: limit + 1, // One more tells whether there is a next page.
    };
    let mut records = app.api.schedules.occurrences(&caller, query).await?;
    let has_more = records.len() > limit as usize;
    records.truncate(limit as usize);
    let next = records.last().filter(|_| has_more).map(|last| last.planned_at);
    let occurrences = records.iter().map(Into::into).collect();
    Ok(ok_response(&to_json(&OccurrenceList { occurrences, next })?))
}

fn upcoming_occurrences(spec: &ScheduleSpec, now: DateTime<Utc>, count: usize) -> Vec<Upcoming> {
    let rule = &spec.recurrence;
    rule.planned_times_after(now)
        .take(count)
        .map(|planned| upcoming_occurrence(rule, planned, due_time(&spec.id, spec.jitter, planned)))
        .collect()
}

fn upcoming_occurrence(
    rule: &RecurrenceRule,
    planned: DateTime<Utc>,
    due: DateTime<Utc>,
) -> Upcoming {
    let local = planned.with_timezone(&rule.zone());
    Upcoming { planned, local: local.to_rfc3339_opts(SecondsFormat::Secs, true), due }
}

fn page_size(requested: Option<u32>) -> Result<u32, Failure> {
    let limit = requested.unwrap_or(DEFAULT_AND_MAX_PAGE_SIZE.0);
    (1..=DEFAULT_AND_MAX_PAGE_SIZE.1)
        .contains(&limit)
        .then_some(limit)
        .ok_or_else(|| invalid_params("`limit` must be 1 to 1000"))
}

fn occurrence_count(requested: Option<u32>) -> Result<usize, Failure> {
    let count = requested.unwrap_or(10);
    let is_valid = (1..=MAX_UPCOMING_OCCURRENCES).contains(&count);
    is_valid.then_some(count as usize).ok_or_else(|| invalid_params("`count` must be 1 to 1000"))
}
