//! Deadlines of an attempt, which pause while a question is open.

use std::time::Duration;

use super::OpenInteractions;
use crate::decide::execution::paused_deadlines::{DeadlineDecision, PausableDeadline};
use crate::decide::execution::{ExecutionDeadline, ExecutionEvent};
use crate::execution::tasks::ExecutionBackgroundTasks;
use crate::model::execution::AttemptId;

/// Deadlines of the present attempt.
pub(in crate::execution) struct AttemptDeadlines<'e> {
    pub(super) open_interactions: &'e mut OpenInteractions,
    pub(super) attempt_id: AttemptId,
    pub(super) is_running: bool,
    pub(super) tasks: &'e mut ExecutionBackgroundTasks,
}

impl AttemptDeadlines<'_> {
    /// Continues deadlines whose timers fired while a question was open.
    pub(super) fn continue_after_pause(
        &mut self,
        held_deadlines: Vec<(PausableDeadline, Duration)>,
    ) {
        for (deadline, delay) in held_deadlines {
            self.tasks.send_after(delay, deadline_event(deadline, self.attempt_id));
        }
    }

    /// Returns the event, unless it is a deadline that a question postpones.
    pub(in crate::execution) fn filter_event(
        &mut self,
        event: ExecutionEvent,
    ) -> Option<ExecutionEvent> {
        let (deadline, attempt_id) = match event {
            ExecutionEvent::RunDeadlineNear { attempt_id } => {
                (PausableDeadline::RunWarning, attempt_id)
            }
            ExecutionEvent::DeadlinePassed { attempt_id, deadline: ExecutionDeadline::Run } => {
                (PausableDeadline::Run, attempt_id)
            }
            ExecutionEvent::SilenceMeasured { attempt_id, .. }
                if self.open_interactions.has_paused_deadlines() =>
            {
                return Some(ExecutionEvent::SilenceMeasured {
                    attempt_id,
                    silence: Duration::ZERO,
                });
            }
            event => return Some(event),
        };
        if attempt_id != self.attempt_id || !self.is_running {
            return Some(event);
        }
        match self.open_interactions.decide_deadline(deadline) {
            DeadlineDecision::Passed => Some(event),
            DeadlineDecision::Held => None,
            DeadlineDecision::Postponed(delay) => {
                self.tasks.send_after(delay, event);
                None
            }
        }
    }
}

fn deadline_event(deadline: PausableDeadline, attempt_id: AttemptId) -> ExecutionEvent {
    match deadline {
        PausableDeadline::RunWarning => ExecutionEvent::RunDeadlineNear { attempt_id },
        PausableDeadline::Run => {
            ExecutionEvent::DeadlinePassed { attempt_id, deadline: ExecutionDeadline::Run }
        }
    }
}
