//! Changes to the schedules: stored first, then applied.

mod apply;

use std::collections::BTreeSet;

use chrono::{DateTime, SubsecRound, Utc};

use super::ChangeReplyPort;
use super::evaluate::new_occurrence;
use super::interned_schedule::InternedSchedule;
use super::table::ScheduleTable;
use crate::model::code::Code;
use crate::model::failure::Failure;
use crate::model::id::{PrincipalId, ScheduleId};
use crate::model::schedule::occurrence::{Occurrence, OccurrenceCause};
use crate::model::schedule::{Schedule, ScheduleOrigin, ScheduleSpec, TextSealing};
use crate::ports::ledger::LedgerError;
use crate::ports::schedule_store::{ScheduleEvaluation, ScheduleStore};
use crate::ports::schedule_template::ScheduleTemplateRenderer;
use crate::services::Services;

/// Authorized change to the schedules.
#[derive(Debug, Clone)]
pub enum ScheduleChange {
    /// Creates a schedule, or changes one if `is_new` is false.
    Put {
        /// Specification of the schedule.
        spec: Box<ScheduleSpec>,
        /// Owner of a new schedule.
        owner: PrincipalId,
        /// True if the id must be new.
        is_new: bool,
    },
    /// Removes a schedule.
    Remove(ScheduleId),
    /// Pauses a schedule, or resumes it.
    SetPaused(ScheduleId, bool),
    /// Triggers an occurrence now, regardless of other ones.
    RunNow(ScheduleId),
    /// Applies the schedules of the configuration, each with its owner.
    Configure(Vec<(ScheduleSpec, PrincipalId)>),
}

/// Change that waits for the writer.
pub(super) struct PendingChange {
    pub(super) change: ScheduleChange,
    pub(super) reply: ChangeReplyPort,
}

/// Change that was stored, or whose write failed.
pub struct ChangeWriteResult {
    pub(super) change: PlannedChange,
    pub(super) result: Result<(), Failure>,
    pub(super) reply: ChangeReplyPort,
}

/// Change in its stored form.
pub(super) struct PlannedChange {
    pub(super) update: ScheduleStoreUpdate,
    /// Schedule of which the caller receives the new state.
    pub(super) schedule_in_reply: Option<ScheduleId>,
}

/// Data to store.
pub(super) enum ScheduleStoreUpdate {
    /// Schedules to put and to remove.
    Schedules { upserts: Vec<Schedule>, removals: Vec<ScheduleId> },
    /// Occurrence outside of the recurrence.
    TriggeredOccurrence(Box<ScheduleEvaluation>),
}

/// Decision about changes, on the present schedules.
pub(super) struct ChangePlanner<'s> {
    pub(super) table: &'s ScheduleTable,
    pub(super) renderer: &'s dyn ScheduleTemplateRenderer,
    pub(super) now: DateTime<Utc>,
}

