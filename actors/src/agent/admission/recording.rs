//! Recording of an admitted request in the ledger, with redacted text.

use std::collections::BTreeMap;
use std::sync::Arc;

use chrono::{DateTime, TimeDelta, Utc};
use ractor::ActorRef;

use super::duplicate_cache::has_reusable_message_id;
use crate::agent::coalescer::has_reusable_result;
use crate::agent::{AgentMsg, RecordingResult};
use crate::decide::output::redact_parts::redact_parts;
use crate::execution::StartingPoint;
use crate::execution::recovery::settle_orphaned_request;
use crate::model::agent::AgentSpec;
use crate::model::execution::event::TextChannel;
use crate::model::execution::message_details::{MessageDetails, StoredContent, details_to_json};
use crate::model::execution::request::{DedupKeys, Request, RequestIdentity, Trigger};
use crate::model::execution::trace::TraceContext;
use crate::model::execution::{AttemptId, ExecutionState};
use crate::model::id::ExecutionId;
use crate::ports::ledger::{AcceptCommand, AcceptResult, AnswerCommand, LedgerError};
use crate::services::Services;

/// Admitted request that is being recorded.
pub(in crate::agent) struct RequestRecorder {
    /// Actor that receives the result.
    pub(in crate::agent) agent: ActorRef<AgentMsg>,
    /// Shared services.
    pub(in crate::agent) services: Arc<Services>,
    /// Specification of the agent.
    pub(in crate::agent) spec: Arc<AgentSpec>,
    /// Id of the execution.
    pub(in crate::agent) id: ExecutionId,
    /// Raw request.
    pub(in crate::agent) request: Arc<Request>,
    /// Keys of the request.
    pub(in crate::agent) request_identity: RequestIdentity,
    /// Starting point of the execution, which waits for an answer if the request is one.
    pub(in crate::agent) starting_point: StartingPoint,
    /// Time of the request.
    pub(in crate::agent) received_at: DateTime<Utc>,
}

impl RequestRecorder {
    /// Records the request, and reports the result to the actor. The task must complete even if the actor stops.
    pub(in crate::agent) async fn record_and_report(self) {
        let result = match self.starting_point.state {
            ExecutionState::Waiting => self.record_answer().await,
            _ => self.record_new_request().await,
        };
        let is_recorded = result.as_ref().is_ok_and(|record_result| record_result.is_recorded());
        let is_unreported = self.agent.cast(AgentMsg::RecordingFinished(self.id, result)).is_err();
        if is_unreported && is_recorded {
            settle_orphaned_request(&self.services, self.id).await; // The next actor may have read the ledger too early.
        }
    }

    /// Records a new request with redacted text.
    async fn record_new_request(&self) -> Result<RecordingResult, LedgerError> {
        let (services, request, spec) = (&*self.services, &*self.request, &*self.spec);
        let (params, has_unchanged_params) = self.redacted_params();
        let parts = &request.input.parts;
        let stored_parts = redact_parts(
            parts,
            &services.redactor.current(),
            AttemptId::FIRST,
            TextChannel::Input,
            0,
        );
        let keys = self.dedup_keys(AttemptId::FIRST.turn);
        let (details, has_all_details) = self.storable_details();
        let stores_raw_input = stored_parts.is_unchanged && has_unchanged_params && has_all_details;
        let accept_command = AcceptCommand {
            id: self.id,
            agent: request.agent.clone(),
            owner: request.origin.owner,
            message_id: request.message_id.clone(),
            keys,
            content_digest: self.request_identity.content_digest,
            coalescing_key_and_since: self.coalescing_key_and_since(),
            context: request.context.clone(),
            trigger: request.origin.trigger.clone(),
            trace: self.redacted_trace(),
            access: spec.access,
            stores_raw_input,
            sealed_input: if stores_raw_input {
                None
            } else {
                services.input_sealer.seal(self.id, &request.input)
            },
            input_text: stored_parts.text,
            content: StoredContent { parts: stored_parts.parts, details },
            params,
            overrides: request.effective_overrides(),
            at: self.received_at,
        };
        Ok(match services.ledger.accept(accept_command).await? {
            AcceptResult::Created => RecordingResult::Recorded,
            AcceptResult::CreatedWithEquivalent(source)
                if has_reusable_result(&services.ledger, source).await =>
            {
                RecordingResult::EquivalentSucceeded(source)
            }
            AcceptResult::CreatedWithEquivalent(source) => {
                RecordingResult::EquivalentInProgress(source)
            }
            AcceptResult::Duplicate(original) => RecordingResult::Duplicate(original),
            AcceptResult::Conflict => RecordingResult::Conflict,
        })
    }

