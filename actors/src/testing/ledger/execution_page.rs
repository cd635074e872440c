//! Order and filter of the executions of a page.

use crate::model::execution::record::{ExecutionPageQuery, ExecutionRecord};
use crate::model::id::ExecutionId;

/// Returns the sort key of an execution in a list.
pub(super) fn sort_key(record: &ExecutionRecord) -> (i64, ExecutionId) {
    (record.status_changed_at().timestamp_micros(), record.id)
}

/// Returns true if an execution matches the query.
pub(super) fn matches_query(query: &ExecutionPageQuery, record: &ExecutionRecord) -> bool {
    let time = record.status_changed_at();
    record.agent == query.agent
        && query.owner.is_none_or(|owner| record.owner == owner)
        && query.context.as_ref().is_none_or(|context| record.context == *context)
        && query.public_state.is_none_or(|state| record.public_state() == state)
        && query.changed_since.is_none_or(|since| time >= since)
}
