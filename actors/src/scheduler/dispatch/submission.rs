//! Submission of an occurrence as a request of its owner.

use std::sync::Arc;

use super::DispatchResult;
use crate::agent::SubmitReply;
use crate::decide::recovery::InputLoss;
use crate::gateway::requests::RequestHandle;
use crate::model::access::principal::{Caller, Right, Scope};
use crate::model::code::Code;
use crate::model::execution::request::{Input, Overrides, Request, RequestOrigin, Trigger};
use crate::model::failure::Failure;
use crate::model::id::{ContextId, MessageId, PrincipalId};
use crate::model::schedule::ScheduleSpec;
use crate::model::schedule::occurrence::Occurrence;
use crate::ports::schedule_template::ScheduleTemplateRenderer;
use crate::scheduler::authorization::{TokenSnapshot, unauthorized_failure};
use crate::scheduler::loaded_schedule::SubmissionMode;

/// Occurrence that is to be submitted.
pub(super) struct OccurrenceSubmission {
    pub(super) occurrence: Occurrence,
    pub(super) spec: ScheduleSpec,
    /// True if no key opens the sealed texts of the schedule.
    pub(super) has_unreadable_texts: bool,
    pub(super) mode: SubmissionMode,
    pub(super) tokens: Arc<TokenSnapshot>,
}

impl OccurrenceSubmission {
    /// Returns the input at the planned time, or the reason why the template cannot be rendered.
    pub(super) fn render_input(
        &self,
        renderer: &dyn ScheduleTemplateRenderer,
    ) -> Result<String, String> {
        renderer.render(&self.spec, self.occurrence.planned_at)
    }

    /// Submits the request.
    pub(super) async fn submit(
        self,
        request_handle: &RequestHandle,
        input: Result<String, String>,
    ) -> DispatchResult {
        let input = match input {
            Ok(input) => input,
            Err(cause) => return DispatchResult::Refused(template_failure(&cause)),
        };
        let request = self.build_request(input);
        // An accepted request is found even if its input can no longer be opened, or its owner has lost the right.
        if let Some(result) = self.result_without_submission(request_handle, &request).await {
            return result;
        }
        if self.has_unreadable_texts {
            return DispatchResult::Refused(sealed_input_failure());
        }
        match request_handle
            .submit(&scheduler_caller(request.origin.owner, "schedule"), request)
            .await
        {
            Ok(SubmitReply { execution, progress_receiver: progress, .. }) => {
                DispatchResult::Accepted(execution, progress)
            }
            Err(failure) if failure.is_permanent() => DispatchResult::Refused(failure),
            Err(failure) => DispatchResult::Retryable(failure),
        }
    }

    /// Returns the reason why the request would be rejected now.
    pub(super) async fn find_refusal(
        &self,
        request_handle: &RequestHandle,
        input: Result<String, String>,
    ) -> Option<Failure> {
        if self.has_unreadable_texts {
            return Some(sealed_input_failure());
        }
        let input = match input {
            Ok(input) => input,
            Err(cause) => return Some(template_failure(&cause)),
        };
        let request = self.build_request(input);
        match self.tokens.is_authorized(request_handle, request.origin.owner, &request.agent).await
        {
            Ok(true) => request_handle.find_refusal(request).await,
            Ok(false) => Some(unauthorized_failure()),
            Err(error) => Some(crate::gateway::reader::ledger_read_failure(&error)),
        }
    }

    /// Returns the result without a submission: the request was accepted before, or its owner has no right.
    async fn result_without_submission(
        &self,
        request_handle: &RequestHandle,
        request: &Request,
    ) -> Option<DispatchResult> {
        let services = &request_handle.reader.services;
        let retryable =
            |error| DispatchResult::Retryable(crate::gateway::reader::ledger_read_failure(&error));
        if self.mode != SubmissionMode::First {
            let key = services.keyed_hasher.dedup_keys(request).message_key;
            match services.ledger.find_by_key(request.origin.owner, &request.agent, key).await {
                Ok(None) if self.mode == SubmissionMode::FindOnly => {
                    return Some(DispatchResult::Expired);
                }
                Ok(None) => {}
                Ok(Some((execution, _))) => return Some(DispatchResult::Accepted(execution, None)),
                Err(error) => return Some(retryable(error)),
            }
        }
        match self.tokens.is_authorized(request_handle, request.origin.owner, &request.agent).await
        {
            Ok(true) => None,
            Ok(false) => Some(DispatchResult::Refused(unauthorized_failure())),
            Err(error) => Some(retryable(error)),
        }
    }

    /// Returns the request. Its message id is made of the schedule and the planned time, so that the agent recognizes a
    /// repeated submission.
    fn build_request(&self, input: String) -> Request {
        let Self { occurrence, spec, .. } = self;
        let message_id = occurrence.message_id();
        Request {
            agent: occurrence.agent.clone(),
            origin: RequestOrigin::for_direct_request(
                occurrence.owner,
                Trigger::Schedule {
                    id: occurrence.schedule.clone(),
                    planned: occurrence.planned_at,
                },
            ),
            message_id: MessageId(message_id.clone()),
            idempotency_key: None,
            context: ContextId(message_id),
            starts_context: true,
            continued_execution: None,
            inherited_overrides: Overrides::default(),
            input: Input { params: spec.params.clone(), ..Input::from_text(input) },
        }
    }
}

/// Returns the refusal of an occurrence whose template cannot be rendered.
fn template_failure(cause: &str) -> Failure {
    Failure::new(Code::InvalidParams, format!("its input template cannot be expanded: {cause}"))
}

/// Returns the refusal of an occurrence whose input no key opens.
fn sealed_input_failure() -> Failure {
    Failure::new(Code::InputSealed, InputLoss::KeyMissing.reason())
}

/// Returns the caller under which the scheduler submits: the owner, whose right was checked before.
pub(super) fn scheduler_caller(principal: PrincipalId, name: &str) -> Caller {
    let scope = Scope { rights: vec![Right::Read, Right::Run], agents: None };
    Caller { principal, name: name.to_owned(), scope }
}
