//! Published status of the configuration in force.

use std::sync::Arc;

use algonius_actors::ports::clock::Clock;
use chrono::{DateTime, Utc};
use tokio::sync::watch;
use tracing::Level;

use crate::wire::admin::{AppliedChanges, ConfigurationError, ConfigurationStatus, ReloadResult};

/// Publisher of the status and the log level of the configuration in force.
pub(super) struct StatusPublisher {
    clock: Arc<dyn Clock>,
    /// Time at which the present configuration came into force.
    since: DateTime<Utc>,
    status: watch::Sender<ConfigurationStatus>,
    levels: watch::Sender<Level>,
}

/// Automatic application of changed files: active, or the reason why not.
pub(super) struct WatchState {
    pub(super) is_watching: bool,
    pub(super) obstacle: Option<String>,
}

impl StatusPublisher {
    /// Returns the publisher for a configuration that comes into force now.
    pub(super) fn new(
        clock: Arc<dyn Clock>,
        status: watch::Sender<ConfigurationStatus>,
        levels: watch::Sender<Level>,
    ) -> Self {
        Self { since: clock.now(), clock, status, levels }
    }

    /// Returns the time at which the present configuration came into force.
    pub(super) const fn since(&self) -> DateTime<Utc> {
        self.since
    }

    /// Publishes the configuration of the start.
    pub(super) fn start(&self, watch: WatchState, switched: Vec<String>) {
        self.status.send_replace(ConfigurationStatus {
            generation: 1,
            since: self.since,
            read_at: self.since,
            watched: watch.is_watching,
            unwatched_reason: watch.obstacle,
            switched,
            ..ConfigurationStatus::default()
        });
    }

    /// Publishes the result of a reload.
    pub(super) fn publish_result(
        &self,
        reloaded: &ReloadResult,
        watch: WatchState,
        switched: Vec<String>,
    ) {
        self.status.send_replace(ConfigurationStatus {
            generation: reloaded.generation,
            since: self.since,
            read_at: self.clock.now(),
            watched: watch.is_watching,
            unwatched_reason: watch.obstacle,
            pending: reloaded.pending.clone(),
            rejected: reloaded.rejected.clone(),
            switched,
        });
    }

    /// Publishes whether changed files are applied automatically.
    pub(super) fn watch_state(&self, watch: WatchState) {
        let WatchState { is_watching, obstacle } = watch;
        self.status.send_if_modified(|status| {
            let is_new = status.watched != is_watching || status.unwatched_reason != obstacle;
            (status.watched, status.unwatched_reason) = (is_watching, obstacle);
            is_new
        });
    }

    /// Publishes the agents whose state differs from the configuration.
    pub(super) fn publish_switched(&self, switched: Vec<String>) {
        self.status.send_modify(|status| status.switched = switched);
    }

    /// Publishes a log level.
    pub(super) fn set_level(&self, level: Level) {
        self.levels.send_if_modified(|known| std::mem::replace(known, level) != level);
    }

    /// Returns the report about applied changes, which begin a new generation unless there are none.
    pub(super) fn applied_report(
        &mut self,
        applied: AppliedChanges,
        pending: Vec<String>,
    ) -> ReloadResult {
        let is_new = !applied.is_empty();
        if is_new {
            self.since = self.clock.now();
        }
        let generation = self.status.borrow().generation + u64::from(is_new);
        let (rejected, warnings) = (Vec::new(), Vec::new());
        ReloadResult { generation, applied, pending, rejected, warnings }
    }

    /// Returns the report about a rejected configuration.
    pub(super) fn rejected_report(&self, rejected: Vec<ConfigurationError>) -> ReloadResult {
        let ConfigurationStatus { generation, pending, .. } = self.status.borrow().clone();
        let (applied, warnings) = (AppliedChanges::default(), Vec::new());
        ReloadResult { generation, applied, pending, rejected, warnings }
    }
}
