//! Pool of session processes between the messages of their conversations.
//!
//! Each conversation has at most one process. A task holds an idle process: it drains the output, and ends the process
//! after the idle time, after an exceeded limit, or when another process needs its place in the pool. Dropping the
//! pool ends all idle processes.

use std::collections::HashMap;
use std::sync::{Arc, Weak};
use std::time::Duration;

use algonius_actors::model::execution::usage::UsageReading;
use algonius_actors::model::host::resources::ResourceLimits;
use algonius_actors::model::observation::status::PooledProcess;
use algonius_actors::model::program::stdio_protocol::PoolSettings;
use algonius_actors::model::session::ConversationKey;
use algonius_warden::{OutputPipe, UsageGauge};
use chrono::{DateTime, Utc};
use tokio::io::AsyncReadExt;
use tokio::sync::{oneshot, watch};
use tokio::time::{MissedTickBehavior, interval, timeout};

use super::process::SessionProcess;
use crate::drivers::program::limit_monitor::wait_until_limit_exceeded;

/// Interval between two measurements of an idle program.
const MEASUREMENT_INTERVAL: Duration = Duration::from_secs(2);

/// Terms for holding an idle program.
#[derive(Debug, Clone, Copy)]
pub(super) struct IdleProcessLimits {
    /// Grace period for its end.
    pub(super) grace: Duration,
    /// Resource limits of the program.
    pub(super) resources: ResourceLimits,
}

/// Session processes of one agent.
pub(in crate::drivers::program) struct ProcessPool {
    settings: PoolSettings,
    entries: watch::Sender<ProcessEntries>,
}

#[derive(Default)]
struct ProcessEntries {
    by_conversation: HashMap<ConversationKey, ProcessEntry>,
    /// Number of entries that were ever created.
    created_entry_count: u64,
}

/// Entry of one program.
struct ProcessEntry {
    number: u64,
    status: PooledProcess,
    /// Handle of the idle program; `None` while it handles a message.
    idle_handle: Option<IdleHandle>,
}

/// Handle to the task that holds an idle program. Dropping it ends the program.
struct IdleHandle {
    request_sender: oneshot::Sender<oneshot::Sender<ReservedProcess>>,
    /// Closes when the program has ended.
    end_receiver: oneshot::Receiver<()>,
}

/// Reservation of an entry in the pool. Dropping it releases the entry.
pub(super) struct PoolReservation {
    conversation: ConversationKey,
    entry_number: u64,
    pool: Weak<ProcessPool>,
}

/// Session process with its entry in the pool.
pub(super) struct ReservedProcess {
    pub(super) process: SessionProcess,
    pub(super) reservation: PoolReservation,
}

impl ReservedProcess {
    /// Ends the program, and then releases its entry.
    pub(super) async fn end(self, grace: Duration) {
        self.process.end(grace).await;
        drop(self.reservation);
    }

    /// Removes the remains of a program that has ended, and then releases its entry.
    pub(super) async fn clean_up(self) {
        self.process.clean_up().await;
        drop(self.reservation);
    }
}

impl Drop for PoolReservation {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.upgrade() {
            pool.entries.send_modify(|entries| {
                let is_reserved = |entry: &ProcessEntry| entry.number == self.entry_number;
                if entries.by_conversation.get(&self.conversation).is_some_and(is_reserved) {
                    entries.by_conversation.remove(&self.conversation);
                }
            });
        }
    }
}

impl ProcessPool {
    /// Returns an empty pool.
    pub(in crate::drivers::program) fn new(settings: PoolSettings) -> Arc<Self> {
        Arc::new(Self { settings, entries: watch::Sender::default() })
    }

    /// Returns the running programs, the oldest first.
    pub(in crate::drivers::program) fn pooled_processes(&self) -> Vec<PooledProcess> {
        let entries = self.entries.borrow();
        let mut processes: Vec<_> =
            entries.by_conversation.values().map(|entry| entry.status).collect();
        processes.sort_by_key(|status| (status.since, status.pid));
        processes
    }

    /// Takes the idle program of a conversation, if it is alive.
    pub(super) async fn take(&self, conversation: &ConversationKey) -> Option<ReservedProcess> {
        let mut idle_handle = None;
        self.entries.send_modify(|entries| {
            if let Some(entry) = entries.by_conversation.get_mut(conversation) {
                (idle_handle, entry.status.busy) = (entry.idle_handle.take(), true);
            }
        });
        let (reply, reply_receiver) = oneshot::channel();
        idle_handle?.request_sender.send(reply).ok()?;
        reply_receiver.await.ok()
    }

    /// Reserves an entry for a program that is about to start. In a full pool, first ends the program with the longest
    /// idle time.
    pub(super) async fn reserve(
        self: &Arc<Self>,
        conversation: &ConversationKey,
        now: DateTime<Utc>,
    ) -> PoolReservation {
        while let Some(IdleHandle { request_sender, end_receiver }) = self.evict_longest_idle() {
            drop(request_sender);
            _ = end_receiver.await; // An error also means that the program has ended.
        }
        let mut number = 0;
        self.entries.send_modify(|entries| {
            entries.created_entry_count += 1;
            number = entries.created_entry_count;
            let status = PooledProcess { pid: 0, busy: true, since: now, used: now, usage: None };
            let entry = ProcessEntry { number, status, idle_handle: None };
            entries.by_conversation.insert(conversation.clone(), entry);
        });
        PoolReservation {
            conversation: conversation.clone(),
            entry_number: number,
            pool: Arc::downgrade(self),
        }
    }

