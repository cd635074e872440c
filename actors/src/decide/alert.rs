//! When somebody is told that they should look: once when it begins, once when it is over.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::model::alert::{AlertSpec, Cause};
use crate::model::id::AgentId;
use crate::model::pressure::Shortage;
use crate::model::schedule::ScheduleId;

/// Over which time requests are counted.
const WINDOW: Duration = Duration::from_secs(60);

/// Of a day's budget, in percent: then there is time to look.
const NEARLY: u64 = 80;

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Sighting {
    /// So many requests came to an endpoint.
    Requested(String, u64),
    /// An execution of an agent ended, well or not.
    Ended(AgentId, bool),
    /// Work of a schedule ended: how much of it failed in a row, and from how much on that is told.
    Scheduled(ScheduleId, u32, u32),
    /// An agent has used up so much of its day's budget, in percent; the next day begins so much later.
    Spent(AgentId, u64, Duration),
    /// An agent is not started again.
    Quarantined(AgentId),
    /// The machine is short of this.
    Short(Vec<Shortage>),
    /// The disk of the ledger has so many bytes free.
    Free(u64),
    /// A notice was given up, after so many failures.
    GivenUp(u32),
    /// Time has passed.
    Tick,
}

/// What an alert is about.
pub type Key = (Cause, String);

/// What is to be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It has begun: what was counted, and the bound that it crossed.
    Opened(Key, u64, u64),
    /// It is over.
    Closed(Key),
}

/// What is known, and what is open.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Watch {
    /// The latest requests of each endpoint, as many as are expected at most.
    requests: BTreeMap<String, VecDeque<Duration>>,
    /// Failures of each agent in a row.
    streaks: BTreeMap<AgentId, u32>,
    /// What is open, and until when where that is known.
    open: BTreeMap<Key, Option<Duration>>,
}

/// Decides about a sighting at `now`, which is the time since the watch began.
#[must_use]
pub fn step(
    mut watch: Watch,
    sighting: Sighting,
    now: Duration,
    spec: &AlertSpec,
) -> (Watch, Vec<Change>) {
    let mut changes = Vec::new();
    match sighting {
        Sighting::Requested(endpoint, count) => {
            watch.requested((endpoint, count), now, spec, &mut changes);
        }
        Sighting::Ended(agent, is_good) => watch.ended(agent, is_good, spec, &mut changes),
        Sighting::Scheduled(id, streak, limit) => {
            let key = (Cause::ScheduleFailing, id.to_string());
            if limit > 0 && streak >= limit {
                watch.open(key, None, (streak.into(), limit.into()), &mut changes);
            } else if streak == 0 {
                watch.close(key, &mut changes);
            }
        }
        Sighting::Spent(agent, percent, left) => {
            watch.spent(agent, (percent, now + left), &mut changes);
        }
        Sighting::Quarantined(agent) => {
            watch.open((Cause::AgentQuarantined, agent.to_string()), None, (1, 0), &mut changes);
        }
        Sighting::Short(short) => watch.short(&short, &mut changes),
        Sighting::Free(bytes) => watch.free(bytes, spec, &mut changes),
        Sighting::GivenUp(failures) => {
            let (key, until) = ((Cause::PushGivenUp, String::new()), now + spec.linger);
            watch.open(key, Some(until), (failures.into(), 0), &mut changes);
        }
        Sighting::Tick => watch.tick(now, spec, &mut changes),
    }
    (watch, changes)
}

impl Watch {
    /// Whether something is over by itself after a while, so that time must be told.
    #[must_use]
    pub fn ends_by_itself(&self) -> bool {
        let lingers = |(key, until): (&Key, &Option<Duration>)| {
            key.0 == Cause::RequestRate || until.is_some()
        };
        !self.requests.is_empty() || self.open.iter().any(lingers)
    }

    fn open(
        &mut self,
        key: Key,
        until: Option<Duration>,
        (value, limit): (u64, u64),
        changes: &mut Vec<Change>,
    ) {
        if self.open.insert(key.clone(), until).is_none() {
            changes.push(Change::Opened(key, value, limit));
        }
    }

