//! What an agent does while its credential is of no use: it begins nothing, and then one at first.
//! What waits stays in its line; the time for which a quota is used up is no time of waiting.

use std::time::Duration;

use chrono::{DateTime, Utc};
use ractor::ActorRef;
use tokio::time::Instant;

use super::{AgentData, AgentMsg};
use crate::decide::admission::Event;
use crate::decide::breaker::Circuit;
use crate::model::queue::{Queued, Reason};
use crate::model::quota::Cause;

impl AgentData {
    /// Shuts the line, or opens it.
    pub(super) fn circuit_turned(&mut self, me: &ActorRef<AgentMsg>) {
        let known = self.args.kit.circuits.of(&self.credential);
        let known = known.filter(|_| self.args.spec.quota.breaker);
        match (self.circuit.take(), known) {
            (None, None) => return,
            (Some((before, since)), None) => {
                self.stretch(before, since);
                self.arrive(me, Event::Opened);
            }
            (before, Some(now)) => {
                let since = before.map_or_else(Instant::now, |(_, since)| since);
                self.circuit = Some((now, since));
                self.arrive(me, Event::Shut);
            }
        }
        self.mind_patience_anew(me);
    }

    /// Lets the next in line try the credential, where one may.
    pub(super) fn try_credential(&mut self, me: &ActorRef<AgentMsg>) {
        let Some(id) = self.circuit.and_then(|_| self.line.next()) else { return };
        if self.draining.is_some() {
            return;
        }
        let probe = self.args.kit.circuits.probe(&self.credential, id, self.args.kit.clock.now());
        if let (Some(probe), Some(one)) = (probe, self.waiting.get_mut(&id)) {
            one.probe = Some(probe);
            self.arrive(me, Event::Tried(id));
        }
    }

    /// How much longer those in line may wait because the quota is used up.
    pub(super) fn grace(&self) -> Duration {
        let is_used_up = |(circuit, _): &(Circuit, Instant)| circuit.cause == Cause::UsedUp;
        let parking = self.args.spec.quota.parking;
        self.circuit.filter(is_used_up).map_or(Duration::ZERO, |_| parking.max)
    }

    /// How long one has waited that was stored then, without the time for which the quota is used up.
    pub(super) fn waited(&self, at: DateTime<Utc>) -> Duration {
        match self.args.kit.circuits.of(&self.credential) {
            Some(circuit) if circuit.cause == Cause::UsedUp => {
                (circuit.since - at).to_std().unwrap_or_default().min(self.past(at))
            }
            _ => self.past(at),
        }
    }

    /// The place of one in line, with what holds it up.
    pub(super) fn held_up(&self, queued: Queued) -> Queued {
        let Some((circuit, _)) = self.circuit.filter(|_| queued.reason == Reason::AgentBusy) else {
            return queued;
        };
        let reason = match circuit.cause {
            Cause::UsedUp => Reason::QuotaUsedUp,
            Cause::Refused => Reason::CredentialRefused,
        };
        let until = Some(circuit.until).filter(|until| *until > self.args.kit.clock.now());
        Queued { reason, until, ..queued }
    }

    /// Gives those in line the time that they waited for the quota alone.
    fn stretch(&mut self, circuit: Circuit, since: Instant) {
        if circuit.cause != Cause::UsedUp {
            return;
        }
        let (patience, now) = (self.args.spec.capacity.patience, Instant::now());
        let most = self.args.spec.quota.parking.max;
        for one in self.waiting.values_mut().filter(|one| one.parked.is_none()) {
            let came = one.due.checked_sub(patience).unwrap_or(since).max(since);
            let lost = now.saturating_duration_since(came).min(most);
            one.due = one.due.checked_add(lost).unwrap_or(one.due);
        }
    }
}
