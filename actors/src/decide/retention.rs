//! What of the history is removed next: by age, by number, by size; and whether the clock may be
//! believed.

use std::time::Duration;

use chrono::{DateTime, TimeDelta, Utc};

use crate::model::stock::{Keep, Stock, Sweep};

/// By how much the wall clock and a clock that does not jump may disagree.
const JUMP: TimeDelta = TimeDelta::hours(1);
/// For how long age does not count after the wall clock was set: a day, in which somebody may see it.
const DOUBT: Duration = Duration::from_secs(24 * 3600);
/// What ended so long after now ended before the clock was set back.
const FUTURE: TimeDelta = TimeDelta::days(1);
/// Executions of one turn, at most.
const BATCH: u32 = 50;
/// Of those that have ended, one pass removes this part by age, and `BATCH` at least: a clock that is
/// wrong from the start removes a history in hours, not at once.
const PART: u64 = 20;

/// What is known of the wall clock, from one pass to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Trust {
    last: Option<(DateTime<Utc>, Duration)>,
    doubted_until: Option<Duration>,
}

impl Trust {
    /// Looks at the wall clock, beside the time since the beginning by a clock that does not jump.
    /// Answers whether age counts.
    #[must_use]
    pub fn look(self, wall: DateTime<Utc>, since: Duration) -> (Self, bool) {
        let has_jumped = self.last.is_some_and(|(wall_then, then)| {
            let passed = TimeDelta::from_std(since.saturating_sub(then)).unwrap_or(TimeDelta::MAX);
            ((wall - wall_then) - passed).abs() > JUMP
        });
        let fresh = has_jumped.then(|| since.saturating_add(DOUBT));
        let doubted_until = fresh.or(self.doubted_until.filter(|until| since < *until));
        (Self { last: Some((wall, since)), doubted_until }, doubted_until.is_none())
    }
}

/// Why something is removed, and from where.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Source {
    /// It is older than it may be.
    Age,
    /// There is too much, and it ended before the clock was set back: nobody knows how old it is, but
    /// it is older than what came since.
    Future,
    /// There is too much, and it ended first.
    Past,
}

/// One pass, as far as it has come.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress {
    now: DateTime<Utc>,
    /// How many may still go by age.
    by_age: u64,
    /// Where nothing more is found.
    dry: Vec<Source>,
}

impl Progress {
    /// Begins a pass.
    #[must_use]
    pub fn begin(now: DateTime<Utc>, age_counts: bool, stock: &Stock) -> Self {
        let part = (stock.ended / PART).max(BATCH.into());
        Self { now, by_age: if age_counts { part } else { 0 }, dry: Vec::new() }
    }

    /// What is removed next; `None` when the pass is over.
    #[must_use]
    pub fn next(&self, keep: &Keep, stock: &Stock) -> Option<(Source, Sweep)> {
        let is_open = |source: &Source| !self.dry.contains(source);
        if let Some(max) = keep.max_age.filter(|_| self.by_age > 0 && is_open(&Source::Age)) {
            let most = u32::try_from(self.by_age).unwrap_or(BATCH).min(BATCH);
            let before = self.before(max.max(keep.min_age))?;
            return Some((Source::Age, Sweep { from: None, before: Some(before), most }));
        }
        let most = excess(keep, stock)?;
        match [Source::Future, Source::Past].into_iter().find(is_open)? {
            Source::Future => {
                let from = Some(self.now.checked_add_signed(FUTURE)?);
                Some((Source::Future, Sweep { from, before: None, most }))
            }
            source => {
                let before = Some(self.before(keep.min_age)?);
                Some((source, Sweep { from: None, before, most }))
            }
        }
    }

    /// Notes how many were removed.
    #[must_use]
    pub fn removed(mut self, source: Source, removed: u64) -> Self {
        if removed == 0 {
            self.dry.push(source);
        }
        if source == Source::Age {
            self.by_age = self.by_age.saturating_sub(removed);
        }
        self
    }

    fn before(&self, age: Duration) -> Option<DateTime<Utc>> {
        self.now.checked_sub_signed(TimeDelta::from_std(age).ok()?)
    }
}

/// How many are too many; when it is their size, some.
fn excess(keep: &Keep, stock: &Stock) -> Option<u32> {
    let over = keep.max_executions.map_or(0, |max| stock.executions.saturating_sub(max));
    let is_large = keep.max_bytes.is_some_and(|max| stock.used() > max);
    match u32::try_from(over).unwrap_or(BATCH).min(BATCH) {
        0 if is_large => Some(BATCH / 10), // Sizes differ: it is measured again soon.
        0 => None,
        over => Some(over),
    }
}
