//! SQL of a list: newest first, from an index in that order, so that SQLite never sorts.

use algonius_actors::model::code::Code;
use algonius_actors::model::execution::ExecutionState;
use algonius_actors::model::execution::record::{ExecutionFilter, TriggerFilter};

use crate::engine::row_codec::micros;
use crate::engine::sql::{self, SqlStatement};

/// Columns of a record, without the columns that the table computes for its indexes.
pub(crate) const RECORD_COLUMNS: &str = "
    id, agent, owner, message, context, origin, trace, access, state, outcome, failure, turn, attempt,
    fence, params, overrides, replayable, asks, answered, interruption, parked, spent, accepted_at, started_at, changed_at,
    ended_at, pid, exit_code, last_event";

/// SQL form of [`ExecutionRecord::deferral`](algonius_actors::model::execution::record::ExecutionRecord::deferral).
const IS_DEFERRED: &str = "(outcome IS NULL AND +state = 'failed' \
    AND COALESCE(json_extract(parked, '$.attempt') = attempt, 0))";

/// Builds the query for matching executions, newest first. The text contains only the requested conditions, so that
/// each of the few possible texts uses its index. A `+` prevents an index lookup for a column: the result of an
/// index over several values would have to be sorted.
pub(crate) fn list_query(filter: ExecutionFilter) -> SqlStatement {
    let mut query = sql::statement(format!("SELECT {RECORD_COLUMNS} FROM executions WHERE 1 = 1"));
    push_subject_filters(&mut query, &filter);
    push_state_filters(&mut query, &filter);
    push_time_filters(&mut query, &filter);
    query.push(" ORDER BY id DESC");
    if filter.limit > 0 {
        query.push(" LIMIT ").push_bind(i64::from(filter.limit));
    }
    query
}

fn push_subject_filters(query: &mut SqlStatement, filter: &ExecutionFilter) {
    if let Some(agent) = &filter.agent {
        query.push(" AND agent = ").push_bind(agent.as_str().to_owned());
    }
    if let Some(part) = &filter.id_fragment {
        // `hex` writes an id without hyphens and in upper case.
        let digits = part.as_str().to_ascii_uppercase();
        query.push(" AND (hex(id) LIKE ").push_bind(format!("{digits}%"));
        query.push(" OR hex(id) LIKE ").push_bind(format!("%{digits}")).push(")");
    }
    if let Some(agents) = &filter.agents {
        let agents = agents.iter().map(|agent| agent.as_str().to_owned());
        push_in_list(query, "agent", agents);
    }
    if let Some(owner) = filter.owner {
        query.push(" AND owner = ").push_bind(owner.0);
    }
    if let Some(caller) = &filter.owner_name {
        query.push(" AND owner = (SELECT id FROM principals WHERE name = ");
        query.push_bind(caller.clone()).push(")");
    }
    if let Some(context) = &filter.context {
        query.push(" AND context = ").push_bind(context.0.clone());
    }
    if let Some(schedule) = &filter.schedule {
        query.push(" AND schedule = ").push_bind(schedule.clone());
    }
    match &filter.trigger {
        Some(TriggerFilter::Kind(kind)) => {
            query.push(" AND made_by = ").push_bind(kind.clone());
        }
        Some(TriggerFilter::HopsOf(run)) => {
            query.push(" AND parent = ").push_bind(run.to_string());
        }
        None => {}
    }
}

fn push_state_filters(query: &mut SqlStatement, filter: &ExecutionFilter) {
    if filter.unfinished_only {
        query.push(" AND outcome IS NULL");
    }
    match filter.state {
        // A deferred execution is recorded as failed and counts as waiting. A waiting execution has not ended, and
        // few executions have not.
        Some(ExecutionState::Waiting) => {
            query
                .push(" AND outcome IS NULL AND (+state = 'waiting' OR ")
                .push(IS_DEFERRED)
                .push(")");
        }
        Some(ExecutionState::Failed) => {
            query.push(" AND told = 'failed' AND NOT ").push(IS_DEFERRED);
        }
        Some(state) => _ = query.push(" AND told = ").push_bind(state.as_str()),
        None => {}
    }
    if let Some(outcome) = filter.outcome {
        let word = outcome.state().as_str();
        query.push(" AND outcome IS NOT NULL AND told = ").push_bind(word);
    }
    if let Some(code) = filter.code {
        query.push(" AND failure_code = ").push_bind(code.as_str());
    }
    if let Some(category) = filter.category {
        let codes = Code::ALL.iter().filter(|code| code.category() == category);
        push_in_list(query, "failure_code", codes.map(|code| code.as_str().to_owned()));
    }
}

fn push_time_filters(query: &mut SqlStatement, filter: &ExecutionFilter) {
    if let Some(since) = filter.since {
        query.push(" AND accepted_at >= ").push_bind(micros(since));
    }
    if let Some(until) = filter.until {
        query.push(" AND accepted_at < ").push_bind(micros(until));
    }
    if let Some(before) = filter.before_id {
        query.push(" AND id < ").push_bind(before.0);
    }
}

fn push_in_list(query: &mut SqlStatement, column: &str, values: impl IntoIterator<Item = String>) {
    query.push(" AND +").push(column).push(" IN (");
    query.push_list(values).push(")");
}
