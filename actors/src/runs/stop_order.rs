//! Order to stop a run.

use tokio::sync::watch;

/// Receiver of the order to stop.
pub(super) struct StopOrder(watch::Receiver<bool>);

impl StopOrder {
    pub(super) const fn new(order: watch::Receiver<bool>) -> Self {
        Self(order)
    }

    /// Returns true if the run has to stop.
    pub(super) fn is_given(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once the run has to stop. A dropped lease is no order: another run continues.
    pub(super) async fn wait(&mut self) {
        if self.0.wait_for(|is_ordered| *is_ordered).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
