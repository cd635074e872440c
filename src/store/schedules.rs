//! Schedules, and the account of their times.

use algonius_actors::model::id::PrincipalId;
use algonius_actors::model::occurrence::{Ending, Occurrence, Verdict};
use algonius_actors::model::schedule::{Schedule, ScheduleId};
use algonius_actors::ports::timebook::{Advance, Settled};
use async_trait::async_trait;
use chrono::{DateTime, Utc};
use sqlx::query_builder::Separated;
use sqlx::{QueryBuilder, Sqlite, SqliteConnection, SqlitePool};

use super::column::{Columns, json, micros};
use super::occurrences::insert;
use super::writer::Change;

/// Schedules to be made or replaced.
pub(super) struct Put(pub(super) Vec<Schedule>);

/// Schedules to be removed.
pub(super) struct Remove(pub(super) Vec<ScheduleId>);

/// Decisions to be noted.
pub(super) struct Advances(pub(super) Vec<Advance>);

/// What became of pending occurrences.
pub(super) struct Settle(pub(super) Vec<Settled>);

/// How the execution of an occurrence ended.
pub(super) struct End {
    pub(super) schedule: ScheduleId,
    pub(super) planned: DateTime<Utc>,
    pub(super) ending: Ending,
}

/// What is long over.
pub(super) struct Forget {
    pub(super) before: DateTime<Utc>,
    pub(super) limit: u32,
}

const PUT: &str = "
    INSERT OR REPLACE INTO schedules
        (id, owner, origin, spec, paused, cursor, created_at, changed_at) ";

/// Schedules of one statement, at most: each way to the database and back costs more than a row.
const ROWS: usize = 500;

const SETTLE: &str = "
    UPDATE occurrences SET verdict = $3, reason = $4, execution = $5, fired_at = $6
    WHERE schedule = $1 AND planned_at = $2 AND verdict = 'pending'";

const END: &str = "
    UPDATE occurrences SET outcome = $3, code = $4, recovered = $5, ended_at = $6
    WHERE schedule = $1 AND planned_at = $2";

const FORGET: &str = "
    DELETE FROM occurrences WHERE (schedule, planned_at) IN (
        SELECT schedule, planned_at FROM occurrences
        WHERE planned_at < $1 AND NOT (verdict = 'pending' OR (verdict = 'fired' AND outcome IS NULL))
        ORDER BY planned_at LIMIT $2)";

#[async_trait]
impl Change for Put {
    type Answer = ();

    async fn make(&self, connection: &mut SqliteConnection) -> sqlx::Result<()> {
        for schedules in self.0.chunks(ROWS) {
            let mut text = QueryBuilder::new(PUT);
            text.push("VALUES ");
            for (index, schedule) in schedules.iter().enumerate() {
                let begin = if index == 0 { "(" } else { "), (" };
                bind(text.separated(", ").push_unseparated(begin), schedule)?;
            }
            text.push(")")
                .build()
                .persistent(schedules.len() == 1)
                .execute(&mut *connection)
                .await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Change for Remove {
    type Answer = ();

    async fn make(&self, connection: &mut SqliteConnection) -> sqlx::Result<()> {
        for id in &self.0 {
            let query = sqlx::query("DELETE FROM schedules WHERE id = $1").bind(id.as_str());
            query.execute(&mut *connection).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Change for Advances {
    type Answer = Vec<Vec<Occurrence>>;

    async fn make(&self, connection: &mut SqliteConnection) -> sqlx::Result<Self::Answer> {
        let mut all = Vec::with_capacity(self.0.len());
        for advance in &self.0 {
            let moved = sqlx::query("UPDATE schedules SET cursor = $2 WHERE id = $1")
                .bind(advance.schedule.as_str())
                .bind(micros(advance.cursor))
                .execute(&mut *connection)
                .await?;
            let mut fresh = Vec::new();
            if moved.rows_affected() == 1 {
                for occurrence in &advance.occurrences {
                    if insert(&mut *connection, occurrence).await? {
                        fresh.push(occurrence.clone());
                    }
                }
            }
            all.push(fresh);
        }
        Ok(all)
    }
}

#[async_trait]
impl Change for Settle {
    type Answer = ();

    async fn make(&self, connection: &mut SqliteConnection) -> sqlx::Result<()> {
        for settled in &self.0 {
            let fired_at = (settled.verdict == Verdict::Fired).then(|| micros(settled.at));
            sqlx::query(SETTLE)
                .bind(settled.schedule.as_str())
                .bind(micros(settled.planned))
                .bind(settled.verdict.as_str())
                .bind(settled.reason.as_deref())
                .bind(settled.execution.map(|id| id.0))
                .bind(fired_at)
                .execute(&mut *connection)
                .await?;
        }
        Ok(())
    }
}

#[async_trait]
impl Change for End {
    type Answer = ();

    async fn make(&self, connection: &mut SqliteConnection) -> sqlx::Result<()> {
        let Ending { outcome, code, recovered, at } = self.ending;
        sqlx::query(END)
            .bind(self.schedule.as_str())
            .bind(micros(self.planned))
            .bind(outcome.as_str())
            .bind(code.map(|code| code.as_str()))
            .bind(recovered)
            .bind(micros(at))
            .execute(connection)
            .await?;
        Ok(())
    }
}

#[async_trait]
impl Change for Forget {
    type Answer = u64;

    async fn make(&self, connection: &mut SqliteConnection) -> sqlx::Result<u64> {
        let query = sqlx::query(FORGET).bind(micros(self.before)).bind(i64::from(self.limit));
        Ok(query.execute(connection).await?.rows_affected())
    }
}

fn bind(row: &mut Separated<'_, Sqlite, &'static str>, schedule: &Schedule) -> sqlx::Result<()> {
    row.push_bind(schedule.spec.id.as_str().to_owned())
        .push_bind(schedule.owner.0)
        .push_bind(json(&schedule.origin)?)
        .push_bind(json(&schedule.spec)?)
        .push_bind(schedule.paused)
        .push_bind(micros(schedule.cursor))
        .push_bind(micros(schedule.created_at))
        .push_bind(micros(schedule.changed_at));
    Ok(())
}

/// Reads every schedule.
pub(super) async fn read(pool: &SqlitePool) -> sqlx::Result<Vec<Schedule>> {
    let rows = sqlx::query("SELECT * FROM schedules ORDER BY id").fetch_all(pool).await?;
    rows.iter().map(|row| schedule(Columns(row))).collect()
}

fn schedule(columns: Columns<'_>) -> sqlx::Result<Schedule> {
    Ok(Schedule {
        spec: columns.json("spec")?,
        owner: PrincipalId(columns.uuid("owner")?),
        origin: columns.json("origin")?,
        paused: columns.plain("paused")?,
        cursor: columns.time("cursor")?,
        created_at: columns.time("created_at")?,
        changed_at: columns.time("changed_at")?,
    })
}
