//! Stop of the actor: when it is due, and the free slot that it reports.

use super::OnSlotReleased;
use super::published_state::PublishedState;
use crate::model::agent::quota::Deferral;
use crate::model::execution::ExecutionState;

/// Plan for the stop of an execution's actor.
pub(super) struct StopPlan {
    /// Callback that reports a free slot, until it was called.
    on_slot_released: Option<OnSlotReleased>,
    /// True if the actor stops once the attempt is cleaned up: the execution waits for input or for its next attempt.
    is_planned: bool,
    deferral: Option<Deferral>,
}

impl StopPlan {
    /// Creates a plan without a stop.
    pub(super) const fn new(on_slot_released: OnSlotReleased) -> Self {
        Self { on_slot_released: Some(on_slot_released), is_planned: false, deferral: None }
    }

    /// Plans the stop after the clean-up, because of a question or a pause.
    pub(super) const fn plan_stop(&mut self) {
        self.is_planned = true;
    }

    /// Plans the stop after the clean-up, because of a deferral.
    pub(super) const fn plan_deferral(&mut self, deferral: Deferral) {
        (self.deferral, self.is_planned) = (Some(deferral), true);
    }

    /// Returns true if the planned stop is due; a clean-up must end first, because its task ends with the actor.
    pub(super) const fn is_due(&self, is_cleaning: bool) -> bool {
        self.is_planned && !is_cleaning
    }

    /// Returns the deferral, unless the execution has ended meanwhile.
    pub(super) fn deferral(&self, published: &PublishedState) -> Option<Deferral> {
        let is_deferred = published.state() == ExecutionState::Failed && !published.has_outcome();
        self.deferral.filter(|_| is_deferred)
    }

    /// Reports a free slot once, if the execution is over: pending writes hold no slot.
    pub(super) fn report_free_slot(&mut self, is_over: bool) {
        if let Some(report) = self.on_slot_released.take_if(|_| is_over) {
            report();
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU32, Ordering};

    use super::*;

    #[test]
    fn a_stop_waits_for_the_clean_up_and_is_reported_once() {
        let reports = Arc::new(AtomicU32::new(0));
        let counter = Arc::clone(&reports);
        let mut plan = StopPlan::new(Box::new(move || {
            counter.fetch_add(1, Ordering::Relaxed);
        }));
        assert!(!plan.is_due(false), "no stop is planned");
        plan.plan_stop();
        assert!(!plan.is_due(true) && plan.is_due(false));
        plan.report_free_slot(false);
        assert_eq!(reports.load(Ordering::Relaxed), 0, "the execution continues later");
        plan.report_free_slot(true);
        plan.report_free_slot(true);
        assert_eq!(reports.load(Ordering::Relaxed), 1);
    }
}
