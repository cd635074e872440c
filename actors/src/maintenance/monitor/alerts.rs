//! Alerts of the monitor, reported to the log and the observer.

use std::collections::BTreeMap;

use super::MonitorData;
use crate::decide::notification::alert::{AlertChange, AlertInput, AlertKey, step};
use crate::model::observation::alert::{Alert, AlertPhase};
use crate::model::observation::telemetry_events::TelemetryEvent;

/// Open alerts by their key.
pub(in crate::maintenance::monitor) type OpenAlerts = BTreeMap<AlertKey, Alert>;

impl MonitorData {
    /// Applies an input. No other function opens or closes alerts.
    pub(in crate::maintenance::monitor) fn observe(&mut self, sighting: AlertInput) {
        let (now, spec) = (self.born.elapsed(), self.args.alerts);
        let (watch, changes) = step(std::mem::take(&mut self.watch), sighting, now, &spec);
        self.watch = watch;
        for change in changes {
            self.alert(change);
        }
    }

    fn alert(&mut self, change: AlertChange) {
        let told = match change {
            AlertChange::Opened((cause, subject), value, limit) => {
                let since = self.args.services.clock.now();
                let alert = Alert { cause, subject: subject.clone(), since, value, limit };
                self.open.insert((cause, subject), alert.clone());
                Some((AlertPhase::Opened, alert))
            }
            AlertChange::Closed(key) => {
                self.open.remove(&key).map(|alert| (AlertPhase::Closed, alert))
            }
        };
        if let Some((turn, alert)) = told {
            log(turn, &alert);
            self.args.services.observer.record(TelemetryEvent::Alerted(turn, alert));
        }
    }
}

fn log(turn: AlertPhase, alert: &Alert) {
    let Alert { cause, subject, value, limit, .. } = alert;
    let cause = cause.as_str();
    match turn {
        AlertPhase::Opened => tracing::warn!(cause, subject, value, limit, "alert"),
        AlertPhase::Closed => tracing::info!(cause, subject, "alert over"),
    }
}
