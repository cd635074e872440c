//! Requests of callers: submission, cancellation, retry, removal, and the wait for an end.

mod hops;
mod inherited_settings;
mod wait;

use tokio::sync::watch;

pub(crate) use self::hops::{HopState, RunRequestHandle};
use self::inherited_settings::inherit_settings;
pub(crate) use self::wait::{END_RECORD_TIMEOUT, stop_not_recorded_failure};
pub use crate::agent::SubmitReply;
use crate::agent::{Submission, message_reused_failure, no_open_question_failure};
use crate::execution::recovery::read_request;
use crate::gateway::GatewayMsg;
use crate::gateway::handle::CallError;
use crate::gateway::reader::{ExecutionReader, ledger_read_failure};
use crate::model::access::principal::{Caller, Right};
use crate::model::code::Code;
use crate::model::execution::progress::Progress;
use crate::model::execution::record::ExecutionRecord;
use crate::model::execution::request::{Request, RequestIdentity, Trigger};
use crate::model::failure::Failure;
use crate::model::host::storage_stats::DeletionOutcome;
use crate::model::id::{ExecutionId, MessageId};
use crate::ports::ledger::{AcceptResult, LedgerError};

/// Handle that submits requests and waits for their ends. Callers, schedules and every other part of the service use
/// this one handle. Clones are cheap.
#[derive(Clone)]
pub struct RequestHandle {
    pub(crate) reader: ExecutionReader,
}

impl RequestHandle {
    /// Submits a request, or answers the question of an execution. Returns once the request is recorded, not once it
    /// has run.
    ///
    /// # Errors
    /// Returns an error if the request is rejected; then nothing was recorded. After a timeout the request may have
    /// been recorded: sending the same message again returns its state and does not run it twice.
    pub async fn submit(
        &self,
        caller: &Caller,
        mut request: Request,
    ) -> Result<SubmitReply, Failure> {
        let request_identity = self.reader.services.keyed_hasher.request_identity(&request);
        let continued_record = match request.continued_execution {
            None => match self.find_duplicate_in_memory(&request, &request_identity).await {
                Some(reply) => return Ok(reply),
                None => None,
            },
            Some(id) => match self.find_duplicate(&request, &request_identity).await? {
                Some(reply) => return Ok(reply),
                None => Some(self.find_continued_record(caller, id, &request).await?),
            },
        };
        if let Some(record) = &continued_record {
            inherit_settings(&self.reader.services, record, &mut request).await?;
        }
        self.send(request, request_identity, continued_record).await
    }

    /// Sends a request to its agent.
    async fn send(
        &self,
        request: Request,
        request_identity: RequestIdentity,
        continued_record: Option<ExecutionRecord>,
    ) -> Result<SubmitReply, Failure> {
        let span = tracing::Span::current();
        let submit = |reply| {
            let message = Submission { request, request_identity, continued_record, span, reply };
            GatewayMsg::Submit(Box::new(message))
        };
        self.reader.gateway_handle.call(submit).await.unwrap_or_else(|error| {
            Err(match error {
                CallError::Timeout => Failure::new(Code::AcceptTimeout, ACCEPT_TIMEOUT_MESSAGE),
                CallError::ActorLost => Failure::new(Code::Internal, AGENT_LOST_MESSAGE),
            })
        })
    }

    /// Returns the reason why a request would be refused now; `None` if it would be accepted, apart from the limit of
    /// the queue. If no actor answers, the reason is temporary.
    pub(crate) async fn find_refusal(&self, request: Request) -> Option<Failure> {
        let request = Box::new(request);
        let check = |reply| GatewayMsg::CheckAdmission(request, reply);
        let result = self.reader.gateway_handle.call_or_none(check).await;
        let no_answer = || Err(Failure::new(Code::AcceptTimeout, ACCEPT_TIMEOUT_MESSAGE));
        result.unwrap_or_else(no_answer).err()
    }

