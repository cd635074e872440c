//! Pages of executions in the order of the time of their status.

use algonius_actors::model::execution::record::{ExecutionPage, ExecutionPageQuery};
use chrono::{DateTime, Utc};

use super::listing::RECORD_COLUMNS;
use super::records::record;
use crate::engine::row_codec::{Columns, micros};
use crate::engine::sql::{self, Query, ReaderPool};

/// Reads a page and the number of executions on all pages, both from the same snapshot.
pub(crate) async fn read(
    pool: &ReaderPool,
    query: &ExecutionPageQuery,
) -> sql::Result<ExecutionPage> {
    let [rows, count] = pool.read_snapshot([rows(query), count(query)]).await?;
    let total: i64 = count.first().map_or(Ok(0), |row| row.at(0))?;
    let records = rows.iter().map(|row| record(Columns(row))).collect::<sql::Result<_>>()?;
    Ok(ExecutionPage { records, total: u64::try_from(total).unwrap_or_default() })
}

fn rows(query: &ExecutionPageQuery) -> Query {
    let mut text = sql::query(format!("SELECT {RECORD_COLUMNS} FROM executions"));
    push_filters(&mut text, query);
    if let Some((at, id)) = query.after {
        text.push(" AND (status_at, id) < (").push_bind(micros(at));
        text.push(", ").push_bind(id.0).push(")");
    }
    text.push(" ORDER BY status_at DESC, id DESC LIMIT ").push_bind(i64::from(query.limit));
    text
}

fn count(query: &ExecutionPageQuery) -> Query {
    let mut text = sql::query("SELECT count(*) FROM executions");
    push_filters(&mut text, query);
    text
}

/// Adds only the requested conditions, so that each of the few possible texts uses its index.
fn push_filters(text: &mut Query, query: &ExecutionPageQuery) {
    text.push(" WHERE agent = ").push_bind(query.agent.as_str().to_owned());
    if let Some(owner) = query.owner {
        text.push(" AND owner = ").push_bind(owner.0);
    }
    if let Some(context) = &query.context {
        text.push(" AND context = ").push_bind(context.0.clone());
    }
    if let Some(public_state) = query.public_state {
        text.push(" AND shown = ").push_bind(public_state.as_str());
    }
    if let Some(since) = query.changed_since {
        text.push(" AND status_at >= ").push_bind(ceil_micros(since));
    }
}

/// Returns the first whole microsecond that is not before a time.
fn ceil_micros(time: DateTime<Utc>) -> i64 {
    let has_fraction = !time.timestamp_subsec_nanos().is_multiple_of(1000);
    micros(time).saturating_add(i64::from(has_fraction))
}
