//! Writing down what became of occurrences: all that is known by then, together.

use std::time::Duration;

use super::{SchedulerData, SchedulerMsg, Slot};
use crate::alarm::alarmed;
use crate::model::id::ExecutionId;
use crate::model::occurrence::Verdict;
use crate::ports::timebook::Settled;

/// What is to be written down.
#[derive(Default)]
pub(super) struct Settling {
    waiting: Vec<Settled>,
    /// Whether some of it is written now.
    writing: bool,
}

impl SchedulerData {
    /// Has it written down what became of an occurrence.
    pub(super) fn settle(
        &mut self,
        (schedule, planned): &Slot,
        (verdict, reason): (Verdict, Option<String>),
        execution: Option<ExecutionId>,
    ) {
        let (schedule, planned, at) = (schedule.clone(), *planned, self.now());
        let settled = Settled { schedule, planned, verdict, reason, execution, at };
        self.settling.waiting.push(settled);
    }

    /// Writes down all that waits for it, until that is done. What comes meanwhile is next.
    pub(super) fn write_settled(&mut self) {
        if self.settling.writing || self.settling.waiting.is_empty() {
            return;
        }
        self.settling.writing = true;
        let settled = std::mem::take(&mut self.settling.waiting);
        let (timebook, me) = (self.args.agenda.timebook.clone(), self.me.clone());
        let broken = me.clone();
        let settling = async move {
            while let Err(error) = timebook.settle(settled.clone()).await {
                tracing::error!(%error, "what became of a schedule's time was not written down");
                tokio::time::sleep(Duration::from_secs(5)).await; // The disk may have room then.
            }
            _ = me.cast(SchedulerMsg::Settled);
        };
        self.tasks.spawn(alarmed(settling, move || _ = broken.cast(SchedulerMsg::Broken)));
    }

    /// What was to be written down is.
    pub(super) const fn settled(&mut self) {
        self.settling.writing = false;
    }
}
