//! The way to whoever watches, for all who see something.

use std::sync::Arc;

use ractor::ActorRef;
use tokio::sync::watch;

use crate::decide::alert::Sighting;
use crate::monitor::MonitorMsg;

/// The way to the present monitor. Cheap to clone.
#[derive(Clone, Default)]
pub struct Lookout(Arc<watch::Sender<Option<ActorRef<MonitorMsg>>>>);

impl Lookout {
    /// Tells the monitor. While there is none, nobody hears it.
    pub fn see(&self, sighting: Sighting) {
        if let Some(monitor) = &*self.0.borrow() {
            _ = monitor.cast(MonitorMsg::Seen(sighting)); // A new one begins anew.
        }
    }

    /// The monitor is this one from now on.
    pub(crate) fn lead_to(&self, monitor: ActorRef<MonitorMsg>) {
        self.0.send_replace(Some(monitor));
    }
}
