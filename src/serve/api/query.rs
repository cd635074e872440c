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
use chrono::{DateTime, Utc};
use serde::Deserialize;
use uuid::Uuid;

/// What may be asked for.
const KNOWN: &str = "the query takes `agent`, `state`, `outcome`, `failure`, `class`, `caller`, \
    `trigger`, `schedule`, `context`, `since`, `until`, `unfinished`, `limit` and `cursor`";

/// What makes executions.
const TRIGGERS: [&str; 2] = ["api", "schedule"];

/// Which executions to list.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ListQuery {
    agent: Option<String>,
    state: Option<String>,
    outcome: Option<String>,
    failure: Option<String>,
    class: Option<String>,
    caller: Option<String>,
    trigger: Option<String>,
    schedule: Option<String>,
    context: Option<String>,
    since: Option<String>,
    until: Option<String>,
    #[serde(default)]
    unfinished: bool,
    /// At most so many.
    pub limit: Option<u32>,
    cursor: Option<String>,
}

/// What was asked for, as it came.
pub type Asked = Result<Query<ListQuery>, QueryRejection>;

/// The query, if it is one.
///
/// # Errors
/// `invalid-params`.
pub fn read(asked: Asked) -> Result<ListQuery, Failure> {
    asked.map(|Query(query)| query).map_err(|_rejected| wrong(KNOWN))
}

impl ListQuery {
    /// The filter, without its limit.
    ///
    /// # Errors
    /// `invalid-params`, or `forbidden` when the executions of others are asked for by somebody who
    /// may not see them.
    pub fn filter(&self, caller: &Caller) -> Result<Filter, Failure> {
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
            since: time("since", self.since.as_deref())?,
            until: time("until", self.until.as_deref())?,
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

fn time(name: &str, given: Option<&str>) -> Result<Option<DateTime<Utc>>, Failure> {
    let read = |text| {
        let time = DateTime::parse_from_rfc3339(text).map(|time| time.to_utc());
        time.map_err(|_malformed| wrong(&format!("`{name}` must be a time of RFC 3339")))
    };
    given.map(read).transpose()
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
}
