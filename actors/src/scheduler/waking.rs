//! The one timer: wakes the scheduler for what comes first, and looks often enough to see that the clock
//! was set. While nothing is due, only the timer itself wakes.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use ractor::ActorRef;
use tokio::sync::watch;
use tokio::time::Instant;

use super::{SchedulerData, SchedulerMsg};
use crate::alarm::alarmed;
use crate::ports::clock::Clock;

/// The longest sleep: a clock that is set while it sleeps is seen after that.
pub const NAP: Duration = Duration::from_secs(20);
/// The same where there is nothing to be late for.
const IDLE: Duration = Duration::from_secs(3600);
/// By how much two clocks may drift apart before one of them was set.
const DRIFT: TimeDelta = TimeDelta::seconds(5);
/// From one time that the scheduler is woken to the next: what is due close together is decided together. Each
/// waking costs as much as some times of schedules do; with this none is 25 ms late because of it.
const PACE: Duration = Duration::from_millis(16);

/// What the timer sleeps to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Goal {
    /// What comes first, if there is anything.
    first: Option<DateTime<Utc>>,
    /// The longest sleep.
    nap: Duration,
}

/// The goal of the timer.
pub(super) struct Waking {
    goal: watch::Sender<Goal>,
    /// Whether the timer rang, and waits to be told another. At the start all is looked at.
    rang: bool,
}

/// When the clock was looked at, by itself and by one that nobody sets.
struct Seen {
    wall: DateTime<Utc>,
    steady: Instant,
}

impl Waking {
    pub(super) fn new() -> Self {
        Self { goal: watch::Sender::new(Goal { first: None, nap: IDLE }), rang: true }
    }

    /// Whether something may be due.
    pub(super) const fn rang(&self) -> bool {
        self.rang
    }
}

impl Seen {
    fn now(wall: DateTime<Utc>) -> Self {
        Self { wall, steady: Instant::now() }
    }

    /// What the wall clock should tell by now.
    fn by_now(&self) -> DateTime<Utc> {
        self.wall + TimeDelta::from_std(self.steady.elapsed()).unwrap_or_default()
    }

    /// Looks again; whether the wall clock was set back since.
    fn look(&mut self, wall: DateTime<Utc>) -> bool {
        let wanted = self.by_now();
        *self = Self::now(wall);
        wanted - wall > DRIFT
    }
}

impl SchedulerData {
    /// Starts the timer.
    pub(super) fn start_timer(&mut self) {
        let (me, broken) = (self.me.clone(), self.me.clone());
        let (clock, goal) = (Arc::clone(&self.args.kit.clock), self.waking.goal.subscribe());
        let timer = timer(me, clock, Seen::now(self.now()), goal);
        self.tasks.spawn(alarmed(timer, move || _ = broken.cast(SchedulerMsg::Broken)));
    }

    /// Something may be due.
    pub(super) const fn tick(&mut self) {
        self.waking.rang = true;
    }

    /// Looks at every schedule again.
    pub(super) fn set_back(&mut self) {
        tracing::warn!("the clock was set back: every schedule is looked at again");
        self.errands.hasten(self.now());
    }

    /// Sets the timer to what comes first.
    pub(super) fn wake(&mut self) {
        // While the timebook is written nothing can be looked at; its answer wakes us.
        let first = if self.writing { None } else { self.errands.first() };
        // Without schedules it does not matter what the clock says.
        let nap = if self.entries.is_empty() { IDLE } else { self.args.agenda.nap };
        let (next, rang) = (Goal { first, nap }, std::mem::take(&mut self.waking.rang));
        self.waking.goal.send_if_modified(|goal| std::mem::replace(goal, next) != next || rang);
    }
}

/// Sleeps to one goal after the other, and tells the scheduler when it is reached.
async fn timer(
    scheduler: ActorRef<SchedulerMsg>,
    clock: Arc<dyn Clock>,
    mut seen: Seen,
    mut goal: watch::Receiver<Goal>,
) {
    loop {
        let Goal { first, nap } = *goal.borrow_and_update();
        tokio::select! {
            biased;
            told = goal.changed() => match told {
                Ok(()) => continue,
                Err(_) => return, // The scheduler is gone.
            },
            () = pause(&seen, first, nap) => {}
        }
        let now = clock.now();
        if seen.look(now) {
            _ = scheduler.cast(SchedulerMsg::SetBack);
        }
        if first.is_some_and(|first| first <= now) {
            _ = scheduler.cast(SchedulerMsg::Tick);
            tokio::time::sleep(PACE).await; // Nothing waits for it but what is due meanwhile.
            if goal.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Sleeps to an instant, or for a nap where that is shorter.
async fn pause(seen: &Seen, first: Option<DateTime<Utc>>, nap: Duration) {
    let left = |first: DateTime<Utc>| (first - seen.by_now()).to_std().unwrap_or_default();
    let left = first.map_or(nap, |first| left(first).min(nap));
    if !left.is_zero() {
        // A millisecond more, so that it is not woken within the instant before.
        tokio::time::sleep(left + Duration::from_millis(1)).await;
    }
}