    /// Returns the execution of a message that was repeated more than once: a read, like that of a task. The agent's
    /// actor decides about every other request. While the service stops, all submissions are rejected alike.
    async fn find_duplicate_in_memory(
        &self,
        request: &Request,
        request_identity: &RequestIdentity,
    ) -> Option<SubmitReply> {
        let dedup = &request_identity.dedup_keys;
        if dedup.idempotency_key.is_some() || *self.reader.gateway_handle.draining.borrow() {
            return None;
        }
        let (owner, agent, key) = (request.origin.owner, &request.agent, dedup.message_key);
        let (execution, digest) =
            self.reader.services.ledger.find_cached_by_key(owner, agent, key).await?;
        if digest != request_identity.content_digest {
            return None; // The agent rejects the conflict.
        }
        let ended_record = self.ended_record(execution).await;
        let progress = match ended_record {
            Some(_) => None,
            None => self.reader.watch_progress(agent, execution).await,
        };
        Some(SubmitReply {
            ended_record,
            ..SubmitReply::for_existing_execution(execution, progress)
        })
    }

    /// Returns the record of an execution that has ended; `None` if it has not, or if it cannot be read.
    async fn ended_record(&self, id: ExecutionId) -> Option<Box<ExecutionRecord>> {
        let result = self.reader.services.ledger.execution(id).await;
        let record = result.inspect_err(|error| log_read_error(id, error)).ok().flatten();
        record.filter(|record| record.outcome.is_some()).map(Box::new)
    }

    /// Returns the execution that accepted the same message before.
    async fn find_duplicate(
        &self,
        request: &Request,
        request_identity: &RequestIdentity,
    ) -> Result<Option<SubmitReply>, Failure> {
        let ledger = &self.reader.services.ledger;
        let mut earlier_requests = Vec::new();
        for key in request_identity.dedup_keys.iter() {
            let result = ledger.find_by_key(request.origin.owner, &request.agent, key).await;
            earlier_requests.extend(map_error(result)?);
        }
        match AcceptResult::for_known_keys(&earlier_requests, request_identity.content_digest) {
            None | Some(AcceptResult::Created | AcceptResult::CreatedWithEquivalent(_)) => Ok(None),
            Some(AcceptResult::Conflict) => Err(message_reused_failure()),
            Some(AcceptResult::Duplicate(execution)) => {
                Ok(Some(SubmitReply::for_existing_execution(execution, None)))
            }
        }
    }

    async fn find_continued_record(
        &self,
        caller: &Caller,
        id: ExecutionId,
        request: &Request,
    ) -> Result<ExecutionRecord, Failure> {
        let record = self.reader.execution(caller, id).await?;
        if record.context != request.context {
            let message = "the context is not the one of the task";
            Err(Failure::new(Code::InvalidParams, message))
        } else if record.outcome.is_some() {
            let message = "the task has ended; send the message without its id";
            Err(Failure::new(Code::Unsupported, message))
        } else if record.awaits_answer() {
            Ok(record)
        } else {
            Err(no_open_question_failure())
        }
    }

    /// Cancels an execution and returns once the request is sent, with the progress while an actor holds the execution.
    ///
    /// # Errors
    /// Returns an error if the caller has no such execution, or if it has ended.
    pub async fn cancel(
        &self,
        caller: &Caller,
        id: ExecutionId,
    ) -> Result<(ExecutionRecord, Option<watch::Receiver<Progress>>), Failure> {
        let record = self.reader.execution(caller, id).await?;
        if record.outcome.is_some() {
            let state = record.effective_state();
            let message = format!("the execution has ended already: {state}");
            return Err(Failure::new(Code::ExecutionEnded, message));
        }
        let progress =
            self.send_cancellation(&record, format!("called off by {}", caller.name)).await;
        Ok((record, progress))
    }