    fn close(&mut self, key: Key, changes: &mut Vec<Change>) {
        if self.open.remove(&key).is_some() {
            changes.push(Change::Closed(key));
        }
    }

    fn requested(
        &mut self,
        (endpoint, count): (String, u64),
        now: Duration,
        spec: &AlertSpec,
        changes: &mut Vec<Change>,
    ) {
        let limit = u64::from(spec.requests_per_minute);
        if limit == 0 {
            return;
        }
        let times = self.requests.entry(endpoint.clone()).or_default();
        forget(times, now);
        let value = times.len() as u64 + count;
        times.extend((0..count.min(limit)).map(|_| now));
        if value > limit {
            times.drain(..times.len().saturating_sub(spec.requests_per_minute as usize));
            self.open((Cause::RequestRate, endpoint), None, (value, limit), changes);
        }
    }

    fn ended(
        &mut self,
        agent: AgentId,
        is_good: bool,
        spec: &AlertSpec,
        changes: &mut Vec<Change>,
    ) {
        let key = (Cause::FailureStreak, agent.to_string());
        if is_good {
            self.streaks.remove(&agent);
            return self.close(key, changes);
        }
        let streak = self.streaks.entry(agent).or_default();
        *streak = streak.saturating_add(1);
        let (streak, limit) = (*streak, spec.failure_streak);
        if limit > 0 && streak >= limit {
            self.open(key, None, (streak.into(), limit.into()), changes);
        }
    }

    /// It is over when the next day begins, or when there is more to spend.
    fn spent(
        &mut self,
        agent: AgentId,
        (percent, until): (u64, Duration),
        changes: &mut Vec<Change>,
    ) {
        let key = (Cause::BudgetNearlySpent, agent.to_string());
        if percent >= NEARLY {
            self.open(key, Some(until), (percent, NEARLY), changes);
        } else {
            self.close(key, changes);
        }
    }

    /// Who is told of one shortage is told of the next one too, and when all are over.
    fn short(&mut self, short: &[Shortage], changes: &mut Vec<Change>) {
        let named: Vec<_> = short.iter().map(|short| short.as_words().to_owned()).collect();
        let is_over = |key: &&Key| key.0 == Cause::Pressure && !named.contains(&key.1);
        for key in self.open.keys().filter(is_over).cloned().collect::<Vec<_>>() {
            self.close(key, changes);
        }
        for subject in named {
            self.open((Cause::Pressure, subject), None, (1, 0), changes);
        }
    }

    /// It is over when there is a quarter more than the bound, so that it does not flicker.
    fn free(&mut self, bytes: u64, spec: &AlertSpec, changes: &mut Vec<Change>) {
        let (key, limit) = ((Cause::LedgerNearlyFull, String::new()), spec.ledger_free_bytes);
        if bytes < limit {
            self.open(key, None, (bytes, limit), changes);
        } else if bytes >= limit.saturating_add(limit / 4) {
            self.close(key, changes);
        }
    }

    /// A rate is over when it is a fifth below the bound.
    fn tick(&mut self, now: Duration, spec: &AlertSpec, changes: &mut Vec<Change>) {
        for times in self.requests.values_mut() {
            forget(times, now);
        }
        let calm = spec.requests_per_minute as usize * 4 / 5;
        let requests = &self.requests;
        let is_over = |(key, until): &(&Key, &Option<Duration>)| match key.0 {
            Cause::RequestRate => requests.get(&key.1).is_none_or(|times| times.len() <= calm),
            _ => until.is_some_and(|until| until <= now),
        };
        let over: Vec<_> = self.open.iter().filter(is_over).map(|(key, _)| key.clone()).collect();
        self.requests.retain(|_, times| !times.is_empty());
        for key in over {
            self.close(key, changes);
        }
    }
}

/// Forgets what was longer ago than is counted.
fn forget(times: &mut VecDeque<Duration>, now: Duration) {
    while times.front().is_some_and(|time| *time + WINDOW <= now) {
        times.pop_front();
    }
}

#[cfg(test)]
mod tests;
