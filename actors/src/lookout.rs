//! The way to whoever watches, for all who see something.

use std::collections::BTreeMap;
use std::mem;
use std::sync::Arc;

use ractor::ActorRef;
use tokio::sync::watch;

use crate::decide::alert::Sighting;
use crate::monitor::MonitorMsg;

/// The way to the present monitor. Cheap to clone.
#[derive(Clone, Default)]
pub struct Lookout(Arc<Inner>);

#[derive(Default)]
struct Inner {
    monitor: watch::Sender<Option<ActorRef<MonitorMsg>>>,
    /// Requests that nobody was told of yet, of each endpoint.
    requests: watch::Sender<BTreeMap<String, u64>>,
}

impl Lookout {
    /// Tells the monitor. While there is none, nobody hears it.
    pub fn see(&self, sighting: Sighting) {
        self.tell(MonitorMsg::Seen(sighting));
    }

    /// Counts a request to an endpoint. The monitor is told of the first, and takes all that came
    /// until it looks: a message for each would cost more than many an answer.
    pub fn count(&self, endpoint: &str) {
        let mut is_first = false;
        self.0.requests.send_if_modified(|requests| {
            is_first = requests.is_empty();
            match requests.get_mut(endpoint) {
                Some(count) => *count += 1,
                None => _ = requests.insert(endpoint.to_owned(), 1),
            }
            false // Nobody waits for this.
        });
        if is_first {
            self.tell(MonitorMsg::Requested);
        }
    }

    /// The requests since the last look.
    pub(crate) fn requests(&self) -> BTreeMap<String, u64> {
        let mut taken = BTreeMap::new();
        self.0.requests.send_if_modified(|requests| {
            taken = mem::take(requests);
            false
        });
        taken
    }

    /// The monitor is this one from now on. It begins anew.
    pub(crate) fn lead_to(&self, monitor: ActorRef<MonitorMsg>) {
        self.0.monitor.send_replace(Some(monitor));
        self.requests();
    }

    fn tell(&self, msg: MonitorMsg) {
        if let Some(monitor) = &*self.0.monitor.borrow() {
            _ = monitor.cast(msg); // A new one begins anew.
        }
    }
}