    /// Sends a cancellation to the agent of an execution. Returns the progress while an actor holds the execution.
    async fn send_cancellation(
        &self,
        record: &ExecutionRecord,
        reason: String,
    ) -> Option<watch::Receiver<Progress>> {
        let record = Box::new(record.clone());
        let cancel = |reply| GatewayMsg::Cancel { record, reason, reply };
        self.reader.gateway_handle.call_or_none(cancel).await.flatten()
    }

    /// Removes an execution that has ended, with all its data and its hops.
    ///
    /// # Errors
    /// Returns an error if the caller has no such execution, or if it has not ended.
    pub async fn remove(&self, caller: &Caller, id: ExecutionId) -> Result<(), Failure> {
        let record = self.reader.execution(caller, id).await?;
        if record.outcome.is_none() {
            return Err(not_ended_failure(&record));
        }
        if let Some(hop) = record.trigger.hop_position()
            && let Some(run) = map_error(self.reader.services.ledger.execution(hop.parent).await)?
            && run.outcome.is_none()
        {
            return Err(needed_by_run_failure());
        }
        // The hops first, so that an interrupted removal can be repeated.
        for hop in self.reader.all_hop_ids(id).await?.into_iter().rev().chain([id]) {
            match map_error(self.reader.services.stores.history.remove(hop).await)? {
                DeletionOutcome::Removed | DeletionOutcome::Unknown => {}
                DeletionOutcome::NotEnded => return Err(needed_by_run_failure()),
            }
        }
        tracing::info!(execution = %id, agent = %record.agent, by = caller.name, "removed");
        Ok(())
    }

    /// Submits the request of an execution again, in the same conversation and for the caller.
    ///
    /// # Errors
    /// Returns an error if the caller has no such execution, if it has not ended, if its input is not stored in its
    /// original form, or if the request is rejected.
    pub async fn retry(&self, caller: &Caller, id: ExecutionId) -> Result<SubmitReply, Failure> {
        let record = self.reader.execution(caller, id).await?;
        if !caller.scope.allows(Right::Run, Some(&record.agent)) {
            return Err(Failure::new(Code::Forbidden, "the token does not allow this"));
        }
        if record.outcome.is_none() {
            return Err(not_ended_failure(&record));
        }
        if record.attempt_id.turn != 1 {
            let message = "it was a conversation of several messages";
            return Err(Failure::new(Code::NotReplayable, message));
        }
        let stored_request = match map_error(read_request(&self.reader.services, &record).await)? {
            Ok(stored_request) => stored_request,
            Err(input_loss) => return Err(Failure::new(Code::NotReplayable, input_loss.reason())),
        };
        let message = MessageId(ExecutionId::generate().to_string());
        let mut request = (*stored_request).clone();
        (request.message_id, request.origin.trigger) = (message, Trigger::Api);
        request.origin.owner = caller.principal;
        self.submit(caller, request).await
    }
}

/// Rejection of a request whose record took too long.
const ACCEPT_TIMEOUT_MESSAGE: &str = "the request was not recorded in time, because the disk of the ledger or the \
                                      machine is slow; the same message can be sent again";

/// Rejection of a request whose agent failed while it accepted the request.
const AGENT_LOST_MESSAGE: &str = "nobody answered; the same message can be sent again";

fn not_ended_failure(record: &ExecutionRecord) -> Failure {
    let message = format!("the execution has not ended: it is {}", record.effective_state());
    Failure::new(Code::ExecutionUnfinished, message)
}

/// Returns the refusal to remove a hop.
fn needed_by_run_failure() -> Failure {
    let message = "the run of its team has not ended and needs its answer";
    Failure::new(Code::ExecutionUnfinished, message)
}

fn map_error<T>(result: Result<T, LedgerError>) -> Result<T, Failure> {
    result.map_err(|error| ledger_read_failure(&error))
}

fn log_read_error(id: ExecutionId, error: &LedgerError) {
    tracing::error!(execution = %id, %error, "read failed");
}
