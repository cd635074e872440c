//! Driver of cognitive agents: each attempt is a run, in which a model decides on tool calls until it has an answer.
//!
//! `actions` performs the actions, and `recording` writes the steps between them. `stored_run` reads a run from the
//! ledger. The processes of its tools end with the attempt, and its facts are events of its execution, so it can always
//! be claimed and resumed.

mod actions;
mod recording;
mod run;
mod stored_run;

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;

use self::run::CognitiveAttempt;
use crate::driver::report::Reporter;
use crate::driver::{AttemptLease, AttemptWork, Driver, Lease, WorkTakenOver};
use crate::gateway::request_handle_cell::RequestHandleCell;
use crate::gateway::requests::RunRequestHandle;
use crate::model::agent::AgentSpec;
use crate::model::agent::workspace::Workspace;
use crate::model::execution::AttemptId;
use crate::model::execution::request::Request;
use crate::model::id::ExecutionId;
use crate::ports::completion::CompletionClient;
use crate::ports::tools::ToolExecutor;
use crate::runs::attempt::{RunHandle, RunStart};

/// Driver of a cognitive agent. It needs a tokio runtime.
pub struct CognitiveDriver {
    request_handle_cell: RequestHandleCell,
    completions: Arc<dyn CompletionClient>,
    tools: Arc<dyn ToolExecutor>,
}

impl CognitiveDriver {
    /// Creates a driver that requests replies and calls tools through these ports.
    #[must_use]
    pub const fn new(
        request_handle_cell: RequestHandleCell,
        completions: Arc<dyn CompletionClient>,
        tools: Arc<dyn ToolExecutor>,
    ) -> Self {
        Self { request_handle_cell, completions, tools }
    }

    fn spawn_run(&self, work: AttemptWork, reporter: Reporter, start: RunStart) -> Lease {
        let (run, cell) = (work.execution, self.request_handle_cell.clone());
        let (completions, tools) = (Arc::clone(&self.completions), Arc::clone(&self.tools));
        let run_handle = RunHandle::spawn(async move |stop| {
            let request_handle = RunRequestHandle::new(cell.wait_for_handle().await);
            let attempt = CognitiveAttempt { request_handle, completions, tools, work, start };
            attempt.run(reporter, stop).await;
        });
        Box::new(CognitiveLease { execution: run, run_handle })
    }
}

#[async_trait]
impl Driver for CognitiveDriver {
    /// Returns no workspace: only programs of tools change files, and their folders have no claim.
    async fn workspace(&self, _: &AgentSpec, _: &Request) -> Option<Workspace> {
        None
    }

    fn start(&self, work: AttemptWork, reporter: Reporter) -> Lease {
        self.spawn_run(work, reporter, RunStart::New)
    }

    fn take_over_held_work(&self, _: ExecutionId, _: AttemptId) -> Option<WorkTakenOver> {
        // A run makes no progress without the service, so its time starts anew.
        Some(WorkTakenOver { elapsed_run_time: Some(Duration::ZERO) })
    }

    fn resume(&self, work: AttemptWork, reporter: Reporter) -> Lease {
        self.spawn_run(work, reporter, RunStart::Resumed)
    }
}

/// Lease of a run.
struct CognitiveLease {
    execution: ExecutionId,
    run_handle: RunHandle,
}

#[async_trait]
impl AttemptLease for CognitiveLease {
    fn stop(&self) {
        self.run_handle.stop();
    }

    async fn clean_up(mut self: Box<Self>) {
        if let Err(error) = self.run_handle.join().await {
            tracing::error!(execution = %self.execution, %error, "attempt at a run of a cognitive agent panicked");
        }
    }
}
