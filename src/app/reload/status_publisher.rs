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
    in_force_since: DateTime<Utc>,
    status: watch::Sender<ConfigurationStatus>,
    log_level: watch::Sender<Level>,
}

/// Automatic application of changed files: active, or the reason why not.
pub(super) struct AutoReloadState {
    pub(super) is_active: bool,
    pub(super) auto_reload_obstacle: Option<String>,
}

impl StatusPublisher {
    /// Returns the publisher for a configuration that comes into force now.
    pub(super) fn new(
        clock: Arc<dyn Clock>,
        status: watch::Sender<ConfigurationStatus>,
        log_level: watch::Sender<Level>,
    ) -> Self {
        Self { in_force_since: clock.now(), clock, status, log_level }
    }

    /// Returns the time at which the present configuration came into force.
    pub(super) const fn in_force_since(&self) -> DateTime<Utc> {
        self.in_force_since
    }

    /// Publishes the configuration of the start.
    pub(super) fn publish_initial_status(
        &self,
        auto_reload_state: AutoReloadState,
        switched_agents: Vec<String>,
    ) {
        self.status.send_replace(ConfigurationStatus {
            generation: 1,
            since: self.in_force_since,
            read_at: self.in_force_since,
            watched: auto_reload_state.is_active,
            unwatched_reason: auto_reload_state.auto_reload_obstacle,
            switched: switched_agents,
            ..ConfigurationStatus::default()
        });
    }

    /// Publishes the result of a reload.
    pub(super) fn publish_result(
        &self,
        reload_result: &ReloadResult,
        auto_reload_state: AutoReloadState,
        switched_agents: Vec<String>,
    ) {
        self.status.send_replace(ConfigurationStatus {
            generation: reload_result.generation,
            since: self.in_force_since,
            read_at: self.clock.now(),
            watched: auto_reload_state.is_active,
            unwatched_reason: auto_reload_state.auto_reload_obstacle,
            pending: reload_result.pending.clone(),
            rejected: reload_result.rejected.clone(),
            switched: switched_agents,
        });
    }

    /// Publishes whether changed files are applied automatically.
    pub(super) fn publish_auto_reload_state(&self, auto_reload_state: AutoReloadState) {
        let AutoReloadState { is_active: is_watching, auto_reload_obstacle: obstacle } =
            auto_reload_state;
        self.status.send_if_modified(|status| {
            let has_changed = status.watched != is_watching || status.unwatched_reason != obstacle;
            (status.watched, status.unwatched_reason) = (is_watching, obstacle);
            has_changed
        });
    }

    /// Publishes the agents whose state differs from the configuration.
    pub(super) fn publish_switched_agents(&self, switched_agents: Vec<String>) {
        self.status.send_modify(|status| status.switched = switched_agents);
    }

    /// Publishes a log level.
    pub(super) fn publish_log_level(&self, level: Level) {
        self.log_level.send_if_modified(|current| std::mem::replace(current, level) != level);
    }

    /// Records applied changes, which begin a new generation unless there are none, and returns the report about them.
    pub(super) fn start_generation_and_report(
        &mut self,
        applied: AppliedChanges,
        pending: Vec<String>,
    ) -> ReloadResult {
        let has_changes = !applied.is_empty();
        if has_changes {
            self.in_force_since = self.clock.now();
        }
        let generation = self.status.borrow().generation + u64::from(has_changes);
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
