//! Stop of the actor: when it is due, and the free slot that it reports.

use super::AtRest;
use super::published::PublishedState;
use crate::model::agent::budget::Charge;
use crate::model::agent::quota::Deferral;
use crate::model::execution::progress::Stay;
use crate::model::execution::{AttemptId, Fence, State};

/// Plan for the stop of an execution's actor.
pub(super) struct StopPlan {
    /// Callback that reports a free slot, until it was called.
    at_rest: Option<AtRest>,
    /// True if the actor stops once the attempt is cleaned up, because of a question or a deferral.
    is_pending: bool,
    deferral: Option<Deferral>,
}

impl StopPlan {
    /// Creates a plan without a stop.
    pub(super) const fn new(at_rest: AtRest) -> Self {
        Self { at_rest: Some(at_rest), is_pending: false, deferral: None }
    }

    /// Plans the stop after the clean-up, because of a question.
    pub(super) const fn ask(&mut self) {
        self.is_pending = true;
    }

    /// Plans the stop after the clean-up, because of a deferral.
    pub(super) const fn defer(&mut self, deferral: Deferral) {
        (self.deferral, self.is_pending) = (Some(deferral), true);
    }

    /// Returns true if the planned stop is due; a clean-up must end first, because its task ends with the actor.
    pub(super) const fn is_due(&self, is_cleaning: bool) -> bool {
        self.is_pending && !is_cleaning
    }

    /// Returns the deferral data for the next actor, unless the execution has ended meanwhile.
    pub(super) fn stay(
        &self,
        published: &PublishedState,
        (stamp, fence): (AttemptId, Fence),
        spent: Charge,
    ) -> Option<Stay> {
        let is_deferred = published.state() == State::Failed && !published.has_outcome();
        let parked = self.deferral.filter(|_| is_deferred)?;
        Some(Stay { parked, stamp, fence, spent })
    }

    /// Reports a free slot once, if the execution is over: pending writes hold no slot.
    pub(super) fn report_free_slot(&mut self, is_over: bool) {
        if let Some(report) = self.at_rest.take_if(|_| is_over) {
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
        plan.ask();
        assert!(!plan.is_due(true) && plan.is_due(false));
        plan.report_free_slot(false);
        assert_eq!(reports.load(Ordering::Relaxed), 0, "the execution continues later");
        plan.report_free_slot(true);
        plan.report_free_slot(true);
        assert_eq!(reports.load(Ordering::Relaxed), 1);
    }
}
