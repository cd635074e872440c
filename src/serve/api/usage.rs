//! Resources that agents have used, by day.

use algonius_actors::model::access::principal::Right;
use algonius_actors::model::id::AgentId;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::Response;
use chrono::{Days, NaiveDate, TimeDelta};
use schemars::JsonSchema;
use serde::Deserialize;

use super::invalid_params;
use crate::serve::AppState;
use crate::serve::auth::caller::AuthenticatedCaller;
use crate::serve::http::response::{ProblemBody, ok_response, to_json};
use crate::wire::api::usage::{UsageAmounts, UsageEntry, UsageReport};

/// Default number of days of a report, followed by the maximum.
const DEFAULT_DAYS: u64 = 7;
const MAX_DAYS: u64 = 366;

/// Period and agent of a usage report.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct UsageQuery {
    /// Id of the agent; by default all agents.
    #[schemars(with = "Option<AgentId>")]
    agent: Option<String>,
    /// Number of days up to and including today; by default 7.
    #[schemars(range(min = 1, max = MAX_DAYS))]
    days: Option<u64>,
}

/// Reports the resources that the agents visible to the caller have used.
///
/// # Errors
/// `invalid-params`, `forbidden`; fails also if the ledger cannot be read.
pub async fn report(
    State(app): State<AppState>,
    caller: AuthenticatedCaller,
    query: Result<Query<UsageQuery>, QueryRejection>,
) -> Result<Response, ProblemBody> {
    let caller = caller.require_right(Right::Read, None)?;
    let hint = "the query takes `agent` and `days`, 1 to 366";
    let query = query.map(|Query(query)| query).map_err(|_rejected| invalid_params(hint))?;
    let day_count = query.days.unwrap_or(DEFAULT_DAYS);
    if !(1..=MAX_DAYS).contains(&day_count) {
        return Err(invalid_params(hint).into());
    }
    let agent = query.agent.map(AgentId::new).transpose();
    let agent = agent.map_err(|error| invalid_params(&error.to_string()))?;
    let now = app.api.reader.now();
    // A day is one of the agent's own time zone; the earliest zone is 14 hours ahead of UTC.
    let latest_local_date = (now + TimeDelta::hours(14)).date_naive();
    let today = now.date_naive();
    let since = today.checked_sub_days(Days::new(day_count - 1)).unwrap_or(today);
    let days: Vec<NaiveDate> =
        since.iter_days().take_while(|day| *day <= latest_local_date).collect();
    let is_visible = |id: &AgentId| {
        agent.as_ref().is_none_or(|agent| agent == id) && caller.scope.allows(Right::Read, Some(id))
    };
    let visible_usage =
        app.api.reader.daily_usage(&days).await?.into_iter().filter(|((id, _), _)| is_visible(id));
    let mut entries: Vec<_> = visible_usage
        .map(|((id, day), charge)| UsageEntry {
            day,
            agent: id.to_string(),
            amounts: UsageAmounts::from(charge),
        })
        .filter(|entry| !entry.amounts.is_zero())
        .collect();
    entries.sort_by(|left, right| (right.day, &left.agent).cmp(&(left.day, &right.agent)));
    let total = entries.iter().fold(UsageAmounts::default(), |sum, entry| sum.plus(entry.amounts));
    let until = entries.first().map_or(today, |entry| entry.day.max(today));
    Ok(ok_response(&to_json(&UsageReport { since, until, entries, total })?))
}
