//! Evaluation of due schedules: the decisions about their planned times.

use chrono::{DateTime, TimeDelta, Utc};

use super::interned_schedule::InternedSchedule;
use super::loaded_schedule::{LoadedSchedule, OpenOccurrenceCounts};
use crate::decide::schedule::due::{
    DueEvaluation, DueRule, OverlapDecision, UnsubmittedRange, decide_overlap, due_time,
    evaluate_schedule,
};
use crate::model::schedule::occurrence::{Occurrence, OccurrenceCause, OccurrenceStatus};
use crate::model::schedule::{Schedule, ScheduleSpec};
use crate::ports::schedule_store::ScheduleEvaluation;

impl LoadedSchedule {
    /// Evaluates the schedule, and sets its next due time. Returns the decisions to store, if there are any.
    pub(super) fn evaluate(
        &mut self,
        open_counts: OpenOccurrenceCounts,
        now: DateTime<Utc>,
    ) -> Option<ScheduleEvaluation> {
        let schedule = &mut self.schedule;
        let evaluation = evaluate_schedule(schedule.due_rule(), schedule.decided_until(), now);
        self.next_evaluation = evaluation.next_evaluation_at;
        if evaluation.to_submit.is_empty() && evaluation.unsubmitted_ranges.is_empty() {
            // A change that passes no planned time is not worth a write.
            schedule.set_decided_until(evaluation.decided_until);
            return None;
        }
        // `decided_until` in memory moves once the decisions are stored: after a failed write they are made again.
        let (decided_until, occurrences) =
            (evaluation.decided_until, build_occurrences(schedule, evaluation, open_counts, now));
        Some(ScheduleEvaluation { schedule: schedule.id.clone(), decided_until, occurrences })
    }
}

/// Returns the decisions of an evaluation in their stored form.
fn build_occurrences(
    schedule: &InternedSchedule,
    evaluation: DueEvaluation,
    open_counts: OpenOccurrenceCounts,
    now: DateTime<Utc>,
) -> Vec<Occurrence> {
    let spec = &schedule.shared_fields().spec;
    let DueRule { id, jitter, .. } = schedule.due_rule();
    let unsubmitted_occurrences =
        evaluation.unsubmitted_ranges.into_iter().map(|unsubmitted_range| {
            let UnsubmittedRange { first, planned_time_count: time_count, status, .. } =
                unsubmitted_range;
            let reason = Some(unsubmitted_reason(&unsubmitted_range));
            let base = new_occurrence(schedule, first, due_time(id, jitter, first), now);
            Occurrence {
                status,
                planned_time_count: time_count,
                reason,
                cause: OccurrenceCause::CatchUp,
                ..base
            }
        });
    let mut occurrences: Vec<_> = unsubmitted_occurrences.collect();
    // Each decision counts for the next one: several planned times may be due together.
    let OpenOccurrenceCounts { mut busy, mut waiting } = open_counts;
    for (planned, due, cause) in evaluation.to_submit {
        let (status, reason) = match decide_overlap(spec.overlap, busy, waiting) {
            OverlapDecision::Fire => {
                busy += 1;
                (OccurrenceStatus::Pending, None)
            }
            OverlapDecision::Wait | OverlapDecision::Replace => {
                waiting += 1;
                (OccurrenceStatus::Pending, None)
            }
            OverlapDecision::Skip(reason) => (OccurrenceStatus::Skipped, Some(reason.to_owned())),
        };
        let base = new_occurrence(schedule, planned, due, now);
        occurrences.push(Occurrence { cause, status, reason, ..base });
    }
    occurrences
}

/// Returns an occurrence with its times and default values.
pub(super) fn new_occurrence(
    schedule: &InternedSchedule,
    planned: DateTime<Utc>,
    due: DateTime<Utc>,
    now: DateTime<Utc>,
) -> Occurrence {
    let Schedule { spec, owner, .. } = schedule.shared_fields();
    Occurrence {
        schedule: schedule.id.clone(),
        planned_at: planned,
        due_at: due,
        cause: OccurrenceCause::Due,
        status: OccurrenceStatus::Pending,
        reason: None,
        planned_time_count: 1,
        decided_at: now,
        agent: spec.agent.clone(),
        owner: *owner,
        fired_at: None,
        execution: None,
        deadline: occurrence_deadline(spec, due),
        end: None,
    }
}

fn occurrence_deadline(spec: &ScheduleSpec, due: DateTime<Utc>) -> Option<DateTime<Utc>> {
    due.checked_add_signed(TimeDelta::from_std(spec.deadline?).ok()?)
}

fn unsubmitted_reason(unsubmitted_range: &UnsubmittedRange) -> String {
    let UnsubmittedRange { last, planned_time_count: time_count, reason, .. } = unsubmitted_range;
    match time_count {
        1 => (*reason).to_owned(),
        _ => format!("{reason}; {time_count} of them, up to {}", last.format("%Y-%m-%dT%H:%M:%SZ")),
    }
}

/// Logs an occurrence that will not be submitted.
pub(super) fn log_if_unsubmitted(occurrence: &Occurrence) {
    let Occurrence {
        schedule,
        planned_at: planned,
        status,
        planned_time_count: time_count,
        reason,
        ..
    } = occurrence;
    if *status != OccurrenceStatus::Pending {
        let (status, reason) = (status.as_str(), reason.as_deref().unwrap_or_default());
        tracing::warn!(%schedule, %planned, status, times = time_count, reason, "not asked for");
    }
}
