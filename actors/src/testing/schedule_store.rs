//! In-memory schedule store.

use std::collections::BTreeMap;
use std::sync::Arc;

use async_trait::async_trait;
use chrono::{DateTime, Utc};
use tokio::sync::Mutex;

use super::fault_injection::{FaultInjector, LedgerCallKind};
use crate::model::id::ScheduleId;
use crate::model::schedule::occurrence::{
    Occurrence, OccurrenceEnd, OccurrenceQuery, OccurrenceStatus,
};
use crate::model::schedule::{Schedule, ScheduleSpec};
use crate::ports::ledger::LedgerError;
use crate::ports::schedule_store::{OccurrenceStatusChange, ScheduleEvaluation, ScheduleStore};
use crate::ports::schedule_template::ScheduleTemplateRenderer;

/// Access to the schedules. All accesses of one environment share them.
#[derive(Clone, Default)]
pub struct MemoryScheduleStore {
    rows: Arc<Mutex<ScheduleRows>>,
    fault_injector: Option<Arc<FaultInjector>>,
}

#[derive(Default)]
struct ScheduleRows {
    schedules: BTreeMap<ScheduleId, Schedule>,
    occurrences: BTreeMap<(ScheduleId, DateTime<Utc>), Occurrence>,
}

impl MemoryScheduleStore {
    /// Returns another access to the same schedules, through a gate.
    pub(super) fn with_fault_injector(&self, fault_injector: Arc<FaultInjector>) -> Self {
        Self { rows: Arc::clone(&self.rows), fault_injector: Some(fault_injector) }
    }

    /// Returns all occurrences, by schedule and time.
    pub async fn all_occurrences(&self) -> Vec<Occurrence> {
        self.rows.lock().await.occurrences.values().cloned().collect()
    }

    async fn inject_fault(&self, call: LedgerCallKind) -> Result<(), LedgerError> {
        match &self.fault_injector {
            Some(gate) => gate.inject_fault(call).await,
            None => Ok(()),
        }
    }
}

#[async_trait]
impl ScheduleStore for MemoryScheduleStore {
    async fn schedules(&self) -> Result<Vec<Schedule>, LedgerError> {
        self.inject_fault(LedgerCallKind::Read).await?;
        Ok(self.rows.lock().await.schedules.values().cloned().collect())
    }

    async fn put_schedules(&self, schedules: Vec<Schedule>) -> Result<(), LedgerError> {
        self.inject_fault(LedgerCallKind::Schedule).await?;
        let mut rows = self.rows.lock().await;
        for schedule in schedules {
            rows.schedules.insert(schedule.spec.id.clone(), schedule);
        }
        Ok(())
    }

    async fn remove_schedules(&self, ids: Vec<ScheduleId>) -> Result<(), LedgerError> {
        self.inject_fault(LedgerCallKind::Schedule).await?;
        let mut rows = self.rows.lock().await;
        ids.iter().for_each(|id| _ = rows.schedules.remove(id));
        Ok(())
    }

    async fn record_evaluations(
        &self,
        evaluations: Vec<ScheduleEvaluation>,
    ) -> Result<Vec<Vec<Occurrence>>, LedgerError> {
        self.inject_fault(LedgerCallKind::Schedule).await?;
        let mut rows = self.rows.lock().await;
        let mut stored_occurrences = Vec::new();
        for ScheduleEvaluation { schedule, decided_until, occurrences } in evaluations {
            let mut new_occurrences = Vec::new();
            if let Some(row) = rows.schedules.get_mut(&schedule) {
                row.decided_until = decided_until;
                for occurrence in occurrences {
                    let key = (schedule.clone(), occurrence.planned_at);
                    if let std::collections::btree_map::Entry::Vacant(vacant) =
                        rows.occurrences.entry(key)
                    {
                        new_occurrences.push(vacant.insert(occurrence).clone());
                    }
                }
            }
            stored_occurrences.push(new_occurrences);
        }
        Ok(stored_occurrences)
    }

    async fn record_status_changes(
        &self,
        status_changes: Vec<OccurrenceStatusChange>,
    ) -> Result<(), LedgerError> {
        self.inject_fault(LedgerCallKind::Schedule).await?;
        let mut rows = self.rows.lock().await;
        for status_change in status_changes {
            let row = rows.occurrences.get_mut(&(status_change.schedule, status_change.planned_at));
            if let Some(row) = row.filter(|row| row.status == OccurrenceStatus::Pending) {
                row.status = status_change.status;
                row.reason = status_change.reason;
                row.execution = status_change.execution;
                row.fired_at = status_change.execution.map(|_| status_change.at);
            }
        }
        Ok(())
    }

    async fn record_end(
        &self,
        schedule: &ScheduleId,
        planned: DateTime<Utc>,
        ending: OccurrenceEnd,
    ) -> Result<(), LedgerError> {
        self.inject_fault(LedgerCallKind::Schedule).await?;
        let mut rows = self.rows.lock().await;
        if let Some(row) = rows.occurrences.get_mut(&(schedule.clone(), planned)) {
            row.end = Some(ending);
        }
        Ok(())
    }

    async fn open_occurrences(&self) -> Result<Vec<Occurrence>, LedgerError> {
        self.inject_fault(LedgerCallKind::Read).await?;
        let rows = self.rows.lock().await;
        Ok(rows.occurrences.values().filter(|row| row.is_open()).cloned().collect())
    }

    async fn occurrences(&self, query: OccurrenceQuery) -> Result<Vec<Occurrence>, LedgerError> {
        self.inject_fault(LedgerCallKind::Read).await?;
        let rows = self.rows.lock().await;
        let fits = |row: &&Occurrence| {
            query.schedule.as_ref().is_none_or(|id| row.schedule == *id)
                && query.owner.is_none_or(|owner| row.owner == owner)
                && query.agents.as_ref().is_none_or(|agents| agents.contains(&row.agent))
                && query.status.is_none_or(|status| row.status == status)
                && query.since.is_none_or(|since| row.planned_at >= since)
                && query.before.as_ref().is_none_or(|before| sort_key(row) < *before)
        };
        let mut matching: Vec<_> = rows.occurrences.values().filter(fits).cloned().collect();
        matching.sort_by_key(|row| std::cmp::Reverse(sort_key(row)));
        matching.truncate(query.limit as usize);
        Ok(matching)
    }

    async fn occurrences_since(
        &self,
        schedule: &ScheduleId,
        since: DateTime<Utc>,
    ) -> Result<Vec<Occurrence>, LedgerError> {
        self.inject_fault(LedgerCallKind::Read).await?;
        let rows = self.rows.lock().await;
        let fits = |row: &&Occurrence| row.schedule == *schedule && row.planned_at >= since;
        Ok(rows.occurrences.values().filter(fits).cloned().collect())
    }

    async fn remove_occurrences(&self, before: DateTime<Utc>, _: u32) -> Result<u64, LedgerError> {
        self.inject_fault(LedgerCallKind::Schedule).await?;
        let mut rows = self.rows.lock().await;
        rows.occurrences.retain(|(_, planned), row| *planned >= before || row.is_open());
        Ok(0)
    }
}

fn sort_key(row: &Occurrence) -> (DateTime<Utc>, ScheduleId) {
    (row.planned_at, row.schedule.clone())
}

/// Renderer that returns the input of a schedule unchanged.
pub(super) struct LiteralRenderer;

impl ScheduleTemplateRenderer for LiteralRenderer {
    fn render(&self, spec: &ScheduleSpec, _: DateTime<Utc>) -> Result<String, String> {
        Ok(spec.input.clone())
    }
}
