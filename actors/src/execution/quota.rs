//! An execution whose account has used up what it may: it is told, and parked.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use super::ExecutionData;
use crate::circuits::credential;
use crate::decide::execution::{Event, Phase};
use crate::model::event::Fact;
use crate::model::execution::{Stamp, State};
use crate::model::failure::Failure;
use crate::model::progress::Stay;
use crate::model::quota::Parked;

impl ExecutionData {
    /// Tells what the end of an attempt says of the credential under which it was made. Failures of
    /// other kinds say nothing of it.
    pub(super) fn judge_credential(&self, at: Stamp, verdict: &Result<(), Failure>) {
        if at != self.stamp || !matches!(self.phase, Phase::Starting { .. } | Phase::Running { .. })
        {
            return; // What is told to end may say anything.
        }
        match verdict {
            Ok(()) => self.credential_serves(),
            Err(failure) => {
                let of = (&self.kit.keyring, &*self.spec);
                self.kit.circuits.failed(of, self.id, failure, &*self.kit.clock);
            }
        }
    }

    /// Somebody was served under its credential.
    pub(super) fn credential_serves(&self) {
        self.kit.circuits.served(&credential(&self.kit.keyring, &self.spec), self.id);
    }

    /// Notes until when it is parked, with the move that leads there, and lets go.
    pub(super) fn park(&mut self, wait: Duration) {
        let now = self.kit.clock.now();
        let wait = TimeDelta::from_std(wait).unwrap_or_default();
        let until = now.checked_add_signed(wait).unwrap_or(now);
        let parked = Parked { until, times: self.policy.parks + 1, attempt: self.stamp.attempt };
        tracing::info!(execution = %self.id, agent = %self.spec.id, %until, "parked");
        self.lines.facts.push((now, Fact::Parked(parked)));
        (self.parked, self.parking) = (Some(parked), true);
    }

    /// Where it stays, unless it has ended meanwhile.
    pub(super) fn stay(&self) -> Option<Stay> {
        let parked = self.parked.filter(|_| self.state == State::Failed)?;
        let has_ended = self.progress.borrow().outcome.is_some();
        let (stamp, fence, spent) = (self.stamp, self.fence, self.spent);
        (!has_ended).then_some(Stay { parked, stamp, fence, spent })
    }
}

/// The end of an attempt, with how long its failure lasts where that is said.
pub(super) fn ended(
    at: Stamp,
    verdict: Result<(), Failure>,
    now: impl Fn() -> DateTime<Utc>,
) -> Event {
    match verdict {
        Err(failure) => match failure.until {
            Some(until) => {
                let lasts = (until - now()).to_std().unwrap_or_default();
                Event::Failed { at, failure, lasts }
            }
            None => Event::Ended { at, verdict: Err(failure) },
        },
        Ok(()) => Event::Ended { at, verdict: Ok(()) },
    }
}
