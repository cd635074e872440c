//! What the monitor makes of what was seen: alerts that are open, told to the log and the observer.

use std::collections::BTreeMap;

use super::MonitorData;
use crate::decide::alert::{Change, Key, Sighting, step};
use crate::model::alert::{Alert, Turn};
use crate::model::news::News;

/// What is open, by what it is about.
pub(super) type Open = BTreeMap<Key, Alert>;

impl MonitorData {
    /// The only place where alerts open and close.
    pub(super) fn seen(&mut self, sighting: Sighting) {
        let (now, spec) = (self.born.elapsed(), self.args.alerts);
        let (watch, changes) = step(std::mem::take(&mut self.watch), sighting, now, &spec);
        self.watch = watch;
        for change in changes {
            self.alert(change);
        }
    }

    fn alert(&mut self, change: Change) {
        let told = match change {
            Change::Opened((cause, subject), value, limit) => {
                let since = self.args.kit.clock.now();
                let alert = Alert { cause, subject: subject.clone(), since, value, limit };
                self.open.insert((cause, subject), alert.clone());
                Some((Turn::Opened, alert))
            }
            Change::Closed(key) => self.open.remove(&key).map(|alert| (Turn::Closed, alert)),
        };
        if let Some((turn, alert)) = told {
            log(turn, &alert);
            self.args.kit.observer.tell(News::Alerted(turn, alert));
        }
    }
}

fn log(turn: Turn, alert: &Alert) {
    let Alert { cause, subject, value, limit, .. } = alert;
    let cause = cause.as_str();
    match turn {
        Turn::Opened => tracing::warn!(cause, subject, value, limit, "alert"),
        Turn::Closed => tracing::info!(cause, subject, "alert over"),
    }
}
