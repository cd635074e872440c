//! Schedule in memory, and its open occurrences.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::OccurrenceKey;
use super::interned_schedule::InternedSchedule;
use crate::decide::schedule::due::ON_TIME_TOLERANCE;
use crate::model::id::ExecutionId;
use crate::model::observation::status::NextDue;
use crate::model::schedule::occurrence::{Occurrence, OccurrenceCause, OccurrenceStatus};
use crate::model::schedule::{ScheduleState, ScheduleView};

/// Longest pause before a request is repeated, in seconds.
const MAX_RETRY_PAUSE_SECONDS: u32 = 30;

/// Schedule in memory.
pub(super) struct LoadedSchedule {
    pub(super) schedule: InternedSchedule,
    /// Time of the next evaluation.
    pub(super) next_evaluation: Option<DateTime<Utc>>,
    /// Number of consecutive failures since the start of the process.
    pub(super) failure_streak: u32,
}

/// Open occurrence.
pub(super) struct OpenOccurrence {
    pub(super) occurrence: Occurrence,
    pub(super) phase: OccurrencePhase,
    /// Number of submissions.
    pub(super) submission_count: u32,
    pub(super) submission_mode: SubmissionMode,
    /// True once the scheduler has started to check whether the agent would accept
    /// it, before it replaces others.
    pub(super) is_acceptance_check_started: bool,
}

/// Mode of a submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SubmissionMode {
    /// First submission.
    First,
    /// The request may have been submitted before.
    Repeated,
    /// Only an existing execution is searched for: the time of the occurrence is over.
    FindOnly,
}

/// Phase of an open occurrence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OccurrencePhase {
    /// The occurrence waits for earlier ones.
    Waiting,
    /// The request is pending, or will be repeated.
    Submitting,
    /// The occurrence is an execution.
    Running,
}

/// Numbers of the open occurrences of a schedule.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct OpenOccurrenceCounts {
    /// Occurrences that are being submitted, or run.
    pub(super) busy: usize,
    /// Occurrences that wait for earlier ones.
    pub(super) waiting: usize,
}

impl LoadedSchedule {
    pub(super) const fn new(schedule: InternedSchedule) -> Self {
        Self { schedule, next_evaluation: None, failure_streak: 0 }
    }

    fn state(&self, open_counts: OpenOccurrenceCounts) -> ScheduleState {
        match (self.schedule.shared_fields().spec.enabled, self.schedule.paused) {
            _ if open_counts.busy > 0 => ScheduleState::Executing,
            (false, _) => ScheduleState::Created,
            (true, true) => ScheduleState::Paused,
            (true, false) => ScheduleState::Active,
        }
    }

    /// Returns the next due time with its agent.
    pub(super) fn next_due(&self) -> Option<NextDue> {
        let at = self.next_evaluation.filter(|_| self.schedule.is_active())?;
        let agent = self.schedule.shared_fields().spec.agent.clone();
        Some(NextDue { schedule: self.schedule.id.clone(), agent, at })
    }

    /// Returns the displayed schedule, with its open occurrences and their executions.
    pub(super) fn view(
        &self,
        open_counts: OpenOccurrenceCounts,
        executions: Vec<ExecutionId>,
    ) -> ScheduleView {
        ScheduleView {
            schedule: self.schedule.to_schedule(),
            state: self.state(open_counts),
            next_due_at: self.next_evaluation.filter(|_| self.schedule.is_active()),
            running_executions: executions,
            waiting_occurrence_count: open_counts.waiting,
            failure_streak: self.failure_streak,
            is_redacted: false,
        }
    }
}

impl OpenOccurrence {
    pub(super) fn new(occurrence: Occurrence) -> Self {
        let phase = match occurrence.status {
            OccurrenceStatus::Fired => OccurrencePhase::Running,
            _ => OccurrencePhase::Waiting,
        };
        let mode = SubmissionMode::First;
        Self {
            occurrence,
            phase,
            submission_count: 0,
            submission_mode: mode,
            is_acceptance_check_started: false,
        }
    }

    pub(super) fn key(&self) -> OccurrenceKey {
        OccurrenceKey::for_occurrence(&self.occurrence)
    }

    /// Records the execution that the occurrence became.
    pub(super) fn record_execution(&mut self, execution: ExecutionId, now: DateTime<Utc>) {
        self.phase = OccurrencePhase::Running;
        self.occurrence.status = OccurrenceStatus::Fired;
        self.occurrence.fired_at = Some(now);
        self.occurrence.execution = Some(execution);
    }

    /// Returns the pause in seconds before the request is repeated; `None` when its time is over.
    pub(super) fn plan_retry_pause_seconds(
        &mut self,
        max_delay: Duration,
        now: DateTime<Utc>,
    ) -> Option<u32> {
        if self.submission_mode == SubmissionMode::First {
            self.submission_mode = SubmissionMode::Repeated; // The agent may have recorded the request before the failure.
        }
        let pause =
            (1 << self.submission_count.saturating_sub(1).min(6)).min(MAX_RETRY_PAUSE_SECONDS);
        let is_over = self.occurrence.deadline.is_some_and(|deadline| deadline <= now);
        (!is_over && self.is_in_time(max_delay, now)).then_some(pause)
    }

    /// Returns true if the occurrence may still be submitted.
    pub(super) fn is_in_time(&self, max_delay: Duration, now: DateTime<Utc>) -> bool {
        let Occurrence { cause, due_at: due, .. } = &self.occurrence;
        let max_delay =
            if *cause == OccurrenceCause::Manual { ON_TIME_TOLERANCE } else { max_delay };
        let last_allowed =
            due.checked_add_signed(TimeDelta::from_std(max_delay).unwrap_or_default());
        last_allowed.is_none_or(|last_allowed| now <= last_allowed)
    }
}
