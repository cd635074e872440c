//! Filters of executions, shared by the list and the export.

use algonius_actors::model::access::principal::{Caller, Right};
use algonius_actors::model::code::{Category, Code};
use algonius_actors::model::execution::record::{
    ExecutionFilter, ExecutionIdFragment, TriggerFilter,
};
use algonius_actors::model::execution::{ExecutionState, Outcome};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::{AgentId, ContextId, ExecutionId};
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

use crate::serve::api::invalid_params;

/// Error message with the known parameters.
const PARAMETERS_HINT: &str = "the query takes `agent`, `state`, `outcome`, `failure`, `class`, `caller`, \
    `trigger`, `schedule`, `context`, `id`, `since`, `until`, `unfinished`, `summary`, `limit` and `cursor`";

/// Maximum number of entries on a page of a list.
pub(super) const MAX_PAGE_SIZE: u32 = 1000;

/// Values of the parameter `trigger`.
const TRIGGERS: [&str; 4] = ["api", "hop", "probe", "schedule"];

/// Filter of executions.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// Id of the agent.
    #[schemars(with = "Option<AgentId>")]
    agent: Option<String>,
    /// State of the executions.
    #[schemars(with = "Option<ExecutionState>")]
    state: Option<String>,
    /// Outcome of the executions.
    #[schemars(with = "Option<Outcome>")]
    outcome: Option<String>,
    /// Error code of the executions.
    #[schemars(with = "Option<Code>")]
    failure: Option<String>,
    /// Category of the executions' error code.
    #[schemars(with = "Option<Category>")]
    class: Option<String>,
    /// Name of the principal that sent the requests; a name other than the caller's own requires an administrator.
    caller: Option<String>,
    /// Source of the executions: a caller, a probe, a schedule or the run of a team.
    #[schemars(with = "Option<ExecutionSource>")]
    trigger: Option<String>,
    /// Id of the schedule.
    schedule: Option<String>,
    /// Id of the conversation.
    context: Option<String>,
    /// Executions whose id starts or ends with these hexadecimal digits; hyphens are ignored.
    #[schemars(regex(pattern = "^-*([0-9A-Fa-f]-*){4,32}$"))]
    id: Option<String>,
    /// Earliest time of acceptance: a time, or a duration before now such as `2h`.
    #[schemars(with = "Option<TimeParameter>")]
    since: Option<String>,
    /// Time before which the executions were accepted: a time, or a duration before now.
    #[schemars(with = "Option<TimeParameter>")]
    until: Option<String>,
    /// True to select only executions that have not ended.
    #[serde(default)]
    unfinished: bool,
    /// True to add the caller and the start of the request to each entry; for a list only.
    #[serde(default)]
    #[schemars(skip)]
    pub summary: bool,
    /// Maximum number of executions.
    #[schemars(skip)] // A list and an export have bounds of their own.
    pub limit: Option<u32>,
    /// Cursor of the page: the value of `next` of the previous page.
    #[schemars(regex(pattern = "^[A-Za-z0-9_-]{21}[AQgw]$"))]
    cursor: Option<String>,
    /// True to include texts; for an export only.
    #[serde(default)]
    #[schemars(skip)]
    text: bool,
}

/// Additional parameters of a list.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is described, and read as a part of `ListQuery`")]
pub struct PageParameters {
    /// Maximum number of executions on the page; by default 50.
    #[schemars(range(min = 1, max = MAX_PAGE_SIZE))]
    limit: Option<u32>,
    /// True to add the caller and the start of the request to each entry.
    summary: Option<bool>,
}

/// Additional parameters of an export.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is described, and read as a part of `ListQuery`")]
pub struct ExportQuery {
    /// Maximum number of executions; by default all.
    #[schemars(range(max = u32::MAX))]
    limit: Option<u32>,
    /// True to include texts.
    text: Option<bool>,
}

/// Source of an execution.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase", inline)]
#[expect(dead_code, reason = "it is described, and read by `parse_trigger`")]
enum ExecutionSource {
    Api,
    Hop,
    Probe,
    Schedule,
}

