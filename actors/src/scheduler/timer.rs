//! Single timer of the scheduler: wakes it for the first due action, and checks the clock often enough to notice that
//! it was set. While nothing is due, only the timer itself wakes.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};
use ractor::ActorRef;
use tokio::sync::watch;
use tokio::time::Instant;

use super::SchedulerMsg;
use super::tasks::SchedulerBackgroundTasks;
use crate::ports::clock::Clock;

/// Longest sleep, after which a clock that was set meanwhile is noticed.
pub const DEFAULT_MAX_SLEEP: Duration = Duration::from_secs(20);
/// Longest sleep without schedules.
const IDLE_MAX_SLEEP: Duration = Duration::from_secs(3600);
/// Drift between two clocks beyond which one of them was set.
const MAX_CLOCK_DRIFT: TimeDelta = TimeDelta::seconds(5);
/// Minimum interval between two wake-ups of the scheduler: actions that are due close together are handled together. A
/// wake-up costs as much as several occurrences; with this interval none is 25 ms late because of it.
const MIN_WAKE_INTERVAL: Duration = Duration::from_millis(16);

/// Target of the timer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct TimerTarget {
    /// Time of the first action, if there is one.
    first_due: Option<DateTime<Utc>>,
    /// Longest sleep.
    max_sleep: Duration,
}

/// Timer of the scheduler: its target and its state.
pub(super) struct WakeTimer {
    target: watch::Sender<TimerTarget>,
    /// True if the timer fired and waits for a new target. At the start all schedules are evaluated.
    has_fired: bool,
}

/// Readings of the wall clock and of the monotonic clock at the same moment.
struct ClockReading {
    wall: DateTime<Utc>,
    monotonic: Instant,
}

impl WakeTimer {
    pub(super) fn new() -> Self {
        let target = TimerTarget { first_due: None, max_sleep: IDLE_MAX_SLEEP };
        Self { target: watch::Sender::new(target), has_fired: true }
    }

    /// Returns true if an action may be due.
    pub(super) const fn has_fired(&self) -> bool {
        self.has_fired
    }

    /// Records that an action may be due.
    pub(super) const fn mark_fired(&mut self) {
        self.has_fired = true;
    }

    /// Starts the timer's task.
    pub(super) fn start(&self, clock: &Arc<dyn Clock>, tasks: &mut SchedulerBackgroundTasks) {
        let (clock, target) = (Arc::clone(clock), self.target.subscribe());
        let reading = ClockReading::now(clock.now());
        tasks.spawn(run_timer(tasks.scheduler().clone(), clock, reading, target));
    }

    /// Sets the timer to the first action. Without schedules the wall clock does not matter: `max_sleep` is `None`.
    pub(super) fn set_target(
        &mut self,
        first_due: Option<DateTime<Utc>>,
        max_sleep: Option<Duration>,
    ) {
        let next_target = TimerTarget { first_due, max_sleep: max_sleep.unwrap_or(IDLE_MAX_SLEEP) };
        // A timer that has fired waits for a target, so it must receive an unchanged one too.
        let has_fired = std::mem::take(&mut self.has_fired);
        self.target.send_if_modified(|target| {
            std::mem::replace(target, next_target) != next_target || has_fired
        });
    }
}

impl ClockReading {
    fn now(wall: DateTime<Utc>) -> Self {
        Self { wall, monotonic: Instant::now() }
    }

    /// Returns the expected present time of the wall clock.
    fn expected_wall_time(&self) -> DateTime<Utc> {
        self.wall + TimeDelta::from_std(self.monotonic.elapsed()).unwrap_or_default()
    }

    /// Takes new readings; returns true if the wall clock was set back since.
    fn update_and_check_set_back(&mut self, wall: DateTime<Utc>) -> bool {
        let expected = self.expected_wall_time();
        *self = Self::now(wall);
        expected - wall > MAX_CLOCK_DRIFT
    }
}

/// Sleeps until each target, and notifies the scheduler.
async fn run_timer(
    scheduler: ActorRef<SchedulerMsg>,
    clock: Arc<dyn Clock>,
    mut reading: ClockReading,
    mut target: watch::Receiver<TimerTarget>,
) {
    loop {
        let TimerTarget { first_due, max_sleep } = *target.borrow_and_update();
        tokio::select! {
            // A new target has priority: the old one may belong to an action that was removed.
            biased;
            changed = target.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return, // The scheduler has stopped.
            },
            () = sleep_until_due(&reading, first_due, max_sleep) => {}
        }
        let now = clock.now();
        if reading.update_and_check_set_back(now) {
            _ = scheduler.cast(SchedulerMsg::ClockSetBack);
        }
        if first_due.is_some_and(|first_due| first_due <= now) {
            _ = scheduler.cast(SchedulerMsg::Tick);
            tokio::time::sleep(MIN_WAKE_INTERVAL).await; // Only actions due meanwhile wait for it.
            // The scheduler answers each tick with a target. Without this wait the timer would send ticks in a loop.
            if target.changed().await.is_err() {
                return;
            }
        }
    }
}

/// Sleeps until an instant, or for a shorter maximum.
async fn sleep_until_due(
    reading: &ClockReading,
    first_due: Option<DateTime<Utc>>,
    max_sleep: Duration,
) {
    let time_until = |first_due: DateTime<Utc>| {
        (first_due - reading.expected_wall_time()).to_std().unwrap_or_default()
    };
    let duration = first_due.map_or(max_sleep, |first_due| time_until(first_due).min(max_sleep));
    if !duration.is_zero() {
        // The extra millisecond prevents a wake-up just before the instant.
        tokio::time::sleep(duration + Duration::from_millis(1)).await;
    }
}
