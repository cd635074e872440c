//! Alerts: decides when an alert opens and when it closes.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use crate::model::host::host_fault::HostFault;
use crate::model::host::pressure::Shortage;
use crate::model::id::{AgentId, ScheduleId};
use crate::model::observation::alert::{AlertCause, AlertSpec};

/// Time window in which requests are counted.
const REQUEST_RATE_WINDOW: Duration = Duration::from_secs(60);

/// Share of a day's budget that opens an alert, in percent; it leaves time to act.
const BUDGET_ALERT_PERCENT: u64 = 80;

/// Input of the alert logic.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlertInput {
    /// An endpoint received this number of requests.
    RequestsReceived(String, u64),
    /// An execution of an agent ended; true if it succeeded.
    ExecutionEnded(AgentId, bool),
    /// An execution of a schedule ended: the number of consecutive failures, and the limit that opens an alert.
    ScheduledExecutionEnded(ScheduleId, u32, u32),
    /// An agent has used this share of its day's budget, in percent; the next day starts after this time.
    BudgetUsed(AgentId, u64, Duration),
    /// An agent is not restarted.
    AgentQuarantined(AgentId),
    /// These preconditions of all executions are not fulfilled.
    HostFaults(Vec<HostFault>),
    /// These resources of the machine are short.
    Shortages(Vec<Shortage>),
    /// The disk of the ledger has this number of free bytes.
    LedgerFreeBytes(u64),
    /// A notification was given up after this number of failures.
    PushAbandoned(u32),
    /// Time has passed.
    Tick,
}

/// Key of an alert: its cause and its subject.
pub type AlertKey = (AlertCause, String);

/// Change of an alert.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlertChange {
    /// The alert opened: the counted value, and the limit that it crossed.
    Opened(AlertKey, u64, u64),
    /// The alert closed.
    Closed(AlertKey),
}

/// State of the alert logic: counters and open alerts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AlertTracker {
    /// Latest requests of each endpoint, at most as many as the limit.
    request_times: BTreeMap<String, VecDeque<Duration>>,
    /// Consecutive failures of each agent.
    failure_streaks: BTreeMap<AgentId, u32>,
    /// Open alerts, each with its closing time if known.
    open_alerts: BTreeMap<AlertKey, Option<Duration>>,
}

/// Decides the alerts for an input at `now`, which is the time since the watch started.
#[must_use]
pub fn apply_alert_input(
    mut tracker: AlertTracker,
    alert_input: AlertInput,
    now: Duration,
    spec: &AlertSpec,
) -> (AlertTracker, Vec<AlertChange>) {
    let mut changes = Vec::new();
    match alert_input {
        AlertInput::RequestsReceived(endpoint, count) => {
            tracker.count_requests((endpoint, count), now, spec, &mut changes);
        }
        AlertInput::ExecutionEnded(agent, succeeded) => {
            tracker.count_outcome(agent, succeeded, spec, &mut changes);
        }
        AlertInput::ScheduledExecutionEnded(id, streak, limit) => {
            let key = (AlertCause::ScheduleFailing, id.to_string());
            if limit > 0 && streak >= limit {
                tracker.open_alert(key, None, (streak.into(), limit.into()), &mut changes);
            } else if streak == 0 {
                tracker.close_alert(key, &mut changes);
            }
        }
        AlertInput::BudgetUsed(agent, percent, time_left) => {
            tracker.update_budget_alert(agent, (percent, now + time_left), &mut changes);
        }
        AlertInput::AgentQuarantined(agent) => {
            tracker.open_alert(
                (AlertCause::AgentQuarantined, agent.to_string()),
                None,
                (1, 0),
                &mut changes,
            );
        }
        AlertInput::HostFaults(faults) => {
            let names = faults.iter().map(|fault| fault.as_str().to_owned()).collect();
            tracker.update_subject_alerts(AlertCause::ServiceUnready, names, &mut changes);
        }
        AlertInput::Shortages(shortages) => {
            let words = shortages.iter().map(|shortage| shortage.as_words().to_owned()).collect();
            tracker.update_subject_alerts(AlertCause::Pressure, words, &mut changes);
        }
        AlertInput::LedgerFreeBytes(bytes) => {
            tracker.update_free_space_alert(bytes, spec, &mut changes);
        }
        AlertInput::PushAbandoned(failures) => {
            let (key, until) =
                ((AlertCause::PushGivenUp, String::new()), now + spec.event_alert_duration);
            tracker.open_alert(key, Some(until), (failures.into(), 0), &mut changes);
        }
        AlertInput::Tick => tracker.close_expired_alerts(now, spec, &mut changes),
    }
    (tracker, changes)
}

impl AlertTracker {
    /// Returns true if some state expires with time, so that the caller must send ticks.
    #[must_use]
    pub fn needs_ticks(&self) -> bool {
        let expires = |(key, until): (&AlertKey, &Option<Duration>)| {
            key.0 == AlertCause::RequestRate || until.is_some()
        };
        !self.request_times.is_empty() || self.open_alerts.iter().any(expires)
    }

