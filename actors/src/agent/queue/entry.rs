//! Request in the queue of an agent.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use ractor::RpcReplyPort;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::agent::SubmitReply;
use crate::agent::credential_gate::WaitCause;
use crate::execution::StartingPoint;
use crate::model::agent::queue::{QueueReason, Queued};
use crate::model::agent::quota::Deferral;
use crate::model::execution::ExecutionState;
use crate::model::execution::progress::Progress;
use crate::model::execution::record::ExecutionRecord;
use crate::model::execution::request::{Input, Overrides, Request, RequestIdentity};
use crate::model::failure::Failure;
use crate::model::id::ExecutionId;
use crate::services::credential_breakers::BreakerProbe;

/// Request in the queue.
pub(in crate::agent) struct QueuedRequest {
    pub(in crate::agent) request: Arc<Request>,
    /// Keys of a request that this process has received.
    pub(in crate::agent) request_identity: Option<RequestIdentity>,
    /// Reply port of the submitter, until it has its answer.
    pub(in crate::agent) reply: Option<RpcReplyPort<Result<SubmitReply, Failure>>>,
    pub(in crate::agent) progress: watch::Sender<Progress>,
    /// Displayed start time of the wait.
    pub(in crate::agent) queued_since: DateTime<Utc>,
    /// Tracing span of the request.
    pub(in crate::agent) span: tracing::Span,
    /// Deadline of the wait, on a monotonic clock.
    pub(in crate::agent) deadline: Instant,
    pub(in crate::agent) starting_point: StartingPoint,
    /// Execution whose result is taken, if any.
    pub(in crate::agent) replay_source: Option<ExecutionId>,
    /// Deferral of the execution, if it is deferred.
    pub(in crate::agent) deferral: Option<Deferral>,
    /// Probe of the credential, if the execution is one.
    pub(in crate::agent) probe: Option<BreakerProbe>,
}

impl QueuedRequest {
    /// Creates an entry without a submitter, which waits since `queued_since`.
    pub(in crate::agent) fn new(
        request: Arc<Request>,
        starting_point: StartingPoint,
        queued_since: DateTime<Utc>,
        deadline: Instant,
    ) -> Self {
        Self {
            request,
            request_identity: None,
            reply: None,
            progress: watch::Sender::new(Progress::for_new_execution()),
            queued_since,
            span: tracing::Span::none(),
            deadline,
            starting_point,
            replay_source: None,
            deferral: None,
            probe: None,
        }
    }

    /// Creates an entry that restores an execution with an open question in order to end it.
    pub(in crate::agent) fn for_ending_open_question(record: &ExecutionRecord) -> Self {
        let request = Request {
            agent: record.agent.clone(),
            origin: record.origin(),
            message_id: record.message_id.clone(),
            context: record.context.clone(),
            starts_context: false,
            idempotency_key: None,
            continued_execution: None,
            inherited_overrides: Overrides::default(),
            input: Input::default(),
        };
        let starting_point = StartingPoint::waiting_for_input(record);
        Self::new(Arc::new(request), starting_point, record.changed_at, Instant::now())
    }

    /// Creates the entry of an execution that was deferred in an earlier process. Its queue timeout starts when the
    /// deferral ends.
    pub(in crate::agent) fn restore_deferred(
        record: &ExecutionRecord,
        deferral: Deferral,
        request: Arc<Request>,
        now: DateTime<Utc>,
    ) -> Self {
        let progress = Progress { state: ExecutionState::Failed, ..Progress::for_new_execution() };
        let starting_point = StartingPoint::after_deferral(record, deferral);
        let (progress, deferral) = (watch::Sender::new(progress), Some(deferral));
        Self { progress, deferral, ..Self::new(request, starting_point, now, Instant::now()) }
    }

    /// Returns true if the submitter waits for its answer. Before the answer, the entry is not visible and cannot
    /// expire, because an unrecorded execution cannot be ended.
    pub(super) const fn awaits_submit_reply(&self) -> bool {
        self.reply.is_some()
    }

    /// Returns the displayed position with the actual reason of the wait.
    pub(super) fn displayed_position(
        &self,
        queued: Queued,
        wait_cause: Option<WaitCause>,
    ) -> Queued {
        let deferral = self.deferral.map(|deferral| WaitCause {
            reason: deferral.cause.queue_reason(),
            until: Some(deferral.until),
        });
        // Each other reason than a busy agent holds, whatever keeps the queue from starting.
        let wait_cause = wait_cause.filter(|_| queued.reason == QueueReason::AgentBusy);
        match deferral.or(wait_cause) {
            Some(WaitCause { reason, until }) => Queued { reason, until, ..queued },
            None => queued,
        }
    }
}
