//! What an execution uses up: added to its day, and held against what it may.

use std::time::Duration;

use ractor::ActorRef;
use tokio::time::Instant;

use super::{ExecutionData, ExecutionMsg};
use crate::decide::budget;
use crate::decide::execution::Event;
use crate::model::budget::{Charge, Measure};
use crate::model::execution::{Stamp, State};
use crate::model::news::Tokens;
use crate::pen::Stroke;
use crate::ports::ledger::Lines;
use crate::report::Till;

impl ExecutionData {
    /// The agent counted what it used; it is in the ledger. Who is given tokens is served.
    pub(super) fn used(
        &mut self,
        me: &ActorRef<ExecutionMsg>,
        at: Stamp,
        (tokens, charge): (Tokens, Charge),
    ) {
        if at != self.stamp {
            return;
        }
        self.account.tokens = self.account.tokens.plus(tokens);
        self.spent = self.spent.plus(charge);
        self.kit.tell_spent(&self.spec);
        if charge.output_tokens > 0 {
            self.credential_serves();
        }
        if let Err(failure) = budget::run(&self.spec.budget.run, self.spent) {
            self.happened(me, Event::Overspent { at, failure });
        }
    }

    /// Begins to count the time in which the attempt runs, and ends it when that is over.
    pub(super) fn mind_wall_time(&mut self, me: &ActorRef<ExecutionMsg>, at: Stamp, ran: Duration) {
        if at != self.stamp || self.state != State::Running {
            return;
        }
        let budget = &self.spec.budget;
        if ![&budget.run, &budget.day].iter().any(|of| of.contains_key(&Measure::WallTime)) {
            return; // Nobody asks, and it would be one more record of each attempt.
        }
        let now = Instant::now();
        self.runs_since = Some(now.checked_sub(ran).unwrap_or(now));
        if let Some(limit) = self.spec.budget.run.get(&Measure::WallTime).copied() {
            let left = Duration::from_millis(limit.saturating_sub(self.spent.wall_ms));
            let failure = budget::exceeded(Measure::WallTime, limit, 0);
            self.wake(me, left.saturating_sub(ran), Event::Overspent { at, failure });
        }
    }

    /// Charges the time in which the attempt ran.
    pub(super) fn charge_wall_time(&mut self) {
        let Some(since) = self.runs_since.take() else { return };
        let wall_ms = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let charge = Charge { wall_ms, ..Charge::default() };
        self.spent = self.spent.plus(charge);
        let (now, till) = (self.kit.clock.now(), Till::of(&self.spec, &self.kit.purses));
        if let Some(charged) = till.charged(now, charge) {
            till.take(Some(&charged));
            self.kit.tell_spent(&self.spec);
            let lines = Lines { chunks: Vec::new(), facts: vec![(now, charged)] };
            self.write(Stroke::Record(self.fence, lines));
        }
    }
}
