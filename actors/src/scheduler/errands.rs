//! What is to be done when.

use std::collections::BTreeSet;

use chrono::{DateTime, Utc};

use super::Slot;
use super::kept::Micros;
use crate::model::schedule::ScheduleId;

/// Something to be done at an instant. There is one for each schedule, so what is rare is boxed.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Errand {
    /// A schedule is due.
    Look(ScheduleId),
    /// A request is to be made again.
    Ask(Box<Slot>),
    /// An occurrence must have ended.
    CallOff(Box<Slot>),
    /// What is long over is to be forgotten.
    Forget,
}

/// Everything that is to be done, by instant. No time that is planned is finer than a millisecond.
#[derive(Default)]
pub(super) struct Errands(BTreeSet<(Micros, Errand)>);

impl Errands {
    pub(super) fn add(&mut self, at: DateTime<Utc>, errand: Errand) {
        self.0.insert((at.into(), errand));
    }

    pub(super) fn drop(&mut self, at: DateTime<Utc>, errand: Errand) {
        self.0.remove(&(at.into(), errand));
    }

    /// When the first is to be done.
    pub(super) fn first(&self) -> Option<DateTime<Utc>> {
        self.0.first().map(|(at, _)| (*at).into())
    }

    /// Takes the first that is to be done by now.
    pub(super) fn take(&mut self, now: DateTime<Utc>) -> Option<Errand> {
        let is_due = self.first().is_some_and(|at| at <= now);
        is_due.then(|| self.0.pop_first()).flatten().map(|(_, errand)| errand)
    }

    /// Lets everything but the ends of occurrences be done now: the clock tells another time.
    pub(super) fn hasten(&mut self, now: DateTime<Utc>) {
        let (all, now) = (std::mem::take(&mut self.0).into_iter(), Micros::from(now));
        let sooner = all.map(|(at, errand)| match errand {
            Errand::Look(_) | Errand::Ask(_) => (at.min(now), errand),
            Errand::CallOff(_) | Errand::Forget => (at, errand),
        });
        self.0 = sooner.collect();
    }
}