impl ChangePlanner<'_> {
    /// Returns the stored form of a change, or its rejection.
    pub(super) fn plan(&self, change: ScheduleChange) -> Result<PlannedChange, Failure> {
        let now = self.now;
        Ok(match change {
            ScheduleChange::Put { spec, owner, is_new } => {
                let id = spec.id.clone();
                // Expanded once for the check: a wrong template is an error of the caller now, and not of a night
                // later.
                self.renderer.render(&spec, now).map_err(|cause| {
                    Failure::new(Code::InvalidParams, format!("`input` cannot be used: {cause}"))
                })?;
                plan_put(self.build_schedule(*spec, owner, is_new)?, id)
            }
            ScheduleChange::Remove(id) => {
                self.find_changeable_schedule(&id)?;
                let update =
                    ScheduleStoreUpdate::Schedules { upserts: Vec::new(), removals: vec![id] };
                PlannedChange { update, schedule_in_reply: None }
            }
            ScheduleChange::SetPaused(id, paused) => {
                let schedule = self.find_schedule(&id)?.to_schedule();
                // Planned times of the pause are not caught up.
                let decided_until =
                    if schedule.paused && !paused { now } else { schedule.decided_until };
                plan_put(Schedule { paused, decided_until, changed_at: now, ..schedule }, id)
            }
            ScheduleChange::RunNow(id) => self.plan_trigger(id)?,
            ScheduleChange::Configure(configured) => {
                let configured_ids = configured.iter().map(|(spec, _)| spec.id.clone()).collect();
                let removals = schedules_to_remove(
                    self.table.iter().map(|entry| &entry.schedule),
                    &configured_ids,
                );
                let find_existing =
                    |id: &ScheduleId| self.table.get(id).map(|entry| &entry.schedule);
                let upserts = schedules_to_put(find_existing, configured, now);
                PlannedChange {
                    update: ScheduleStoreUpdate::Schedules { upserts, removals },
                    schedule_in_reply: None,
                }
            }
        })
    }

    /// Returns an occurrence outside of the recurrence, planned for now. `decided_until` stays.
    fn plan_trigger(&self, id: ScheduleId) -> Result<PlannedChange, Failure> {
        let existing = self.find_schedule(&id)?;
        let planned = self.now.trunc_subsecs(6); // The store keeps microseconds, and the planned time is the key.
        let base = new_occurrence(existing, planned, planned, self.now);
        let occurrence = Occurrence { cause: OccurrenceCause::Manual, ..base };
        let (schedule, decided_until) = (id.clone(), existing.decided_until());
        let evaluation =
            ScheduleEvaluation { schedule, decided_until, occurrences: vec![occurrence] };
        Ok(PlannedChange {
            update: ScheduleStoreUpdate::TriggeredOccurrence(Box::new(evaluation)),
            schedule_in_reply: Some(id),
        })
    }

    /// Returns the row of a schedule that a caller creates or changes.
    fn build_schedule(
        &self,
        spec: ScheduleSpec,
        owner: PrincipalId,
        is_new: bool,
    ) -> Result<Schedule, Failure> {
        let mut other_schedules = self.table.iter().filter(|entry| entry.schedule.id != spec.id);
        if other_schedules.any(|entry| entry.schedule.name() == spec.name) {
            let message = format!("another schedule is named `{}`", spec.name);
            return Err(Failure::new(Code::ScheduleExists, message));
        }
        match (self.table.contains(&spec.id), is_new) {
            (false, true) => Ok(new_schedule(spec, owner, ScheduleOrigin::Api, self.now)),
            (true, true) => {
                let message = format!("schedule `{}` already exists", spec.id);
                Err(Failure::new(Code::ScheduleExists, message))
            }
            (_, false) => {
                let existing = self.find_changeable_schedule(&spec.id)?.to_schedule();
                let owner = existing.owner;
                Ok(replace_spec(existing, spec, owner, self.now))
            }
        }
    }

    fn find_schedule(&self, id: &ScheduleId) -> Result<&InternedSchedule, Failure> {
        let unknown_schedule =
            || Failure::new(Code::ScheduleUnknown, format!("there is no schedule `{id}`"));
        self.table.get(id).map(|entry| &entry.schedule).ok_or_else(unknown_schedule)
    }

    /// Returns a schedule that callers may change.
    fn find_changeable_schedule(&self, id: &ScheduleId) -> Result<&InternedSchedule, Failure> {
        let schedule = self.find_schedule(id)?;
        match schedule.shared_fields().origin {
            ScheduleOrigin::Api => Ok(schedule),
            ScheduleOrigin::Configuration => {
                let message = format!("the configuration defines schedule `{id}`");
                Err(Failure::new(Code::ScheduleFixed, message))
            }
        }
    }
}

impl PlannedChange {
    /// Stores the change.
    pub(super) async fn write(
        &self,
        services: &Services,
        store: &dyn ScheduleStore,
    ) -> Result<(), Failure> {
        self.update.write(services, store).await.map_err(|error| storage_failure(&error))
    }
}

