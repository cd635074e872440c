//! Overlap policy `cancel_previous`: a later occurrence replaces the runs before it.

use chrono::{DateTime, Utc};

use super::{OccurrenceEffect, OccurrenceMachine, OpenOccurrences};
use crate::model::failure::Failure;
use crate::scheduler::OccurrenceKey;
use crate::scheduler::loaded_schedule::OccurrencePhase;
use crate::scheduler::table::ScheduleTable;
use crate::scheduler::timer_queue::TimerEntry;

/// Reason of a run that is cancelled for a later occurrence.
const REPLACED_REASON: &str = "a later occurrence of its schedule takes its place";

/// Starts to replace the runs before an occurrence.
///
/// A refused occurrence replaces nothing: cancelling the previous run would lose its work without a
/// replacement, for example while the agent is disabled. Therefore the scheduler first checks whether the
/// agent would accept the occurrence.
pub(super) fn request_acceptance_check(
    open_occurrences: &mut OpenOccurrences,
    key: &OccurrenceKey,
) -> Option<OccurrenceEffect> {
    let open_occurrence = open_occurrences
        .occurrence_mut(key)
        .filter(|open_occurrence| !open_occurrence.is_acceptance_check_started)?;
    open_occurrence.is_acceptance_check_started = true;
    Some(OccurrenceEffect::CheckAcceptance(key.clone()))
}

impl OccurrenceMachine {
    /// Cancels the runs before an occurrence, or rejects the occurrence.
    pub(in crate::scheduler) fn handle_acceptance_check(
        &mut self,
        key: &OccurrenceKey,
        refusal: Option<Failure>,
        now: DateTime<Utc>,
        table: &ScheduleTable,
    ) -> Vec<OccurrenceEffect> {
        // Meanwhile the runs may have ended, or a later occurrence may have replaced this one.
        if self.open_occurrences.get(key).is_none_or(|it| it.phase != OccurrencePhase::Waiting) {
            return Vec::new();
        }
        match refusal {
            Some(failure) if failure.is_permanent() => return self.refuse(key, &failure, table),
            // The refusal may end, and until then the runs before the occurrence continue.
            Some(failure) => {
                return self.retry(key, &failure, (now, TimerEntry::RepeatCheck), table);
            }
            None => {}
        }
        let mut effects = Vec::new();
        for busy in self.open_occurrences.busy_keys(&key.schedule) {
            effects.extend(self.cancel(&busy, REPLACED_REASON, now, table));
        }
        effects
    }
}
