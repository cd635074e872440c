//! Pages of executions in the order of the time of their status.

use algonius_actors::model::execution::record::{ExecutionPage, ExecutionPageQuery};
use chrono::{DateTime, Utc};

use super::listing::RECORD_COLUMNS;
use super::records::read_record;
use crate::engine::row_codec::{Columns, micros};
use crate::engine::sql::{self, ReaderPool, SqlStatement};

/// Reads a page and the number of executions on all pages, both from the same snapshot.
pub(crate) async fn read(
    pool: &ReaderPool,
    query: &ExecutionPageQuery,
) -> sql::Result<ExecutionPage> {
    let [rows, count_rows] = pool.read_snapshot([rows_query(query), count_query(query)]).await?;
    let total: i64 = count_rows.first().map_or(Ok(0), |row| row.column_at(0))?;
    let records = rows.iter().map(|row| read_record(Columns(row))).collect::<sql::Result<_>>()?;
    Ok(ExecutionPage { records, total: u64::try_from(total).unwrap_or_default() })
}

fn rows_query(query: &ExecutionPageQuery) -> SqlStatement {
    let mut statement = sql::statement(format!("SELECT {RECORD_COLUMNS} FROM executions"));
    push_filters(&mut statement, query);
    if let Some((at, id)) = query.after {
        statement.push(" AND (status_at, id) < (").push_bind(micros(at));
        statement.push(", ").push_bind(id.0).push(")");
    }
    statement.push(" ORDER BY status_at DESC, id DESC LIMIT ").push_bind(i64::from(query.limit));
    statement
}

fn count_query(query: &ExecutionPageQuery) -> SqlStatement {
    let mut statement = sql::statement("SELECT count(*) FROM executions");
    push_filters(&mut statement, query);
    statement
}

/// Adds only the requested conditions, so that each of the few possible texts uses its index.
fn push_filters(statement: &mut SqlStatement, query: &ExecutionPageQuery) {
    statement.push(" WHERE agent = ").push_bind(query.agent.as_str().to_owned());
    if let Some(owner) = query.owner {
        statement.push(" AND owner = ").push_bind(owner.0);
    }
    if let Some(context) = &query.context {
        statement.push(" AND context = ").push_bind(context.0.clone());
    }
    if let Some(public_state) = query.public_state {
        statement.push(" AND shown = ").push_bind(public_state.as_str());
    }
    if let Some(since) = query.changed_since {
        statement.push(" AND status_at >= ").push_bind(ceil_micros(since));
    }
}

/// Returns the first whole microsecond that is not before a time.
fn ceil_micros(time: DateTime<Utc>) -> i64 {
    let has_fraction = !time.timestamp_subsec_nanos().is_multiple_of(1000);
    micros(time).saturating_add(i64::from(has_fraction))
}
