//! Queue positions that waiting executions show, kept up to date.

use std::collections::HashMap;
use std::mem;
use std::time::Duration;

use super::RequestQueue;
use crate::agent::AgentMsg;
use crate::agent::credential_gate::WaitCause;
use crate::agent::tasks::AgentBackgroundTasks;
use crate::model::agent::queue::{QueueReason, Queued};
use crate::model::id::ExecutionId;
use crate::model::observation::status::QueuedStatus;

/// Longest queue that is notified of every change.
const MAX_SHORT_QUEUE_LENGTH: usize = 64;

/// Minimum interval of notifications in a longer queue: a notification of thousands of entries at each change was most
/// of the work.
const MIN_NOTICE_INTERVAL: Duration = Duration::from_millis(100);

/// Average number of notified entries per millisecond in the longest queues.
const NOTICES_PER_MS: usize = 5;

/// Decision when the entries are notified of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NoticeTiming {
    /// The entries are notified now.
    Now,
    /// The entries are notified after this time.
    After(Duration),
    /// An earlier decision covers the change.
    AlreadyScheduled,
}

impl RequestQueue {
    /// Notifies the entries after a change of the queue, those of a long queue later.
    pub(in crate::agent) fn notify_change(
        &mut self,
        wait_cause: Option<WaitCause>,
        tasks: &mut AgentBackgroundTasks,
    ) {
        match self.decide_notice_timing() {
            NoticeTiming::Now => self.notify_all(wait_cause),
            NoticeTiming::After(notice_interval) => {
                tasks.send_after(notice_interval, AgentMsg::PositionNoticesDue);
            }
            NoticeTiming::AlreadyScheduled => {}
        }
    }

    /// Decides when the entries are notified of a change of the queue.
    fn decide_notice_timing(&mut self) -> NoticeTiming {
        if self.entries.len() <= MAX_SHORT_QUEUE_LENGTH {
            NoticeTiming::Now
        } else if mem::replace(&mut self.is_position_notice_scheduled, true) {
            NoticeTiming::AlreadyScheduled
        } else {
            NoticeTiming::After(notice_interval(self.entries.len()))
        }
    }

    /// Notifies all entries of a long queue, after its pause.
    pub(in crate::agent) fn send_position_notices(&mut self, wait_cause: Option<WaitCause>) {
        self.is_position_notice_scheduled = false;
        self.notify_all(wait_cause);
    }

    /// Notifies a new entry of its position.
    pub(in crate::agent) fn notify(
        &self,
        id: ExecutionId,
        position: usize,
        wait_cause: Option<WaitCause>,
    ) {
        if let Some(entry) = self.entries.get(&id) {
            let queued =
                entry.displayed_position(Queued::new(position, QueueReason::AgentBusy), wait_cause);
            entry.progress.send_if_modified(|progress| progress.set_queue_position(Some(queued)));
        }
    }

    /// Notifies all entries of their positions. Positions are not recorded, because they are only true now.
    fn notify_all(&self, wait_cause: Option<WaitCause>) {
        let mut positions: HashMap<_, _> = self.admission_queue.positions().collect();
        for (id, entry) in &self.entries {
            let queued = positions.remove(id).filter(|_| !entry.awaits_submit_reply());
            let queued = queued.map(|queued| entry.displayed_position(queued, wait_cause));
            entry.progress.send_if_modified(|progress| progress.set_queue_position(queued));
        }
    }

    /// Returns the displayed entries; `queue_timeout` includes the additional queue time.
    pub(in crate::agent) fn statuses(
        &self,
        wait_cause: Option<WaitCause>,
        queue_timeout: Duration,
    ) -> Vec<QueuedStatus> {
        let statuses = self.admission_queue.positions().filter_map(|(id, queued)| {
            let entry = self.entries.get(&id)?;
            let Queued { position, reason, until } = entry.displayed_position(queued, wait_cause);
            let deadline = entry
                .deferral
                .map_or(entry.queued_since + queue_timeout, |deferral| deferral.until);
            Some(QueuedStatus { id, position, reason, since: entry.queued_since, until, deadline })
        });
        statuses.collect()
    }
}

/// Returns the notification interval for a queue of this length.
fn notice_interval(length: usize) -> Duration {
    MIN_NOTICE_INTERVAL.max(Duration::from_millis((length / NOTICES_PER_MS) as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn position_updates_slow_down_as_the_queue_grows() {
        let intervals = [65, 500, 10_000, 20_000].map(|length| notice_interval(length).as_millis());
        assert_eq!(intervals, [100, 100, 2_000, 4_000]);
    }
}
