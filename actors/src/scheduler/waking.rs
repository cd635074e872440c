//! The one timer: wakes for what comes first, and often enough to see that the clock was set.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use super::{SchedulerData, SchedulerMsg};
use crate::alarm::alarmed;

/// The longest sleep: a clock that is set while it sleeps is seen after that.
pub const NAP: Duration = Duration::from_secs(20);
/// The same where there is nothing to be late for.
const IDLE: Duration = Duration::from_secs(3600);
/// By how much two clocks may drift apart before one of them was set.
const DRIFT: TimeDelta = TimeDelta::seconds(5);

/// What it sleeps to.
pub(super) struct Waking {
    timer: Option<(DateTime<Utc>, AbortHandle)>,
    seen: (DateTime<Utc>, Instant),
}

impl Waking {
    pub(super) fn new(now: DateTime<Utc>) -> Self {
        Self { timer: None, seen: (now, Instant::now()) }
    }

    /// Whether the wall clock was set back since the last look.
    fn was_set_back(&mut self, now: DateTime<Utc>) -> bool {
        let (wall, steady) = self.seen;
        self.seen = (now, Instant::now());
        let passed = TimeDelta::from_std(steady.elapsed()).unwrap_or_default();
        (wall + passed) - now > DRIFT
    }
}

impl SchedulerData {
    /// Something may be due.
    pub(super) fn tick(&mut self) {
        self.waking.timer = None;
        let now = self.now();
        if self.waking.was_set_back(now) {
            tracing::warn!("the clock was set back: every schedule is looked at again");
            self.errands.hasten(now);
        }
    }

    /// Sets the timer to what comes first.
    pub(super) fn wake(&mut self) {
        let now = self.now();
        // Without schedules it does not matter what the clock says.
        let nap = if self.entries.is_empty() { IDLE } else { self.args.agenda.nap };
        let nap = now + TimeDelta::from_std(nap).unwrap_or_default();
        let at = self.errands.first().map_or(nap, |first| first.min(nap));
        // While the timebook is written nothing can be looked at; its answer wakes us.
        let at = if self.writing && at <= now { nap } else { at };
        if let Some((set, timer)) = &self.waking.timer {
            if *set <= at && *set > now {
                return;
            }
            timer.abort();
        }
        // A millisecond more, so that it is not woken within the instant before.
        let pause = (at - now).to_std().unwrap_or_default() + Duration::from_millis(1);
        let (me, broken) = (self.me.clone(), self.me.clone());
        let nap = async move {
            tokio::time::sleep(pause).await; // The pace of the schedules; nothing waits for it.
            _ = me.cast(SchedulerMsg::Tick);
        };
        let ring = move || _ = broken.cast(SchedulerMsg::Broken);
        self.waking.timer = Some((at, self.tasks.spawn(alarmed(nap, ring))));
    }
}
