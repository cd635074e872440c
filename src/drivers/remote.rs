//! Driver of remote agents: each attempt is a task of an A2A agent of another service.
//!
//! The text and the artifacts of the task are reported while they arrive. A remote task that outlives the service is
//! not taken up again: its execution fails as interrupted.

mod artifact_losses;
mod connection;
mod conversation;
mod event_stream;
mod remote_attempt;
mod remote_fault;
mod task_reader;

use std::sync::Arc;

use algonius_actors::driver::report::Reporter;
use algonius_actors::driver::{AttemptLease, AttemptWork, Driver, Lease};
use algonius_actors::model::agent::AgentSpec;
use algonius_actors::model::agent::remote::RemoteSpec;
use algonius_actors::model::agent::workspace::Workspace;
use algonius_actors::model::code::Code;
use algonius_actors::model::execution::event::TextChannel;
use algonius_actors::model::execution::request::Request;
use algonius_actors::model::failure::Failure;
use async_trait::async_trait;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::Instrument;

pub use self::connection::RemoteConnections;
use self::remote_attempt::RemoteAttempt;

/// Driver that calls a remote agent. It needs a tokio runtime.
pub struct RemoteDriver {
    remote: Arc<RemoteSpec>,
    connections: RemoteConnections,
}

impl RemoteDriver {
    /// Returns a driver of one remote agent.
    #[must_use]
    pub const fn new(remote: Arc<RemoteSpec>, connections: RemoteConnections) -> Self {
        Self { remote, connections }
    }
}

#[async_trait]
impl Driver for RemoteDriver {
    async fn workspace(&self, _: &AgentSpec, _: &Request) -> Option<Workspace> {
        None
    }

    /// Two messages at once would both continue the same remote task or context.
    fn runs_turns_in_order(&self) -> bool {
        true
    }

    fn partial_answer_channel(&self) -> Option<TextChannel> {
        Some(TextChannel::Answer)
    }

    fn start(&self, work: AttemptWork, reporter: Reporter) -> Lease {
        let (stop_sender, stop_receiver) = watch::channel(false);
        let attempt = RemoteAttempt {
            remote: Arc::clone(&self.remote),
            connections: self.connections.clone(),
            work,
        };
        let span = tracing::Span::current();
        let task = tokio::spawn(
            attempt.run(reporter, RemoteStopReceiver::new(stop_receiver)).instrument(span),
        );
        Box::new(RemoteLease { stop_sender, task: Some(task) })
    }

    fn resume(&self, _: AttemptWork, reporter: Reporter) -> Lease {
        // The id of the remote task is stored at the end of an attempt only, so after a crash it is not known.
        let message = "the service lost its connection to the remote agent";
        reporter.report_end(Err(Failure::new(Code::Interrupted, message)), None);
        Box::new(RemoteLease { stop_sender: watch::Sender::new(true), task: None })
    }
}

/// Receiver of the order to stop. A dropped lease is an order too.
#[derive(Clone)]
struct RemoteStopReceiver(watch::Receiver<bool>);

impl RemoteStopReceiver {
    const fn new(order: watch::Receiver<bool>) -> Self {
        Self(order)
    }

    /// Returns when the attempt has to stop.
    async fn wait_for_stop(&mut self) {
        _ = self.0.wait_for(|is_ordered| *is_ordered).await;
    }
}

/// Lease of a remote task. The task is cancelled when the lease is dropped.
struct RemoteLease {
    stop_sender: watch::Sender<bool>,
    task: Option<JoinHandle<()>>,
}

#[async_trait]
impl AttemptLease for RemoteLease {
    fn stop(&self) {
        self.stop_sender.send_replace(true);
    }

    async fn clean_up(self: Box<Self>) {
        let Self { stop_sender, task } = *self;
        stop_sender.send_replace(true);
        let Some(task) = task else { return };
        if let Err(error) = task.await {
            tracing::error!(%error, "task of a remote attempt failed");
        }
    }
}
