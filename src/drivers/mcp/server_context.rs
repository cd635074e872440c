//! Context that all servers share.

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::drivers::program::backend_process::BackendLauncher;

/// Context that all servers share. Cheap to clone.
#[derive(Clone)]
pub(super) struct SharedServerContext {
    pub(super) launcher: BackendLauncher,
    /// Each background work holds a receiver.
    work_tracker: watch::Sender<()>,
    /// True once the service stops.
    stop_sender: watch::Sender<bool>,
}

impl SharedServerContext {
    pub(super) fn new(launcher: BackendLauncher) -> Self {
        Self {
            launcher,
            work_tracker: watch::Sender::default(),
            stop_sender: watch::Sender::default(),
        }
    }

    /// Starts a background work that the stop of the service waits for: the start or the supervision of a process.
    pub(super) fn spawn<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> JoinHandle<T> {
        let receiver = self.work_tracker.subscribe();
        tokio::spawn(async move {
            let result = work.await;
            drop(receiver);
            result
        })
    }

    /// Returns a receiver of true once the service stops.
    pub(super) fn stop_receiver(&self) -> watch::Receiver<bool> {
        self.stop_sender.subscribe()
    }

    /// Orders all works to stop, and returns when none is left.
    pub(super) async fn stop(&self) {
        self.stop_sender.send_replace(true);
        self.work_tracker.closed().await;
    }
}