    /// Removes and returns the longest idle program if the pool is full.
    fn evict_longest_idle(&self) -> Option<IdleHandle> {
        let mut idle_handle = None;
        self.entries.send_if_modified(|entries| {
            if entries.by_conversation.len() < self.settings.max_programs {
                return false;
            }
            let idle_entries =
                entries.by_conversation.iter().filter(|(_, entry)| entry.idle_handle.is_some());
            let longest_idle = idle_entries.min_by_key(|(_, entry)| entry.status.used);
            let longest_idle = longest_idle.map(|(conversation, _)| conversation.clone());
            idle_handle = longest_idle.and_then(|conversation| {
                entries.by_conversation.remove(&conversation)?.idle_handle
            });
            idle_handle.is_some()
        });
        idle_handle
    }

    /// Records the process of an entry.
    pub(super) fn record_pid(&self, reservation: &PoolReservation, pid: u32) {
        self.update_entry(reservation, |entry| entry.status.pid = pid);
    }

    /// Keeps a program until the next message of its conversation.
    pub(super) fn put_back(
        self: &Arc<Self>,
        reserved: ReservedProcess,
        limits: IdleProcessLimits,
        now: DateTime<Utc>,
    ) {
        let ((request_sender, request_receiver), (ended_sender, end_receiver)) =
            (oneshot::channel(), oneshot::channel());
        self.update_entry(&reserved.reservation, |entry| {
            (entry.status.busy, entry.status.used) = (false, now);
            entry.idle_handle = Some(IdleHandle { request_sender, end_receiver });
        });
        let pool = Arc::downgrade(self);
        let idle_timeout = self.settings.idle_timeout;
        tokio::spawn(async move {
            hold_idle_process(reserved, request_receiver, (pool, idle_timeout, limits)).await;
            drop(ended_sender);
        });
    }

    fn update_entry(&self, reservation: &PoolReservation, change: impl FnOnce(&mut ProcessEntry)) {
        self.entries.send_modify(|entries| {
            let entry = entries.by_conversation.get_mut(&reservation.conversation);
            if let Some(entry) = entry.filter(|entry| entry.number == reservation.entry_number) {
                change(entry);
            }
        });
    }
}

/// Outcome of holding an idle program.
enum IdleEnd {
    Requested(oneshot::Sender<ReservedProcess>),
    ProgramExited,
    Evicted(&'static str),
}

/// Holds an idle program until a message needs it or the pool ends it.
async fn hold_idle_process(
    mut reserved: ReservedProcess,
    request_receiver: oneshot::Receiver<oneshot::Sender<ReservedProcess>>,
    (pool, idle_timeout, limits): (Weak<ProcessPool>, Duration, IdleProcessLimits),
) {
    let ReservedProcess { process, reservation } = &mut reserved;
    let SessionProcess { stdout, stderr, program_exit, tree, .. } = process;
    let idle_end = tokio::select! {
        biased;
        request = request_receiver => match request {
            Ok(reply) => IdleEnd::Requested(reply),
            Err(_) => IdleEnd::Evicted("its place is needed, or its agent is gone"),
        },
        _ = program_exit => IdleEnd::ProgramExited,
        failure = wait_until_limit_exceeded(&limits.resources, &**tree) => {
            tracing::warn!(%failure, "idle session process exceeds its resource limits");
            IdleEnd::Evicted("it exceeded its resource limits")
        }
        () = discard_output(stdout, stderr) => IdleEnd::Evicted("it has closed its output"),
        () = record_idle_usage(&pool, reservation, tree.gauge()) => IdleEnd::Evicted("its agent is gone"),
        _late = timeout(idle_timeout, std::future::pending::<()>()) => IdleEnd::Evicted("it was idle for too long"),
    };
    match idle_end {
        IdleEnd::Requested(reply) => {
            if let Err(reserved) = reply.send(reserved) {
                reserved.end(limits.grace).await; // The requester is gone.
            }
        }
        IdleEnd::ProgramExited => {
            tracing::info!(
                pid = reserved.process.pid,
                "session process exited between two messages"
            );
            reserved.clean_up().await;
        }
        IdleEnd::Evicted(reason) => {
            tracing::info!(pid = reserved.process.pid, reason, "ending session process");
            reserved.end(limits.grace).await;
        }
    }
}

/// Drains unrequested output, so that no program blocks at a full pipe. Returns when standard output has ended.
async fn discard_output(stdout: &mut OutputPipe, stderr: &mut OutputPipe) {
    let discard = async |pipe: &mut OutputPipe| {
        let mut bytes = [0; 4096];
        while pipe.read(&mut bytes).await.is_ok_and(|count| count > 0) {}
    };
    let stderr_future = async {
        discard(stderr).await;
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = discard(stdout) => {}
        () = stderr_future => {}
    }
}

/// Measures the usage periodically; returns when the pool is gone.
async fn record_idle_usage(
    pool: &Weak<ProcessPool>,
    reservation: &PoolReservation,
    gauge: UsageGauge,
) {
    let mut ticks = interval(MEASUREMENT_INTERVAL);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let usage: Option<UsageReading> = gauge.clone().read().await;
        let Some(pool) = pool.upgrade() else { return };
        pool.update_entry(reservation, |entry| entry.status.usage = usage.or(entry.status.usage));
    }
}
