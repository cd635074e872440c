//! Handle of the monitor, for all components that report alert inputs.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use chrono::{DateTime, Utc};
use ractor::{ActorRef, RpcReplyPort};
use tokio::sync::watch;

use crate::decide::notification::alert::AlertInput;
use crate::model::host::host_fault::HostFault;
use crate::model::host::pressure::HostReading;
use crate::model::observation::alert::Alert;

/// Message to the monitor.
pub enum MonitorMsg {
    /// A reading of the machine.
    HostMeasured(HostReading),
    /// Preconditions of all executions that are not fulfilled; empty if all are.
    HostChecked(Vec<HostFault>),
    /// A reading of the machine, or the check of its preconditions, panicked.
    BackgroundFuturePanicked,
    /// An input of the alert logic.
    AlertInputReceived(AlertInput),
    /// Requests were counted, and more may follow until the next tick.
    RequestCountsPending,
    /// Requests the start time and the open alerts.
    Inspect(RpcReplyPort<(DateTime<Utc>, Vec<Alert>)>),
}

/// Handle of the present monitor. Clones are cheap.
#[derive(Clone, Default)]
pub struct MonitorHandle(Arc<MonitorHandleState>);

#[derive(Default)]
struct MonitorHandleState {
    monitor: watch::Sender<Option<ActorRef<MonitorMsg>>>,
    /// Requests of each endpoint that the monitor has not received yet.
    request_counts: watch::Sender<BTreeMap<String, u64>>,
}

impl MonitorHandle {
    /// Sends an input to the monitor. Without a monitor the input is dropped.
    pub fn send_alert_input(&self, alert_input: AlertInput) {
        self.send(MonitorMsg::AlertInputReceived(alert_input));
    }

    /// Reports the preconditions that a check between the regular ones found unfulfilled.
    pub(crate) fn report_faults(&self, faults: Vec<HostFault>) {
        self.send(MonitorMsg::HostChecked(faults));
    }

    /// Counts a request to an endpoint. The monitor is notified of the first one and later takes all of them: a message
    /// for each would cost more than many a response.
    pub fn count_request(&self, endpoint: &str) {
        let mut is_first = false;
        self.0.request_counts.send_if_modified(|requests| {
            is_first = requests.is_empty();
            match requests.get_mut(endpoint) {
                Some(count) => *count += 1,
                None => _ = requests.insert(endpoint.to_owned(), 1),
            }
            false // No receiver waits for this change.
        });
        if is_first {
            self.send(MonitorMsg::RequestCountsPending);
        }
    }

    /// Returns and removes the requests since the last call.
    pub(crate) fn take_request_counts(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        self.0.request_counts.send_if_modified(|requests| {
            counts = mem::take(requests);
            false
        });
        counts
    }

    /// Replaces the monitor, which starts without state.
    pub(crate) fn set_monitor(&self, monitor: ActorRef<MonitorMsg>) {
        self.0.monitor.send_replace(Some(monitor));
        self.take_request_counts();
    }

    fn send(&self, msg: MonitorMsg) {
        if let Some(monitor) = &*self.0.monitor.borrow() {
            _ = monitor.cast(msg); // A new monitor starts without state.
        }
    }
}
