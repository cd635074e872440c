//! The work of an attempt: given to the driver, taken up again, cleaned up after.

use std::mem;
use std::sync::Arc;

use ractor::ActorRef;

use super::{ExecutionData, ExecutionMsg};
use crate::decide::execution::Event;
use crate::model::event::Fact;
use crate::model::execution::Stamp;
use crate::ports::driver::Work;
use crate::ports::ledger::Lines;
use crate::report::{Desk, Known, Pending, Pulse, Reporter, Till};

impl ExecutionData {
    pub(super) fn start(&mut self, me: &ActorRef<ExecutionMsg>, stamp: Stamp) {
        self.attempt_begun(stamp);
        let (work, reporter) = self.work(me, stamp, Vec::new());
        self.lease = Some(self.driver.start(work, reporter));
    }

    pub(super) fn take_up(&mut self, me: &ActorRef<ExecutionMsg>, stamp: Stamp) {
        self.attempt_begun(stamp);
        self.keep_room();
        let known = mem::take(&mut self.known);
        let (work, reporter) = self.work(me, stamp, known);
        self.lease = Some(self.driver.resume(work, reporter));
    }

    /// An attempt as its driver gets it, and where it tells.
    fn work(
        &mut self,
        me: &ActorRef<ExecutionMsg>,
        stamp: Stamp,
        known: Vec<Fact>,
    ) -> (Work, Reporter) {
        (self.pulse, self.usage) = (Pulse::default(), None);
        let desk = Desk {
            id: self.id,
            stamp,
            fence: self.fence,
            ledger: Arc::clone(&self.kit.ledger),
            clock: Arc::clone(&self.kit.clock),
            redactor: self.kit.redactor.now(),
            limit: self.spec.sizes.output,
            raw: self.spec.exposure.raw,
            progress: self.progress.clone(),
            pulse: self.pulse.clone(),
            known: Known::new(known),
            till: Till::of(&self.spec, &self.kit.purses),
            pending: Pending::default(),
        };
        let me = me.clone();
        let reporter = Reporter::new(desk, move |report| {
            _ = me.cast(ExecutionMsg::Reported(report)); // A late report finds nobody.
        });
        let (spec, request) = (Arc::clone(&self.spec), Arc::clone(&self.request));
        let workspace = self.claiming.workspace();
        (Work { execution: self.id, stamp, spec, request, workspace }, reporter)
    }

    /// The process of an attempt has ended. Of one that was given up the text is kept, and its facts
    /// are of no consequence.
    pub(super) fn take_end(&mut self, at: Stamp, exit_code: Option<i32>, lines: Lines) {
        self.lines.chunks.extend(lines.chunks);
        if at == self.stamp {
            self.pid = None;
            self.exit_code = exit_code;
            self.lines.facts.extend(lines.facts);
        }
    }

    pub(super) fn clean(&mut self, me: &ActorRef<ExecutionMsg>, stamp: Stamp) {
        if self.cleaning {
            return; // The clean-up under way will tell.
        }
        self.cleaning = true;
        let (me, lease) = (me.clone(), self.lease.take());
        self.spawn(async move {
            if let Some(lease) = lease {
                lease.clean().await;
            }
            _ = me.cast(ExecutionMsg::Happened(Event::Cleaned { at: stamp }));
        });
    }
}
