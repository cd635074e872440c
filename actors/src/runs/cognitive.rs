//! Driver of cognitive agents: each attempt is a run, in which a model decides on tool calls until it has an answer.
//!
//! A run holds no process. Its facts are events of its execution, so a run can always be claimed and resumed.

mod recording;
mod restoring;
mod run;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tracing::Instrument;

use self::run::CognitiveAttempt;
use crate::driver::report::Reporter;
use crate::driver::{AttemptLease, ClaimedWork, Driver, Lease, Work};
use crate::gateway::requests::RunRequests;
use crate::gateway::requests_slot::RequestsSlot;
use crate::model::agent::AgentSpec;
use crate::model::agent::workspace::Workspace;
use crate::model::execution::AttemptId;
use crate::model::execution::request::Request;
use crate::model::id::ExecutionId;
use crate::ports::completion::Completions;
use crate::ports::tools::Tools;
use crate::runs::stop_order::StopOrder;

/// Driver of a cognitive agent. It needs a tokio runtime.
pub struct CognitiveDriver {
    requests_slot: RequestsSlot,
    completions: Arc<dyn Completions>,
    tools: Arc<dyn Tools>,
}

impl CognitiveDriver {
    /// Creates a driver that requests replies and calls tools through these ports.
    #[must_use]
    pub const fn new(
        requests_slot: RequestsSlot,
        completions: Arc<dyn Completions>,
        tools: Arc<dyn Tools>,
    ) -> Self {
        Self { requests_slot, completions, tools }
    }

    fn spawn_run(&self, work: Work, reporter: Reporter, is_resumed: bool) -> Lease {
        let (stop, stop_order) = watch::channel(false);
        let (run, slot) = (work.execution, self.requests_slot.clone());
        let (completions, tools) = (Arc::clone(&self.completions), Arc::clone(&self.tools));
        let attempt = async move {
            let requests = RunRequests::new(slot.requests().await);
            let attempt = CognitiveAttempt { requests, completions, tools, work, is_resumed };
            attempt.run(reporter, StopOrder::new(stop_order)).await;
        };
        let task = tokio::spawn(attempt.instrument(tracing::Span::current()));
        Box::new(CognitiveLease { run, stop, task: Some(task) })
    }
}

#[async_trait]
impl Driver for CognitiveDriver {
    /// Returns no workspace: the agent changes no files.
    async fn workspace(&self, _: &AgentSpec, _: &Request) -> Option<Workspace> {
        None
    }

    fn start(&self, work: Work, reporter: Reporter) -> Lease {
        self.spawn_run(work, reporter, false)
    }

    fn claim(&self, _: ExecutionId, _: AttemptId) -> Option<ClaimedWork> {
        // A run makes no progress without the service, so its time starts anew.
        Some(ClaimedWork { run_time: Some(Duration::ZERO) })
    }

    fn resume(&self, work: Work, reporter: Reporter) -> Lease {
        self.spawn_run(work, reporter, true)
    }
}

/// Lease of a run. If it is dropped without a clean-up, the run stops at once: another actor resumes it.
struct CognitiveLease {
    run: ExecutionId,
    stop: watch::Sender<bool>,
    task: Option<JoinHandle<()>>,
}

#[async_trait]
impl AttemptLease for CognitiveLease {
    fn stop(&self) {
        self.stop.send_replace(true);
    }

    async fn clean(mut self: Box<Self>) {
        let Some(task) = self.task.as_mut() else { return };
        if let Err(error) = task.await {
            tracing::error!(execution = %self.run, %error, "run of a cognitive agent failed");
        }
    }
}

impl Drop for CognitiveLease {
    fn drop(&mut self) {
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
