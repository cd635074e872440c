//! Queue timeout: one timer for the first entry that has its reply, because all entries have the same timeout.

use std::time::Duration;

use tokio::time::Instant;

use super::{QueuedRequest, RequestQueue};
use crate::agent::AgentMsg;
use crate::agent::tasks::AgentBackgroundTasks;
use crate::model::id::ExecutionId;

/// Extension of the queue timeouts, by the time that the entries waited for the quota alone.
#[derive(Debug, Clone, Copy)]
pub(in crate::agent) struct TimeoutExtension {
    /// Time since when the quota was exhausted.
    pub(in crate::agent) exhausted_since: Instant,
    /// Present time.
    pub(in crate::agent) now: Instant,
    /// Queue timeout of the agent.
    pub(in crate::agent) queue_timeout: Duration,
    /// Longest extension.
    pub(in crate::agent) max_extension: Duration,
}

impl TimeoutExtension {
    /// Returns the deadline of an entry after the extension.
    fn extended_deadline(&self, deadline: Instant) -> Instant {
        let wait_start = deadline
            .checked_sub(self.queue_timeout)
            .unwrap_or(self.exhausted_since)
            .max(self.exhausted_since);
        let lost_time = self.now.saturating_duration_since(wait_start).min(self.max_extension);
        deadline.checked_add(lost_time).unwrap_or(deadline)
    }
}

impl RequestQueue {
    /// Starts the timer of the first entry, unless it runs. `extra_queue_time` is the additional queue time.
    pub(in crate::agent) fn schedule_timeout(
        &mut self,
        extra_queue_time: Duration,
        tasks: &mut AgentBackgroundTasks,
    ) {
        if let Some(wait) = self.take_timer_delay(extra_queue_time) {
            tasks.send_after(wait, AgentMsg::QueueTimeoutDue);
        }
    }

    /// Returns the wait for which a timer must start, unless one runs.
    fn take_timer_delay(&mut self, extra_queue_time: Duration) -> Option<Duration> {
        let time_left_of_first =
            self.acknowledged_entries().next().and_then(|id| self.time_left(id, extra_queue_time));
        let wait = time_left_of_first.filter(|_| !self.has_timeout_timer)?;
        self.has_timeout_timer = true;
        Some(wait)
    }

    /// Ignores the running timer, because it has ended or may end too late.
    pub(in crate::agent) const fn mark_timer_stopped(&mut self) {
        self.has_timeout_timer = false;
    }

    /// Returns the entries whose timeout has expired.
    pub(in crate::agent) fn expired_entries(&self, extra_queue_time: Duration) -> Vec<ExecutionId> {
        let is_due =
            |id: &ExecutionId| self.time_left(*id, extra_queue_time) == Some(Duration::ZERO);
        self.acknowledged_entries().take_while(is_due).collect()
    }

    /// Extends the timeouts of all entries except deferred ones.
    pub(in crate::agent) fn extend_timeouts(&mut self, extension: TimeoutExtension) {
        for entry in self.entries.values_mut().filter(|entry| entry.deferral.is_none()) {
            entry.deadline = extension.extended_deadline(entry.deadline);
        }
    }

    /// Iterates over the entries whose submitter has its reply, in order.
    fn acknowledged_entries(&self) -> impl Iterator<Item = ExecutionId> + '_ {
        let is_acknowledged = |entry: &QueuedRequest| !entry.awaits_submit_reply();
        self.admission_queue
            .waiting()
            .filter(move |id| self.entries.get(id).is_some_and(is_acknowledged))
    }

    /// Returns the remaining queue time of an entry.
    fn time_left(&self, id: ExecutionId, extra_queue_time: Duration) -> Option<Duration> {
        let deadline = self.entries.get(&id)?.deadline;
        let deadline = deadline.checked_add(extra_queue_time).unwrap_or(deadline);
        Some(deadline.saturating_duration_since(Instant::now()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_timeout_is_extended_by_the_wait_for_the_quota_alone() {
        let minutes = |count: u64| Duration::from_secs(60 * count);
        let exhausted_since = Instant::now();
        let (now, queue_timeout) = (exhausted_since + minutes(20), minutes(30));
        let extension =
            TimeoutExtension { exhausted_since, now, queue_timeout, max_extension: minutes(15) };
        let deadline_of_later_entry = exhausted_since + minutes(10) + queue_timeout;
        let extended = extension.extended_deadline(deadline_of_later_entry);
        assert_eq!(extended, deadline_of_later_entry + minutes(10));
        let deadline_of_earlier_entry = exhausted_since + minutes(25);
        let extended = extension.extended_deadline(deadline_of_earlier_entry);
        assert_eq!(extended, deadline_of_earlier_entry + minutes(15), "no more than the longest");
    }
}