/// Time of RFC 3339, or a duration before now.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "it is described, and read by `parse_time`")]
enum TimeParameter {
    At(DateTime<Utc>),
    Ago(#[schemars(regex(pattern = "^[0-9]{1,9}[smhd]$"))] String),
}

/// Query as the extractor returns it.
pub type ExtractedListQuery = Result<Query<ListQuery>, QueryRejection>;

/// Returns the query of a list if it is valid.
///
/// # Errors
/// `invalid-params`.
pub fn parse_list_query(parameters: ExtractedListQuery) -> Result<ListQuery, Failure> {
    // One structure reads both queries; `text` is known to an export only.
    let query = parameters.map(|Query(query)| query).ok().filter(|query| !query.text);
    query.ok_or_else(|| invalid_params(PARAMETERS_HINT))
}

/// Returns the query of an export, and true if the export includes texts.
///
/// # Errors
/// `invalid-params`.
pub fn parse_export_query(parameters: ExtractedListQuery) -> Result<(ListQuery, bool), Failure> {
    let query = parameters.map(|Query(query)| query);
    let query = query.map_err(|_rejected| {
        invalid_params(&format!("{PARAMETERS_HINT}; an export takes `text` too"))
    })?;
    let includes_text = query.text;
    Ok((query, includes_text))
}

impl ListQuery {
    /// Returns the filter without its limit. The times of the filter may be relative to `now`.
    ///
    /// # Errors
    /// `invalid-params`, or `forbidden` if a caller that may not see the executions of others requests them.
    pub fn execution_filter(
        &self,
        caller: &Caller,
        now: DateTime<Utc>,
    ) -> Result<ExecutionFilter, Failure> {
        let agent = self.agent.clone().map(AgentId::new).transpose();
        Ok(ExecutionFilter {
            agent: agent.map_err(|error| invalid_params(&error.to_string()))?,
            id_fragment: self.id.as_deref().map(parse_id_fragment).transpose()?,
            owner_name: authorized_owner_name(caller, self.caller.clone())?,
            unfinished_only: self.unfinished,
            state: parse_keyword("state", self.state.as_deref(), ExecutionState::parse)?,
            outcome: parse_keyword("outcome", self.outcome.as_deref(), Outcome::parse)?,
            code: parse_keyword("failure", self.failure.as_deref(), Code::parse)?,
            category: parse_keyword("class", self.class.as_deref(), Category::parse)?,
            trigger: parse_keyword("trigger", self.trigger.as_deref(), parse_trigger)?,
            schedule: self.schedule.clone(),
            context: self.context.clone().map(ContextId),
            since: parse_time("since", self.since.as_deref(), now)?,
            until: parse_time("until", self.until.as_deref(), now)?,
            before_id: self.cursor.as_deref().map(parse_cursor).transpose()?,
            ..ExecutionFilter::default()
        })
    }
}

/// Returns the opaque cursor for the last execution of a page.
#[must_use]
pub fn encode_cursor(id: ExecutionId) -> String {
    URL_SAFE_NO_PAD.encode(id.0.as_bytes())
}

fn parse_cursor(cursor: &str) -> Result<ExecutionId, Failure> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
    let id = bytes.and_then(|bytes| Uuid::from_slice(&bytes).ok());
    id.map(ExecutionId)
        .ok_or_else(|| invalid_params("`cursor` must be the `next` of an earlier page"))
}

/// Returns the requested owner: only callers that may see all executions may name another owner than themselves.
fn authorized_owner_name(caller: &Caller, name: Option<String>) -> Result<Option<String>, Failure> {
    let is_own = name.as_ref().is_none_or(|name| *name == caller.name);
    if is_own || caller.scope.allows(Right::Admin, None) {
        return Ok(name);
    }
    Err(Failure::new(Code::Forbidden, "the token may list only its own executions"))
}

fn parse_id_fragment(text: &str) -> Result<ExecutionIdFragment, Failure> {
    ExecutionIdFragment::parse(text).ok_or_else(|| {
        invalid_params(
            "`id` must be 4 to 32 hexadecimal digits, of the beginning or the end of an id",
        )
    })
}

fn parse_trigger(name: &str) -> Option<TriggerFilter> {
    TRIGGERS.contains(&name).then(|| TriggerFilter::Kind(name.to_owned()))
}

fn parse_keyword<T>(
    name: &str,
    text: Option<&str>,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Failure> {
    let parse_or_refuse =
        |word| parse(word).ok_or_else(|| invalid_params(&format!("`{name}` is not a known word")));
    text.map(parse_or_refuse).transpose()
}

fn parse_time(
    name: &str,
    value: Option<&str>,
    now: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, Failure> {
    let parse_or_refuse = |text| {
        let time = DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc());
        let message =
            || format!("`{name}` must be a time of RFC 3339, or how long ago, such as 2h");
        // A duration that exceeds the calendar selects everything since the Unix epoch.
        let before_now = |span| now.checked_sub_signed(span).unwrap_or(DateTime::UNIX_EPOCH);
        time.or_else(|| parse_duration(text).map(before_now))
            .ok_or_else(|| invalid_params(&message()))
    };
    value.map(parse_or_refuse).transpose()
}

/// Maximum number of digits of a duration.
const MAX_DURATION_DIGITS: usize = 9;

/// Parses a duration such as `90s`, `5m`, `2h` or `30d`.
fn parse_duration(text: &str) -> Option<TimeDelta> {
    let digits = text.trim_end_matches(|char: char| !char.is_ascii_digit());
    if digits.len() > MAX_DURATION_DIGITS {
        return None;
    }
    let seconds_per_unit = match text.get(digits.len()..)? {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    TimeDelta::try_seconds(i64::from(digits.parse::<u32>().ok()?) * seconds_per_unit)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_back_and_other_text_is_refused() {
        let id = ExecutionId::generate();
        assert_eq!(parse_cursor(&encode_cursor(id)), Ok(id));
        for invalid in ["", "x", "!", &id.to_string(), &format!("{}A", encode_cursor(id))] {
            assert_eq!(
                parse_cursor(invalid).map_err(|it| it.code),
                Err(Code::InvalidParams),
                "{invalid}"
            );
        }
    }

    #[test]
    fn a_time_is_absolute_or_relative() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(40);
        let read = |text| parse_time("since", Some(text), now).map_err(|failure| failure.code);
        for (text, ago) in [("90s", 90), ("5m", 300), ("2h", 7200), ("30d", 2_592_000)] {
            assert_eq!(read(text), Ok(Some(now - TimeDelta::seconds(ago))), "{text}");
        }
        assert_eq!(read("999999999d"), Ok(Some(DateTime::UNIX_EPOCH)));
        assert_eq!(read("1970-01-01T01:00:00+01:00"), Ok(Some(DateTime::UNIX_EPOCH)));
        for invalid in ["", "h", "1", "1w", "-1h", "99999999999d", "soon", "4294967295d"] {
            assert_eq!(read(invalid), Err(Code::InvalidParams), "{invalid}");
        }
    }
}