impl ScheduleStoreUpdate {
    async fn write(
        &self,
        services: &Services,
        store: &dyn ScheduleStore,
    ) -> Result<(), LedgerError> {
        match self {
            Self::Schedules { upserts, removals } => {
                // Put before removed: a crash in between leaves a schedule too many, not one too few.
                store.put_schedules(services.seal_schedules(upserts)).await?;
                store.remove_schedules(removals.clone()).await
            }
            Self::TriggeredOccurrence(evaluation) => {
                store.record_evaluations(vec![(**evaluation).clone()]).await.map(drop)
            }
        }
    }
}

/// Returns the change that stores one schedule.
fn plan_put(schedule: Schedule, id: ScheduleId) -> PlannedChange {
    let update = ScheduleStoreUpdate::Schedules { upserts: vec![schedule], removals: Vec::new() };
    PlannedChange { update, schedule_in_reply: Some(id) }
}

fn storage_failure(error: &LedgerError) -> Failure {
    tracing::error!(%error, "failed to store a change of schedules");
    Failure::new(Code::LedgerUnavailable, "the change could not be stored")
}

/// Returns the schedules to remove if the configuration contains these.
pub(super) fn schedules_to_remove<'s>(
    existing: impl Iterator<Item = &'s InternedSchedule>,
    configured: &BTreeSet<ScheduleId>,
) -> Vec<ScheduleId> {
    let is_removed = |schedule: &&InternedSchedule| {
        schedule.shared_fields().origin == ScheduleOrigin::Configuration
            && !configured.contains(&schedule.id)
    };
    existing.filter(is_removed).map(|schedule| schedule.id.clone()).collect()
}

/// Returns the schedules to put so that they match the configuration.
pub(super) fn schedules_to_put<'s>(
    find_existing: impl Fn(&ScheduleId) -> Option<&'s InternedSchedule>,
    configured: Vec<(ScheduleSpec, PrincipalId)>,
    now: DateTime<Utc>,
) -> Vec<Schedule> {
    let upsert = |(spec, owner): (ScheduleSpec, PrincipalId)| match find_existing(&spec.id) {
        None => Some(new_schedule(spec, owner, ScheduleOrigin::Configuration, now)),
        Some(existing) => {
            let (existing, origin) = (existing.to_schedule(), ScheduleOrigin::Configuration);
            let is_same = is_same_schedule(&existing, &spec, owner);
            let text_sealing = TextSealing::Unsealed; // The configuration has the raw texts.
            (!is_same).then(|| Schedule {
                origin,
                text_sealing,
                ..replace_spec(existing, spec, owner, now)
            })
        }
    };
    configured.into_iter().filter_map(upsert).collect()
}

fn is_same_schedule(existing: &Schedule, spec: &ScheduleSpec, owner: PrincipalId) -> bool {
    existing.origin == ScheduleOrigin::Configuration
        && existing.spec == *spec
        && existing.owner == owner
        && !existing.has_sealed_texts()
}

const fn new_schedule(
    spec: ScheduleSpec,
    owner: PrincipalId,
    origin: ScheduleOrigin,
    now: DateTime<Utc>,
) -> Schedule {
    Schedule {
        spec,
        text_sealing: TextSealing::Unsealed,
        owner,
        origin,
        paused: false,
        decided_until: now,
        created_at: now,
        changed_at: now,
    }
}

/// Returns a schedule with a new specification. Its new recurrence starts now; undecided times of the old one are
/// dropped.
fn replace_spec(
    existing: Schedule,
    spec: ScheduleSpec,
    owner: PrincipalId,
    now: DateTime<Utc>,
) -> Schedule {
    let is_same_rule =
        existing.spec.recurrence == spec.recurrence && existing.spec.enabled == spec.enabled;
    // Times that the old recurrence had and nobody decided would otherwise be caught up by the new one.
    let decided_until = if is_same_rule { existing.decided_until } else { now };
    let texts = |spec: &ScheduleSpec| (spec.name.clone(), spec.input.clone(), spec.params.clone());
    // Sealed texts that no key opens stay until a caller sends others.
    let is_unchanged = texts(&existing.spec) == texts(&spec);
    let text_sealing =
        if is_unchanged { existing.text_sealing.clone() } else { TextSealing::Unsealed };
    Schedule { spec, text_sealing, owner, decided_until, changed_at: now, ..existing }
}