    fn open_alert(
        &mut self,
        key: AlertKey,
        until: Option<Duration>,
        (value, limit): (u64, u64),
        changes: &mut Vec<AlertChange>,
    ) {
        if self.open_alerts.insert(key.clone(), until).is_none() {
            changes.push(AlertChange::Opened(key, value, limit));
        }
    }

    fn close_alert(&mut self, key: AlertKey, changes: &mut Vec<AlertChange>) {
        if self.open_alerts.remove(&key).is_some() {
            changes.push(AlertChange::Closed(key));
        }
    }

    fn count_requests(
        &mut self,
        (endpoint, count): (String, u64),
        now: Duration,
        spec: &AlertSpec,
        changes: &mut Vec<AlertChange>,
    ) {
        let limit = u64::from(spec.requests_per_minute);
        if limit == 0 {
            return;
        }
        let times = self.request_times.entry(endpoint.clone()).or_default();
        remove_expired(times, now);
        let value = times.len() as u64 + count;
        times.extend((0..count.min(limit)).map(|_| now));
        if value > limit {
            times.drain(..times.len().saturating_sub(spec.requests_per_minute as usize));
            self.open_alert((AlertCause::RequestRate, endpoint), None, (value, limit), changes);
        }
    }

    fn count_outcome(
        &mut self,
        agent: AgentId,
        succeeded: bool,
        spec: &AlertSpec,
        changes: &mut Vec<AlertChange>,
    ) {
        let key = (AlertCause::FailureStreak, agent.to_string());
        if succeeded {
            self.failure_streaks.remove(&agent);
            return self.close_alert(key, changes);
        }
        let streak = self.failure_streaks.entry(agent).or_default();
        *streak = streak.saturating_add(1);
        let (streak, limit) = (*streak, spec.failure_streak);
        if limit > 0 && streak >= limit {
            self.open_alert(key, None, (streak.into(), limit.into()), changes);
        }
    }

    /// Closes the alert when the next day starts, or when the budget is increased.
    fn update_budget_alert(
        &mut self,
        agent: AgentId,
        (percent, until): (u64, Duration),
        changes: &mut Vec<AlertChange>,
    ) {
        let key = (AlertCause::BudgetNearlySpent, agent.to_string());
        if percent >= BUDGET_ALERT_PERCENT {
            self.open_alert(key, Some(until), (percent, BUDGET_ALERT_PERCENT), changes);
        } else {
            self.close_alert(key, changes);
        }
    }

    /// Opens an alert of the cause for each subject, and closes those of other subjects.
    fn update_subject_alerts(
        &mut self,
        cause: AlertCause,
        subjects: Vec<String>,
        changes: &mut Vec<AlertChange>,
    ) {
        let has_ended = |key: &&AlertKey| key.0 == cause && !subjects.contains(&key.1);
        for key in self.open_alerts.keys().filter(has_ended).cloned().collect::<Vec<_>>() {
            self.close_alert(key, changes);
        }
        for subject in subjects {
            self.open_alert((cause, subject), None, (1, 0), changes);
        }
    }

    /// Closes the alert at a quarter above the limit, so that the alert does not flap.
    fn update_free_space_alert(
        &mut self,
        bytes: u64,
        spec: &AlertSpec,
        changes: &mut Vec<AlertChange>,
    ) {
        let (key, limit) =
            ((AlertCause::LedgerNearlyFull, String::new()), spec.min_ledger_free_bytes);
        if bytes < limit {
            self.open_alert(key, None, (bytes, limit), changes);
        } else if bytes >= limit.saturating_add(limit / 4) {
            self.close_alert(key, changes);
        }
    }

    /// Closes a rate alert at a fifth below the limit, and other alerts at their closing time.
    fn close_expired_alerts(
        &mut self,
        now: Duration,
        spec: &AlertSpec,
        changes: &mut Vec<AlertChange>,
    ) {
        for times in self.request_times.values_mut() {
            remove_expired(times, now);
        }
        let max_closing_count = spec.requests_per_minute as usize * 4 / 5;
        let requests = &self.request_times;
        let has_ended = |(key, until): &(&AlertKey, &Option<Duration>)| match key.0 {
            AlertCause::RequestRate => {
                requests.get(&key.1).is_none_or(|times| times.len() <= max_closing_count)
            }
            _ => until.is_some_and(|until| until <= now),
        };
        let ended_keys: Vec<_> =
            self.open_alerts.iter().filter(has_ended).map(|(key, _)| key.clone()).collect();
        self.request_times.retain(|_, times| !times.is_empty());
        for key in ended_keys {
            self.close_alert(key, changes);
        }
    }
}

/// Removes requests that are older than the window.
fn remove_expired(times: &mut VecDeque<Duration>, now: Duration) {
    while times.front().is_some_and(|time| *time + REQUEST_RATE_WINDOW <= now) {
        times.pop_front();
    }
}

#[cfg(test)]
mod tests;
