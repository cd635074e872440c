//! Alerts of the monitor, reported to the log and the observer.

use std::collections::BTreeMap;

use super::MonitorActorState;
use crate::decide::notification::alert::{AlertChange, AlertInput, AlertKey, apply_alert_input};
use crate::model::observation::alert::{Alert, AlertPhase};
use crate::model::observation::telemetry_events::TelemetryEvent;

/// Open alerts by their key.
pub(in crate::maintenance::monitor) type OpenAlerts = BTreeMap<AlertKey, Alert>;

impl MonitorActorState {
    /// Applies an input. No other function opens or closes alerts.
    pub(in crate::maintenance::monitor) fn apply_alert_input(&mut self, alert_input: AlertInput) {
        let (now, spec) = (self.start_instant.elapsed(), self.args.settings.alert_spec);
        let (tracker, changes) =
            apply_alert_input(std::mem::take(&mut self.tracker), alert_input, now, &spec);
        self.tracker = tracker;
        for change in changes {
            self.apply_change(change);
        }
    }

    fn apply_change(&mut self, change: AlertChange) {
        let transition = match change {
            AlertChange::Opened((cause, subject), value, limit) => {
                let since = self.args.services.clock.now();
                let alert = Alert { cause, subject: subject.clone(), since, value, limit };
                self.open_alerts.insert((cause, subject), alert.clone());
                Some((AlertPhase::Opened, alert))
            }
            AlertChange::Closed(key) => {
                self.open_alerts.remove(&key).map(|alert| (AlertPhase::Closed, alert))
            }
        };
        if let Some((phase, alert)) = transition {
            log_alert(phase, &alert);
            self.args.services.observer.record(TelemetryEvent::AlertChanged(phase, alert));
        }
    }
}

fn log_alert(phase: AlertPhase, alert: &Alert) {
    let Alert { cause, subject, value, limit, .. } = alert;
    let cause = cause.as_str();
    match phase {
        AlertPhase::Opened => tracing::warn!(cause, subject, value, limit, "alert"),
        AlertPhase::Closed => tracing::info!(cause, subject, "alert over"),
    }
}
