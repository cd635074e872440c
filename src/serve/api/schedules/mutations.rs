//! Operations that create, change, pause, run and remove schedules.

use std::time::Duration;

use algonius_actors::decide::access::override_policy;
use algonius_actors::model::access::principal::Right;
use algonius_actors::model::code::Code;
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::{AgentId, ScheduleId};
use algonius_actors::model::schedule::{OverlapPolicy, ScheduleSpec};
use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};

use super::{parse_recurrence_rule, parse_schedule_id, schedule_entry};
use crate::serve::AppState;
use crate::serve::api::invalid_params;
use crate::serve::api::read_json_body;
use crate::serve::auth::caller::AuthenticatedCaller;
use crate::serve::http::path_param::PathParam;
use crate::serve::http::response::{ProblemBody, ok_response, to_json};
use crate::wire::api::schedules::{MAX_DURATION_SECONDS, MAX_MISSED, ScheduleRequest};

/// Creates a schedule that belongs to the caller.
///
/// # Errors
/// `schedule-exists`, `invalid-params`, `override-refused`, `agent-unknown`, `forbidden`.
pub async fn create(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    request: Request,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Run, None)?;
    let spec = build_schedule_spec(&app, read_json_body(&app, request).await?)?;
    let view = app.api.schedules.put_schedule(&caller, spec, true).await?;
    Ok((StatusCode::CREATED, ok_response(&to_json(&schedule_entry(&view))?)).into_response())
}

/// Replaces a schedule; its owner stays the same.
///
/// # Errors
/// `schedule-unknown`, `schedule-fixed`, `invalid-params`, `override-refused`, `agent-unknown`,
/// `forbidden`.
pub async fn update(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    PathParam(id): PathParam,
    request: Request,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Run, None)?;
    let body: ScheduleRequest = read_json_body(&app, request).await?;
    if body.id != id {
        return Err(invalid_params("`id` must equal the id in the path").into());
    }
    // Who may not see the schedule gets `schedule-unknown` here, before the checks of the body name anything else.
    app.api.schedules.schedule(&caller, &parse_schedule_id(&id)?).await?;
    let view =
        app.api.schedules.put_schedule(&caller, build_schedule_spec(&app, body)?, false).await?;
    Ok(ok_response(&to_json(&schedule_entry(&view))?))
}

/// Removes a schedule. Its running executions continue, and its past occurrences stay recorded.
///
/// # Errors
/// `schedule-unknown`, `schedule-fixed`.
pub async fn remove(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    PathParam(id): PathParam,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Run, None)?;
    app.api.schedules.remove_schedule(&caller, &parse_schedule_id(&id)?).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}

/// Pauses a schedule.
///
/// # Errors
/// `schedule-unknown`.
pub async fn pause(
    state: State<AppState>,
    caller: AuthenticatedCaller,
    id: PathParam,
) -> Result<Response, ProblemBody> {
    set_paused(state, caller, id, true).await
}

/// Resumes a schedule from now on.
///
/// # Errors
/// `schedule-unknown`.
pub async fn resume(
    state: State<AppState>,
    caller: AuthenticatedCaller,
    id: PathParam,
) -> Result<Response, ProblemBody> {
    set_paused(state, caller, id, false).await
}

async fn set_paused(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    PathParam(id): PathParam,
    paused: bool,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Run, None)?;
    let view =
        app.api.schedules.set_schedule_paused(&caller, &parse_schedule_id(&id)?, paused).await?;
    Ok(ok_response(&to_json(&schedule_entry(&view))?))
}

/// Triggers a schedule now.
///
/// # Errors
/// `schedule-unknown`, `forbidden`.
pub async fn trigger(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    PathParam(id): PathParam,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Run, None)?;
    let view = app.api.schedules.trigger_schedule(&caller, &parse_schedule_id(&id)?).await?;
    Ok((StatusCode::ACCEPTED, ok_response(&to_json(&schedule_entry(&view))?)).into_response())
}

/// Returns the definition of a schedule with the defaults of the service.
fn build_schedule_spec(app: &AppState, body: ScheduleRequest) -> Result<ScheduleSpec, Failure> {
    let id =
        ScheduleId::new(body.id.as_str()).map_err(|error| invalid_params(&error.to_string()))?;
    let agent =
        AgentId::new(body.agent.as_str()).map_err(|error| invalid_params(&error.to_string()))?;
    let unknown_agent = || Failure::new(Code::AgentUnknown, "there is no such agent");
    let agent_spec = app.agents.get(&agent).ok_or_else(unknown_agent)?;
    // Every time of such a schedule would be refused. A paused one may be prepared.
    if body.enabled && !agent_spec.enabled {
        return Err(Failure::new(Code::AgentDisabled, "the agent is disabled"));
    }
    override_policy::check_params(&agent_spec.override_policy, body.params.keys())?;
    let missed = body.missed_policy();
    let overlap =
        body.overlap.unwrap_or_else(|| OverlapPolicy::default_for(missed, agent_spec.access));
    if overlap.loses_occurrences(missed) {
        return Err(invalid_params(
            "this `overlap` would drop occurrences that `missed` makes up for",
        ));
    }
    let durations = [Some(body.jitter), body.deadline, body.missed_window];
    let name = body.name.unwrap_or_else(|| body.id.clone());
    let is_valid = durations.into_iter().flatten().all(|seconds| seconds <= MAX_DURATION_SECONDS)
        && body.missed_max.is_none_or(|max| (1..=MAX_MISSED).contains(&max))
        && (1..=200).contains(&name.chars().count())
        && !body.input.trim().is_empty();
    if !is_valid {
        let message = "spans are at most a week, `missedMax` is 1 to 1000, `name` has 1 to 200 \
                      characters, and `input` is not blank";
        return Err(invalid_params(message));
    }
    Ok(ScheduleSpec {
        recurrence: parse_recurrence_rule(app, &body.cron, body.timezone.as_deref())?,
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
