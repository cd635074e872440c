//! Which executions are asked for: the same words for a list and for an export.

use algonius_actors::model::code::{Category, Code};
use algonius_actors::model::execution::{Outcome, State};
use algonius_actors::model::failure::Failure;
use algonius_actors::model::id::{AgentId, ContextId, ExecutionId};
use algonius_actors::model::principal::{Caller, Right};
use algonius_actors::model::record::Filter;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use schemars::JsonSchema;
use serde::Deserialize;
use uuid::Uuid;

/// What may be asked for.
const KNOWN: &str = "the query takes `agent`, `state`, `outcome`, `failure`, `class`, `caller`, \
    `trigger`, `schedule`, `context`, `since`, `until`, `unfinished`, `limit` and `cursor`";

/// Entries on a page of a list at most.
pub(super) const LONGEST_PAGE: u32 = 1000;

/// What makes executions.
const TRIGGERS: [&str; 3] = ["api", "probe", "schedule"];

/// Which executions to list.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    /// Those of this agent.
    #[schemars(with = "Option<AgentId>")]
    agent: Option<String>,
    /// Those in this state.
    #[schemars(with = "Option<State>")]
    state: Option<String>,
    /// Those that ended like this.
    #[schemars(with = "Option<Outcome>")]
    outcome: Option<String>,
    /// Those that failed with this code.
    #[schemars(with = "Option<Code>")]
    failure: Option<String>,
    /// Those that failed with a code of this category.
    #[schemars(with = "Option<Category>")]
    class: Option<String>,
    /// Those that this principal asked for; another than the caller's own for administrators only.
    caller: Option<String>,
    /// Those that a caller, or a schedule, has made.
    #[schemars(with = "Option<Made>")]
    trigger: Option<String>,
    /// Those of this schedule.
    schedule: Option<String>,
    /// Those of this conversation.
    context: Option<String>,
    /// Those accepted then or later: a time, or how long ago, such as `2h`.
    #[schemars(with = "Option<Time>")]
    since: Option<String>,
    /// Those accepted before: a time, or how long ago.
    #[schemars(with = "Option<Time>")]
    until: Option<String>,
    /// Those that have not ended.
    #[serde(default)]
    unfinished: bool,
    /// At most so many.
    #[schemars(skip)] // A list and an export have bounds of their own.
    pub limit: Option<u32>,
    /// Those that follow a page: its `next`.
    #[schemars(regex(pattern = "^[A-Za-z0-9_-]{21}[AQgw]$"))]
    cursor: Option<String>,
    /// Whether texts are told too; of an export alone.
    #[serde(default)]
    #[schemars(skip)]
    text: bool,
}

/// What a list reads besides.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is described, and read as a part of `ListQuery`")]
pub struct PageQuery {
    /// At most so many; 50 where nothing is said.
    #[schemars(range(min = 1, max = LONGEST_PAGE))]
    limit: Option<u32>,
}

/// What an export reads besides.
#[derive(JsonSchema)]
#[expect(dead_code, reason = "it is described, and read as a part of `ListQuery`")]
pub struct ExportQuery {
    /// At most so many; all where nothing is said.
    #[schemars(range(max = u32::MAX))]
    limit: Option<u32>,
    /// Whether texts are told too.
    text: Option<bool>,
}

/// What makes executions.
#[derive(JsonSchema)]
#[schemars(rename_all = "lowercase", inline)]
#[expect(dead_code, reason = "it is described, and read by `trigger`")]
enum Made {
    Api,
    Schedule,
}

