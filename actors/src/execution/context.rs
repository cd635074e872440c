//! Execution that an actor drives, and the services that its parts share.

use std::sync::Arc;

use chrono::{DateTime, Utc};
use ractor::ActorRef;
use tokio::sync::{mpsc, watch};

use super::writer::{ClaimRequest, ExecutionWriter, WriteOp};
use super::{ExecutionArgs, ExecutionMsg, OnAttemptFailed};
use crate::decide::execution::ExecutionEnd;
use crate::driver::Driver;
use crate::driver::report::BudgetMeter;
use crate::model::agent::AgentSpec;
use crate::model::agent::budget::Charge;
use crate::model::execution::event::EventKind;
use crate::model::execution::progress::Progress;
use crate::model::execution::request::Request;
use crate::model::execution::{AttemptId, ExecutionState, Fence, StateChange};
use crate::model::failure::Failure;
use crate::model::id::ExecutionId;
use crate::ports::ledger::{ClaimCommand, Settlement, WriteBatch};
use crate::services::Services;
use crate::services::credential_breakers::credential_name;

/// Execution with the services that its parts share. Nothing in it changes while the actor lives.
pub(super) struct ExecutionContext {
    /// Actor of the execution.
    pub(super) actor: ActorRef<ExecutionMsg>,
    /// Id of the execution.
    pub(super) id: ExecutionId,
    /// Raw request.
    pub(super) request: Arc<Request>,
    /// Definition of the agent at the start.
    pub(super) spec: Arc<AgentSpec>,
    /// Driver of the work.
    pub(super) driver: Arc<dyn Driver>,
    /// Shared services.
    pub(super) services: Arc<Services>,
    /// Sender of the progress, for the reporter of an attempt.
    pub(super) progress: watch::Sender<Progress>,
    /// Callback that reports a failed attempt to the agent's actor.
    pub(super) on_attempt_failed: OnAttemptFailed,
}

impl ExecutionContext {
    /// Creates the context of an actor from its arguments.
    pub(super) fn new(actor: &ActorRef<ExecutionMsg>, args: &ExecutionArgs) -> Self {
        Self {
            actor: actor.clone(),
            id: args.id,
            request: Arc::clone(&args.request),
            spec: Arc::clone(&args.spec),
            driver: Arc::clone(&args.driver),
            services: Arc::clone(&args.services),
            progress: args.progress.clone(),
            on_attempt_failed: Arc::clone(&args.on_attempt_failed),
        }
    }

    /// Starts the writer of the execution. It ends after the returned sender is dropped.
    pub(super) fn start_writer(&self) -> mpsc::UnboundedSender<WriteOp> {
        let (actor, progress) = (self.actor.clone(), self.progress.clone());
        ExecutionWriter::start(self.id, &self.spec.id, &self.services, actor, progress)
    }

    /// Returns the wall time.
    pub(super) fn now(&self) -> DateTime<Utc> {
        self.services.clock.now()
    }

    /// Creates the claim of an attempt, with the transition from a state to `Starting`.
    pub(super) fn claim_request(
        &self,
        fence: Fence,
        attempt_id: AttemptId,
        from: ExecutionState,
    ) -> ClaimRequest {
        let (at, reason) = (self.now(), "resources are free".to_owned());
        let command = ClaimCommand {
            id: self.id,
            agent: self.spec.id.clone(),
            max_running: self.spec.limits.capacity.max_running.map(Into::into),
            workspace: None, // The workspace is resolved at the last moment.
            runs_turns_in_order: self.driver.runs_turns_in_order(),
            fence,
            state_change: StateChange::new(
                (from, ExecutionState::Starting),
                attempt_id,
                at,
                reason,
            ),
        };
        ClaimRequest {
            command,
            driver: Arc::clone(&self.driver),
            spec: Arc::clone(&self.spec),
            request: Arc::clone(&self.request),
            workspace_queue: self.services.attempt_resources.workspace_queue.clone(),
        }
    }

    /// Creates the settlement of the execution.
    pub(super) fn settlement(
        &self,
        (attempt_id, fence): (AttemptId, Fence),
        ending: ExecutionEnd,
        exit_code: Option<i32>,
        at: DateTime<Utc>,
    ) -> Settlement {
        let ExecutionEnd { outcome, failure } = ending;
        Settlement {
            id: self.id,
            fence,
            attempt_id,
            outcome,
            failure,
            exit_code,
            batch: WriteBatch::default(),
            keeps_sealed_input: self.services.input_sealer.keeps_input_after(outcome),
            at,
        }
    }

    /// Charges an amount to the day of the agent. Returns the event to record; `None` if the amount is 0.
    pub(super) fn charge_daily_budget(
        &self,
        now: DateTime<Utc>,
        charge: Charge,
    ) -> Option<EventKind> {
        let meter = BudgetMeter::new(&self.spec, &self.services.budget_usages);
        let event = meter.charge_event(now, charge)?;
        meter.apply_charge_event(Some(&event));
        self.services.report_budget_usage(&self.spec);
        Some(event)
    }

    /// Reports used amounts, which are already charged. Output tokens prove that the credential works.
    pub(super) fn report_usage_and_credential_success(&self, charge: Charge) {
        self.services.report_budget_usage(&self.spec);
        if charge.output_tokens > 0 {
            self.report_credential_success();
        }
    }

    /// Reports the effect of an attempt's end on its credential.
    pub(super) fn report_credential_result(&self, result: &Result<(), Failure>) {
        match result {
            Ok(()) => self.report_credential_success(),
            Err(failure) => self.report_credential_failure(failure),
        }
    }

    /// Reports that a request was served with the credential.
    fn report_credential_success(&self) {
        self.services
            .breakers
            .record_success(&credential_name(&self.services.keyed_hasher, &self.spec), self.id);
    }

    /// Reports a failed attempt to the breaker of the credential. Only failures because of the credential have an
    /// effect.
    fn report_credential_failure(&self, failure: &Failure) {
        let hasher_and_spec = (&self.services.keyed_hasher, &*self.spec);
        self.services.breakers.record_failure(
            hasher_and_spec,
            self.id,
            failure,
            &*self.services.clock,
        );
    }
}
