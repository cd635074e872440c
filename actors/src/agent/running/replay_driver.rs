//! Driver that replays the result of an equal request instead of a new run.

use std::sync::Arc;

use async_trait::async_trait;
use tokio::task::JoinHandle;

use crate::driver::report::{OutputWriter, Reporter, StoredOutputReader};
use crate::driver::{AttemptLease, AttemptWork, Driver, Lease};
use crate::model::agent::AgentSpec;
use crate::model::agent::workspace::Workspace;
use crate::model::code::Code;
use crate::model::execution::event::{EventKind, MessageRole, TextChannel};
use crate::model::execution::request::Request;
use crate::model::failure::Failure;
use crate::model::id::ExecutionId;
use crate::ports::ledger::{Ledger, LedgerError};

/// Driver that replays the output of another execution.
pub(crate) struct ReplayDriver {
    /// Id of the other execution, which has succeeded.
    pub(crate) source: ExecutionId,
    /// Ledger with the output of the other execution.
    pub(crate) ledger: Arc<dyn Ledger>,
}

#[async_trait]
impl Driver for ReplayDriver {
    /// Returns no workspace, because a replay modifies nothing.
    async fn workspace(&self, _: &AgentSpec, _: &Request) -> Option<Workspace> {
        None
    }

    fn start(&self, work: AttemptWork, reporter: Reporter) -> Lease {
        let replay = AttemptReplay {
            source: self.source,
            output: StoredOutputReader::new(self.source, Arc::clone(&self.ledger)),
            message_count: 0,
        };
        Box::new(ReplayLease(tokio::spawn(replay.run(work, reporter))))
    }

    /// Starts again, because a replay only reads.
    fn resume(&self, work: AttemptWork, reporter: Reporter) -> Lease {
        self.start(work, reporter)
    }
}

/// Handle of a replay, which is short: it is never stopped midway and leaves nothing behind.
struct ReplayLease(JoinHandle<()>);

#[async_trait]
impl AttemptLease for ReplayLease {
    fn stop(&self) {}

    async fn clean_up(mut self: Box<Self>) {
        _ = (&mut self.0).await; // After a panic the dropped reporter reports the failure.
    }
}

impl Drop for ReplayLease {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Replay of one attempt.
struct AttemptReplay {
    source: ExecutionId,
    output: StoredOutputReader,
    message_count: u32,
}

impl AttemptReplay {
    async fn run(mut self, work: AttemptWork, reporter: Reporter) {
        reporter.report_start(None);
        let result = self.replay(&work, &reporter).await.map_err(|error| {
            tracing::error!(execution = %work.execution, %error, "failed to copy result of duplicate");
            Failure::new(
                Code::LedgerUnavailable,
                "failed to copy the result of the equal request",
            )
        });
        reporter.report_end(result, None);
    }

    /// Replays the events of the other execution's last attempt.
    async fn replay(&mut self, work: &AttemptWork, reporter: &Reporter) -> Result<(), LedgerError> {
        let message =
            format!("the result is that of `{}`, which had the same request", self.source);
        reporter.record_event(EventKind::Warning { message }).await?;
        let mut output_writer = reporter.open_output(TextChannel::Parts);
        for event in self.output.last_attempt_events().await? {
            if let Some(converted) = self.convert_event(event, work, &mut output_writer).await? {
                reporter.record_event(converted).await?;
            }
        }
        output_writer.close().await.map(|_| ())
    }

    /// Converts an event of the other execution to one of this execution; `None` for events that concern the other one
    /// only.
    async fn convert_event(
        &mut self,
        event: EventKind,
        work: &AttemptWork,
        output_writer: &mut OutputWriter,
    ) -> Result<Option<EventKind>, LedgerError> {
        Ok(match event {
            EventKind::Message { speaker, pieces, .. } if speaker != MessageRole::User => {
                self.message_count += 1;
                let message = format!(
                    "{}-{}-{}",
                    work.execution, work.attempt_id.attempt, self.message_count
                );
                let pieces = self.output.copy_parts(&pieces, output_writer).await?;
                Some(EventKind::message(speaker, message, pieces))
            }
            EventKind::Artifact { id, name, description, pieces, append, last } => {
                let pieces = self.output.copy_parts(&pieces, output_writer).await?;
                Some(EventKind::Artifact { id, name, description, pieces, append, last })
            }
            EventKind::OutputTruncated { .. } => Some(event),
            EventKind::Message { .. }
            | EventKind::StateChanged(_)
            | EventKind::ProcessStarted { .. }
            | EventKind::AttemptFailed(_)
            | EventKind::Deferred(_)
            | EventKind::UsageReported { .. }
            | EventKind::BudgetCharged { .. }
            | EventKind::Step { .. }
            | EventKind::Stopped { .. }
            | EventKind::Heartbeat(_)
            | EventKind::ResourceUsage(_)
            | EventKind::Session { .. }
            | EventKind::DeadlineApproaching { .. }
            | EventKind::SessionLost { .. }
            | EventKind::CheckOutput { .. }
            | EventKind::MalformedLine { .. }
            | EventKind::InteractionOpened { .. }
            | EventKind::InteractionClosed { .. }
            | EventKind::PermissionDecided { .. }
            | EventKind::Planned { .. }
            | EventKind::Hop { .. }
            | EventKind::StepsPlanned { .. }
            | EventKind::RunStep { .. }
            | EventKind::Warning { .. } => None,
        })
    }
}
