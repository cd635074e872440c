//! Whether the service can take work now.

use std::time::Duration;

use tokio::time::timeout;

use crate::door::Gateway;
use crate::model::id::ExecutionId;

/// How long the ledger may take to answer.
const PATIENCE: Duration = Duration::from_secs(2);

impl Gateway {
    /// Why no work can be taken now, in words; nothing when it can. Pressure is no reason: it passes,
    /// and what is refused for it is told to come again.
    pub async fn unready(&self) -> Vec<&'static str> {
        let draining = *self.draining.borrow();
        let asked = tokio::join!(self.root_view(), self.ask_gateway(), self.is_readable());
        let (root, gateway, is_readable) = asked;
        let reasons = [
            (draining, "draining"),
            (root.is_none() || gateway.is_none(), "tree"),
            (!is_readable, "ledger"),
        ];
        reasons.into_iter().filter(|(is_so, _)| *is_so).map(|(_, word)| word).collect()
    }

    /// Whether the ledger answers, whatever it says.
    async fn is_readable(&self) -> bool {
        let reading = self.kit.ledger.execution(ExecutionId(uuid::Uuid::nil()));
        timeout(PATIENCE, reading).await.is_ok_and(|read| read.is_ok())
    }

    /// Tells whoever watches.
    pub fn see(&self, sighting: crate::decide::alert::Sighting) {
        self.kit.lookout.see(sighting);
    }

    /// Counts a request to an endpoint, for whoever watches.
    pub fn count(&self, endpoint: &str) {
        self.kit.lookout.count(endpoint);
    }
}
