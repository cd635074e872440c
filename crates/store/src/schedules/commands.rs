//! Changes of schedules and of their occurrences, and the reads of schedules.

use algonius_actors::model::id::{PrincipalId, ScheduleId};
use algonius_actors::model::schedule::occurrence::{Occurrence, OccurrenceEnd, OccurrenceStatus};
use algonius_actors::model::schedule::{Schedule, TextSealing};
use algonius_actors::ports::schedule_store::{OccurrenceStatusChange, ScheduleEvaluation};
use async_trait::async_trait;
use chrono::{DateTime, Utc};

use super::occurrences::insert;
use crate::engine::read_cache::Invalidation;
use crate::engine::row_codec::{Columns, micros, to_json};
use crate::engine::sql::{self, DatabaseConnection, ReaderPool};
use crate::engine::writer::WriteCommand;

/// Insertion or replacement of schedules.
pub(crate) struct PutSchedules(pub(crate) Vec<Schedule>);

/// Removal of schedules.
pub(crate) struct RemoveSchedules(pub(crate) Vec<ScheduleId>);

/// Record of the evaluations of schedules, with the occurrences that follow.
pub(crate) struct RecordScheduleEvaluations(pub(crate) Vec<ScheduleEvaluation>);

/// Record of the new statuses of pending occurrences.
pub(crate) struct RecordStatusChanges(pub(crate) Vec<OccurrenceStatusChange>);

/// End of the execution of an occurrence.
pub(crate) struct RecordOccurrenceEnd {
    pub(crate) schedule: ScheduleId,
    pub(crate) planned_at: DateTime<Utc>,
    pub(crate) end: OccurrenceEnd,
}

/// Removal of old occurrences.
pub(crate) struct RemoveOccurrences {
    pub(crate) before: DateTime<Utc>,
    pub(crate) limit: u32,
}

const UPSERT_SCHEDULE: &str = "
    INSERT OR REPLACE INTO schedules
        (id, owner, origin, spec, paused, created_at, changed_at, sealed)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

const UPSERT_CURSOR: &str = "INSERT OR REPLACE INTO cursors (schedule, cursor) VALUES ($1, $2)";

const UPDATE_CURSOR: &str = "UPDATE cursors SET cursor = $2 WHERE schedule = $1";

const DELETE_SCHEDULE: [&str; 2] =
    ["DELETE FROM schedules WHERE id = $1", "DELETE FROM cursors WHERE schedule = $1"];

const SELECT_SCHEDULES: &str = "
    SELECT schedules.*, cursors.cursor FROM schedules JOIN cursors ON cursors.schedule = schedules.id
    ORDER BY schedules.id";

const UPDATE_STATUS: &str = "
    UPDATE occurrences SET verdict = $3, reason = $4, execution = $5, fired_at = $6
    WHERE schedule = $1 AND planned_at = $2 AND verdict = 'pending'";

const UPDATE_END: &str = "
    UPDATE occurrences SET outcome = $3, code = $4, recovered = $5, ended_at = $6
    WHERE schedule = $1 AND planned_at = $2";

const DELETE_OLD_OCCURRENCES: &str = "
    DELETE FROM occurrences WHERE (schedule, planned_at) IN (
        SELECT schedule, planned_at FROM occurrences
        WHERE planned_at < $1 AND NOT (verdict = 'pending' OR (verdict = 'fired' AND outcome IS NULL))
        ORDER BY planned_at LIMIT $2)";

#[async_trait]
impl WriteCommand for PutSchedules {
    type WriteOutput = ();

    fn invalidation(&self) -> Invalidation {
        Invalidation::Nothing
    }

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<()> {
        for schedule in &self.0 {
            sql::statement(UPSERT_SCHEDULE)
                .bind(schedule.spec.id.as_str())
                .bind(schedule.owner.0)
                .bind(to_json(&schedule.origin)?)
                .bind(to_json(&schedule.spec)?)
                .bind(schedule.paused)
                .bind(micros(schedule.created_at))
                .bind(micros(schedule.changed_at))
                .bind(sealed_column(&schedule.text_sealing))
                .execute(&mut *connection)
                .await?;
            sql::statement(UPSERT_CURSOR)
                .bind(schedule.spec.id.as_str())
                .bind(micros(schedule.decided_until))
                .execute(&mut *connection)
                .await?;
        }
        Ok(())
    }
}

#[async_trait]
impl WriteCommand for RemoveSchedules {
    type WriteOutput = ();