    /// Records the answer to a question.
    async fn record_answer(&self) -> Result<RecordingResult, LedgerError> {
        let (services, request) = (&*self.services, &*self.request);
        let (params, has_unchanged_params) = self.redacted_params();
        let attempt_id = self.starting_point.attempt_id.next_turn();
        let stored_parts = redact_parts(
            &request.input.parts,
            &services.redactor.current(),
            attempt_id,
            TextChannel::Input,
            0,
        );
        let (details, has_all_details) = self.storable_details();
        let stores_raw_input = stored_parts.is_unchanged && has_unchanged_params && has_all_details;
        let answer_command = AnswerCommand {
            id: self.id,
            agent: request.agent.clone(),
            owner: request.origin.owner,
            fence: self.starting_point.fence,
            next_attempt_id: attempt_id,
            message_id: request.message_id.clone(),
            keys: self.dedup_keys(attempt_id.turn),
            content_digest: self.request_identity.content_digest,
            stores_raw_input,
            sealed_input: if stores_raw_input {
                None
            } else {
                services.input_sealer.seal(self.id, &request.input)
            },
            input_text: stored_parts.text,
            content: StoredContent { parts: stored_parts.parts, details },
            params,
            overrides: request.effective_overrides(),
            at: self.received_at,
        };
        let is_open = services.ledger.record_answer(answer_command).await?;
        Ok(if is_open { RecordingResult::Recorded } else { RecordingResult::QuestionClosed })
    }

    /// Returns the deduplication keys of a turn of an execution.
    fn dedup_keys(&self, turn: u32) -> DedupKeys {
        let mut keys = self.request_identity.dedup_keys;
        if has_reusable_message_id(&self.spec, &self.request) {
            keys.message_key = self.services.keyed_hasher.turn_key(self.id, turn);
        }
        keys
    }

    /// Returns the key by which an equal request is found, and the earliest time of that request, if the agent
    /// coalesces requests. A caller with idempotency keys distinguishes its requests itself.
    fn coalescing_key_and_since(&self) -> Option<([u8; 32], DateTime<Utc>)> {
        let (services, request, spec) = (&*self.services, &*self.request, &*self.spec);
        let window = spec.dedup_window.filter(|_| request.idempotency_key.is_none())?;
        let is_candidate = match request.origin.trigger {
            Trigger::Api => true,
            Trigger::Schedule { .. } => false, // Each occurrence is intended.
            Trigger::Probe => false,           // An earlier answer proves nothing.
            Trigger::Hop(_) => false,          // Each step of a team is intended.
        };
        let since = self.received_at.checked_sub_signed(TimeDelta::from_std(window).ok()?)?;
        is_candidate.then(|| {
            (
                services.keyed_hasher.coalescing_key(request, self.request_identity.content_digest),
                since,
            )
        })
    }

    /// Returns the redacted parameters of a request, and true if redaction left them unchanged.
    fn redacted_params(&self) -> (BTreeMap<String, String>, bool) {
        let (services, request) = (&*self.services, &*self.request);
        let redactor = services.redactor.current();
        let redact_text = |text: &str| redactor.redact(text).into_owned();
        let raw_params = &request.input.params;
        let params: BTreeMap<_, _> =
            raw_params.iter().map(|(name, value)| (name.clone(), redact_text(value))).collect();
        let is_unredacted = params == *raw_params;
        (params, is_unredacted)
    }

    /// Returns the details of a request to store, and true if they are all. Details that redaction would change are not
    /// stored in clear.
    fn storable_details(&self) -> (Option<Box<MessageDetails>>, bool) {
        let details = &self.request.input.details;
        let redactor = self.services.redactor.current();
        let is_unchanged = |text: &str| redactor.redact(text) == text;
        // As one document, because a key can mark its value as a secret, and each text without the escapes of JSON.
        let is_unredacted = is_unchanged(&details_to_json(details))
            && details.all_strings().into_iter().all(is_unchanged);
        let has_details = is_unredacted && !details.is_empty();
        (has_details.then(|| Box::new(details.clone())), is_unredacted)
    }

    /// Returns the trace context of a request. The vendor-specific state is dropped if it looks like a secret.
    fn redacted_trace(&self) -> Option<TraceContext> {
        let (services, request) = (&*self.services, &*self.request);
        let TraceContext { tracestate: state, .. } = request.origin.trace.as_ref()?;
        let is_unredacted = services.redactor.current().redact(state) == *state;
        let state = if is_unredacted { state.clone() } else { String::new() };
        request.origin.trace.clone().map(|trace| TraceContext { tracestate: state, ..trace })
    }
}