/// A time of RFC 3339, or how long ago.
#[derive(JsonSchema)]
#[schemars(untagged, inline)]
#[expect(dead_code, reason = "it is described, and read by `time`")]
enum Time {
    At(DateTime<Utc>),
    Ago(#[schemars(regex(pattern = "^[0-9]{1,9}[smhd]$"))] String),
}

/// What was asked for, as it came.
pub type Asked = Result<Query<ListQuery>, QueryRejection>;

/// The query, if it is one.
///
/// # Errors
/// `invalid-params`.
pub fn read(asked: Asked) -> Result<ListQuery, Failure> {
    let query = asked.map(|Query(query)| query).ok().filter(|query| !query.text);
    query.ok_or_else(|| wrong(KNOWN))
}

/// The query of an export, and whether it tells texts too.
///
/// # Errors
/// `invalid-params`.
pub fn read_export(asked: Asked) -> Result<(ListQuery, bool), Failure> {
    let query = asked.map(|Query(query)| query);
    let query =
        query.map_err(|_rejected| wrong(&format!("{KNOWN}; an export takes `text` too")))?;
    let with_text = query.text;
    Ok((query, with_text))
}

impl ListQuery {
    /// The filter, without its limit. A time may be one before `now`.
    ///
    /// # Errors
    /// `invalid-params`, or `forbidden` when the executions of others are asked for by somebody who
    /// may not see them.
    pub fn filter(&self, caller: &Caller, now: DateTime<Utc>) -> Result<Filter, Failure> {
        let agent = self.agent.clone().map(AgentId::new).transpose();
        Ok(Filter {
            agent: agent.map_err(|error| wrong(&error.to_string()))?,
            caller: named(caller, self.caller.clone())?,
            unfinished: self.unfinished,
            state: word("state", self.state.as_deref(), State::parse)?,
            outcome: word("outcome", self.outcome.as_deref(), Outcome::parse)?,
            code: word("failure", self.failure.as_deref(), Code::parse)?,
            category: word("class", self.class.as_deref(), Category::parse)?,
            trigger: word("trigger", self.trigger.as_deref(), trigger)?,
            schedule: self.schedule.clone(),
            context: self.context.clone().map(ContextId),
            since: time("since", self.since.as_deref(), now)?,
            until: time("until", self.until.as_deref(), now)?,
            before: self.cursor.as_deref().map(place).transpose()?,
            ..Filter::default()
        })
    }
}

/// The text that stands for the last execution of a page. It means nothing to callers.
#[must_use]
pub fn cursor(id: ExecutionId) -> String {
    URL_SAFE_NO_PAD.encode(id.0.as_bytes())
}

fn place(cursor: &str) -> Result<ExecutionId, Failure> {
    let bytes = URL_SAFE_NO_PAD.decode(cursor).ok();
    let id = bytes.and_then(|bytes| Uuid::from_slice(&bytes).ok());
    id.map(ExecutionId).ok_or_else(|| wrong("`cursor` must be the `next` of an earlier page"))
}

/// The owner that is named: only who may see everybody's may name another.
fn named(caller: &Caller, name: Option<String>) -> Result<Option<String>, Failure> {
    let is_own = name.as_ref().is_none_or(|name| *name == caller.name);
    if is_own || caller.scope.allows(Right::Admin, None) {
        return Ok(name);
    }
    Err(Failure::new(Code::Forbidden, "this token shows its own executions only"))
}

fn trigger(word: &str) -> Option<String> {
    TRIGGERS.contains(&word).then(|| word.to_owned())
}

fn word<T>(
    name: &str,
    given: Option<&str>,
    parse: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Failure> {
    let read = |word| parse(word).ok_or_else(|| wrong(&format!("`{name}` is not a known word")));
    given.map(read).transpose()
}

fn time(
    name: &str,
    given: Option<&str>,
    now: DateTime<Utc>,
) -> Result<Option<DateTime<Utc>>, Failure> {
    let read = |text| {
        let time = DateTime::parse_from_rfc3339(text).ok().map(|time| time.to_utc());
        let told = || format!("`{name}` must be a time of RFC 3339, or how long ago, such as 2h");
        // Longer ago than the calendar goes is before all that there is.
        let ago = |span| now.checked_sub_signed(span).unwrap_or(DateTime::UNIX_EPOCH);
        time.or_else(|| span(text).map(ago)).ok_or_else(|| wrong(&told()))
    };
    given.map(read).transpose()
}

/// The most digits of a span of time.
const LONGEST_SPAN: usize = 9;

/// A span of time such as `90s`, `5m`, `2h` or `30d`.
fn span(text: &str) -> Option<TimeDelta> {
    let digits = text.trim_end_matches(|char: char| !char.is_ascii_digit());
    if digits.len() > LONGEST_SPAN {
        return None;
    }
    let scale = match text.get(digits.len()..)? {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        "d" => 86_400,
        _ => return None,
    };
    TimeDelta::try_seconds(i64::from(digits.parse::<u32>().ok()?) * scale)
}

/// A query that cannot be answered.
pub(super) fn wrong(text: &str) -> Failure {
    Failure::new(Code::InvalidParams, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_read_back_and_nothing_else_is_one() {
        let id = ExecutionId::fresh();
        assert_eq!(place(&cursor(id)), Ok(id));
        for strange in ["", "x", "!", &id.to_string(), &format!("{}A", cursor(id))] {
            assert_eq!(place(strange).map_err(|it| it.code), Err(Code::InvalidParams), "{strange}");
        }
    }

    #[test]
    fn a_time_is_given_as_such_or_as_how_long_ago() {
        let now = DateTime::UNIX_EPOCH + TimeDelta::days(40);
        let read = |text| time("since", Some(text), now).map_err(|failure| failure.code);
        for (text, ago) in [("90s", 90), ("5m", 300), ("2h", 7200), ("30d", 2_592_000)] {
            assert_eq!(read(text), Ok(Some(now - TimeDelta::seconds(ago))), "{text}");
        }
        assert_eq!(read("999999999d"), Ok(Some(DateTime::UNIX_EPOCH)));
        assert_eq!(read("1970-01-01T01:00:00+01:00"), Ok(Some(DateTime::UNIX_EPOCH)));
        for strange in ["", "h", "1", "1w", "-1h", "99999999999d", "soon", "4294967295d"] {
            assert_eq!(read(strange), Err(Code::InvalidParams), "{strange}");
        }
    }
}