    fn invalidation(&self) -> Invalidation {
        Invalidation::Nothing
    }

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<()> {
        for (id, text) in self.0.iter().flat_map(|id| DELETE_SCHEDULE.map(|text| (id, text))) {
            sql::statement(text).bind(id.as_str()).execute(&mut *connection).await?;
        }
        Ok(())
    }
}

#[async_trait]
impl WriteCommand for RecordScheduleEvaluations {
    type WriteOutput = Vec<Vec<Occurrence>>;

    fn invalidation(&self) -> Invalidation {
        Invalidation::Nothing
    }

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<Self::WriteOutput> {
        let mut inserted_per_schedule = Vec::with_capacity(self.0.len());
        for evaluation in &self.0 {
            let changed_rows = sql::statement(UPDATE_CURSOR)
                .bind(evaluation.schedule.as_str())
                .bind(micros(evaluation.decided_until))
                .execute(&mut *connection)
                .await?;
            let mut inserted = Vec::new();
            if changed_rows == 1 {
                for occurrence in &evaluation.occurrences {
                    if insert(&mut *connection, occurrence).await? {
                        inserted.push(occurrence.clone());
                    }
                }
            }
            inserted_per_schedule.push(inserted);
        }
        Ok(inserted_per_schedule)
    }
}

#[async_trait]
impl WriteCommand for RecordStatusChanges {
    type WriteOutput = ();

    fn invalidation(&self) -> Invalidation {
        Invalidation::Nothing
    }

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<()> {
        for status_change in &self.0 {
            let fired_at =
                (status_change.status == OccurrenceStatus::Fired).then(|| micros(status_change.at));
            sql::statement(UPDATE_STATUS)
                .bind(status_change.schedule.as_str())
                .bind(micros(status_change.planned_at))
                .bind(status_change.status.as_str())
                .bind(status_change.reason.as_deref())
                .bind(status_change.execution.map(|id| id.0))
                .bind(fired_at)
                .execute(&mut *connection)
                .await?;
        }
        Ok(())
    }
}

#[async_trait]
impl WriteCommand for RecordOccurrenceEnd {
    type WriteOutput = ();

    fn invalidation(&self) -> Invalidation {
        Invalidation::Nothing
    }

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<()> {
        let OccurrenceEnd { outcome, code, had_failed_attempt, at } = self.end;
        sql::statement(UPDATE_END)
            .bind(self.schedule.as_str())
            .bind(micros(self.planned_at))
            .bind(outcome.as_str())
            .bind(code.map(|code| code.as_str()))
            .bind(had_failed_attempt)
            .bind(micros(at))
            .execute(connection)
            .await?;
        Ok(())
    }
}

#[async_trait]
impl WriteCommand for RemoveOccurrences {
    type WriteOutput = u64;

    fn invalidation(&self) -> Invalidation {
        Invalidation::Nothing
    }

    async fn apply(&self, connection: &mut DatabaseConnection) -> sql::Result<u64> {
        let statement = sql::statement(DELETE_OLD_OCCURRENCES)
            .bind(micros(self.before))
            .bind(i64::from(self.limit));
        Ok(statement.execute(connection).await?)
    }
}

/// Reads every schedule.
pub(crate) async fn load_schedules(pool: &ReaderPool) -> sql::Result<Vec<Schedule>> {
    let rows = sql::statement(SELECT_SCHEDULES).mark_long_running().fetch_all(pool).await?;
    rows.iter().map(|row| read_schedule(Columns(row))).collect()
}

fn sealed_column(texts: &TextSealing) -> Option<&[u8]> {
    match texts {
        TextSealing::Unscanned => None,
        TextSealing::Unsealed => Some(&[]),
        TextSealing::Sealed(sealed) => Some(sealed),
    }
}

fn read_schedule(columns: Columns<'_>) -> sql::Result<Schedule> {
    Ok(Schedule {
        spec: columns.json("spec")?,
        text_sealing: match columns.get::<Option<&[u8]>>("sealed")? {
            None => TextSealing::Unscanned,
            Some([]) => TextSealing::Unsealed,
            Some(sealed) => TextSealing::Sealed(sealed.into()),
        },
        owner: PrincipalId(columns.uuid("owner")?),
        origin: columns.json("origin")?,
        paused: columns.get("paused")?,
        decided_until: columns.time("cursor")?,
        created_at: columns.time("created_at")?,
        changed_at: columns.time("changed_at")?,
    })
}
