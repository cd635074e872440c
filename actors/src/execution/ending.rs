//! How the end of an execution is written.

use std::mem;

use super::ExecutionData;
use crate::decide::execution::{Ending, Phase};
use crate::model::execution::Stamp;
use crate::pen::Stroke;
use crate::ports::ledger::Settlement;

impl ExecutionData {
    pub(super) fn settle(&mut self, stamp: Stamp, ending: Ending) {
        self.claiming.leave();
        let Ending { outcome, failure } = ending;
        self.log_end(outcome, failure.as_ref());
        let at = self.kit.clock.now();
        self.tell_end(outcome, failure.as_ref(), at);
        let lines = mem::take(&mut self.lines);
        self.write(Stroke::Settle(Settlement {
            id: self.id,
            fence: self.fence,
            stamp,
            outcome,
            failure,
            exit_code: self.exit_code,
            lines,
            at,
        }));
    }

    pub(super) fn settled(&mut self) {
        self.claiming.release();
        if let Phase::Ended { outcome, .. } = self.phase {
            self.progress.send_modify(|progress| progress.outcome = Some(outcome));
        }
    }
}
