//! Attempt at a run: its start, its handle, the order to stop it, and its end.

use std::time::Duration;

use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle};
use tracing::Instrument;

use crate::driver::report::Reporter;
use crate::model::code::Code;
use crate::model::failure::Failure;

/// Pause before an action is repeated that failed because of the ledger.
pub(super) const LEDGER_RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Start of an attempt at a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum RunStart {
    /// The run starts.
    New,
    /// The run continues after a crash, a suspension or an upgrade.
    Resumed,
}

/// End of an attempt at a run.
pub(super) enum RunExit {
    /// The run has its answer.
    Completed,
    /// The run has failed.
    Failed(Failure),
    /// The run has to stop.
    Stopped,
    /// The run continues after the next start of the service.
    Suspended,
    /// Another actor has the run now.
    Superseded,
}

impl RunExit {
    /// Reports the end.
    pub(super) fn report(self, reporter: Reporter) {
        match self {
            Self::Completed => reporter.report_end(Ok(()), None),
            Self::Failed(failure) => reporter.report_end(Err(failure), None),
            Self::Stopped => {
                let failure = Failure::new(Code::Cancelled, "the run was stopped");
                reporter.report_end(Err(failure), None);
            }
            Self::Suspended => reporter.report_suspension(),
            Self::Superseded => reporter.close_without_report(),
        }
    }
}

/// Handle of one attempt at a run. A dropped handle aborts the attempt: another actor resumes the run.
pub(super) struct RunHandle {
    stop_sender: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl RunHandle {
    /// Starts the attempt.
    pub(super) fn spawn<F: Future<Output = ()> + Send + 'static>(
        attempt: impl FnOnce(RunStopReceiver) -> F,
    ) -> Self {
        let (stop_sender, stop_receiver) = watch::channel(false);
        let attempt = attempt(RunStopReceiver(stop_receiver));
        Self { stop_sender, task: tokio::spawn(attempt.instrument(tracing::Span::current())) }
    }

    /// Orders the run to stop.
    pub(super) fn stop(&self) {
        self.stop_sender.send_replace(true);
    }

    /// Returns true if the run was ordered to stop.
    pub(super) fn is_stop_requested(&self) -> bool {
        *self.stop_sender.borrow()
    }

    /// Waits for the end of the attempt.
    ///
    /// # Errors
    /// Returns an error if the attempt panicked.
    pub(super) async fn join(&mut self) -> Result<(), JoinError> {
        (&mut self.task).await
    }
}

impl Drop for RunHandle {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Receiver of the order to stop.
pub(super) struct RunStopReceiver(watch::Receiver<bool>);

impl RunStopReceiver {
    /// Returns true if the run has to stop.
    pub(super) fn is_stop_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Returns once the run has to stop. A dropped handle is no order: another run continues.
    pub(super) async fn wait(&mut self) {
        if self.0.wait_for(|is_ordered| *is_ordered).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}
